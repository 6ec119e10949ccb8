"""A heading that folds away what is under it."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedButton
from kvdesk.ui.widgets.style.theme import Theme


class Collapsible(QWidget):
    """A button with the title, `beside` at the other end of its line, and `content`, shown while it is pressed."""

    toggled = Signal(bool)

    def __init__(self, theme: Theme, title: str, content: QWidget, *beside: QWidget, opened: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._content = content
        self.button = ElidedButton(title, quiet=True, scale="small")
        self.button.setProperty("collapsible", True)
        self.button.setCheckable(True)
        self.button.setChecked(opened)
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.toggled.connect(self._on_toggled)
        column = boxes.column(on=self, margins=0, spacing=0)
        line = boxes.row(self.button, boxes.Stretch(1), spacing=8)
        for widget in beside:
            line.addWidget(widget)
        column.addLayout(line)
        column.addWidget(content)
        content.setVisible(opened)
        theme.follow(self._on_look_changed)

    @property
    def is_open(self) -> bool:
        return self.button.isChecked()

    def set_title(self, title: str) -> None:
        self.button.setText(title)

    def _on_toggled(self, opened: bool) -> None:
        self._content.setVisible(opened)
        self._on_look_changed()
        self.toggled.emit(opened)

    def _on_look_changed(self) -> None:
        name = "chevron-down" if self.is_open else "chevron-right"
        self.button.setIconSize(QSize(self._theme.px(12), self._theme.px(12)))
        self.button.setIcon(self._theme.icon(name, self._theme.colours.secondary))
        self.button.setAccessibleName(self.button.full_text)
        self.button.setAccessibleDescription(tr("expanded") if self.is_open else tr("collapsed"))
