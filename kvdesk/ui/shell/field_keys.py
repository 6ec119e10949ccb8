"""A key that Qt gives to fields for text on X11, and that does here what it does everywhere else."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid


class FieldKeys(QObject):
    """The field of `window` that has the keyboard leaves Ctrl+E, "go to the end of the line", to the window."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus_changed)

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        if before is not None and isValid(before):
            before.removeEventFilter(self)
        if now is not None and isValid(now) and now.window() is self._window:
            now.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        if event.modifiers() != Qt.KeyboardModifier.ControlModifier or event.key() != Qt.Key.Key_E:
            return False
        event.ignore()
        return True
