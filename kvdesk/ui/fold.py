"""A part of a pane that is folded away."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from kvdesk.ui.theme import Look


class Fold(QWidget):
    """Folded until asked for. Widgets go into `body`, small ones into `head`."""

    toggled = Signal(bool)

    def __init__(self, look: Look, title: str, tip: str) -> None:
        super().__init__()
        self._look = look
        self._button = QToolButton()
        self._button.setText(title)
        self._button.setToolTip(tip)
        self._button.setCheckable(True)
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._button.setIconSize(QSize(14, 14))
        self._button.setProperty("fold", True)
        self._button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._button.setAccessibleName(f"{title}: show or hide")
        self._button.toggled.connect(self._on_toggled)
        self.body = QWidget()
        self.body.hide()
        self.head = QHBoxLayout()
        self.head.setSpacing(8)
        self.head.addWidget(self._button)
        self.head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(self.head)
        column.addWidget(self.body)
        look.changed.connect(self._show_arrow)
        self._show_arrow()

    @property
    def is_open(self) -> bool:
        return self._button.isChecked()

    def set_open(self, is_open: bool) -> None:
        self._button.setChecked(is_open)

    @Slot(bool)
    def _on_toggled(self, is_open: bool) -> None:
        self._show_arrow()
        self.body.setVisible(is_open)
        self.toggled.emit(is_open)

    @Slot()
    def _show_arrow(self) -> None:
        name = "chevron-down" if self._button.isChecked() else "chevron-right"
        self._button.setIcon(self._look.icon(name, self._look.colours.secondary))
