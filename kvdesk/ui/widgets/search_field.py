"""A field whose words filter what is beside it."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction, QIcon, QKeyEvent
from PySide6.QtWidgets import QLineEdit

from kvdesk.paths import resources_dir
from kvdesk.ui.widgets.access.input_method import composes


def clearable(field: QLineEdit) -> None:
    """With a grey cross that clears it. Qt's own is a black disc in a field that was made before its style sheet. It is
    made with the first text: Qt looks for its own icon first, for longer than a frame lasts.
    """

    def make() -> None:
        if field.text() and not field.isClearButtonEnabled():
            field.setClearButtonEnabled(True)
            if (action := field.findChild(QAction, "_q_qlineeditclearaction")) is not None:
                action.setIcon(QIcon(str(resources_dir() / "icons" / "clear.svg")))

    make()
    field.textChanged.connect(make)


class SearchField(QLineEdit):
    """Esc clears it first; in an empty one it is for the window around. `name`: what it searches."""

    def __init__(self, name: str, placeholder: str = "") -> None:
        super().__init__(placeholderText=placeholder or name)
        self.setAccessibleName(name)
        clearable(self)
        composes(self)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) and isinstance(event, QKeyEvent):
            if event.key() != Qt.Key.Key_Escape or not self.text():
                return super().event(event)
            if event.type() == QEvent.Type.KeyPress:
                self.clear()
            event.accept()
            return True
        return super().event(event)
