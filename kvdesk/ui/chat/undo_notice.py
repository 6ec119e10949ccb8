"""What was deleted, and the way back for as long as there is one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from kvdesk.translation import tr
from kvdesk.ui.widgets.announce import announce
from kvdesk.ui.widgets.controls import ElidedLabel


class UndoNotice(QFrame):
    """Hidden while nothing can be undone."""

    undo_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("card", "ask")
        self._text = ElidedLabel(n_lines=2)
        self._text.setProperty("scale", "small")
        self._undo = QPushButton(tr("Undo"))
        self._undo.setProperty("scale", "small")
        self._undo.setToolTip(tr("Undo (Ctrl+Z in the list)"))
        self._undo.clicked.connect(self.undo_clicked)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 6, 6)
        row.setSpacing(8)
        row.addWidget(self._text, 1)
        row.addWidget(self._undo)
        self.hide()

    @property
    def text(self) -> str:
        """What it says; empty while it is hidden."""
        return "" if self.isHidden() else self._text.full_text

    @property
    def button(self) -> QPushButton:
        return self._undo

    def show_deleted(self, titles: Sequence[str]) -> None:
        """The chats that can be brought back, the one deleted last at the end."""
        if titles:
            several = tr("Deleted: “{title}” and %n more", len(titles) - 1) if len(titles) > 1 else ""
            self._text.setText((several or tr("Deleted: “{title}”")).format(title=titles[-1]))
            self.setAccessibleName(self._text.full_text)
            announce(self, f"{self._text.full_text}. {self._undo.toolTip()}")
        self.setVisible(bool(titles))
