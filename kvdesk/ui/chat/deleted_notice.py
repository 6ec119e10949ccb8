"""What was deleted of the chat that is shown, and the way back."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton
from kvdesk.ui.widgets.theme import Theme

SHOWN_MS: Final = 15_000


class DeletedNotice(QFrame):
    """Goes after a while, but not under the pointer or while it has the keyboard."""

    undo_clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("card", "ask")
        self._text = ElidedLabel()
        self._text.setProperty("scale", "small")
        self._undo = QPushButton(tr("Undo"))
        self._undo.setProperty("scale", "small")
        self._undo.setToolTip(tr("Bring it back where it stood"))
        self._undo.clicked.connect(self._on_undo_clicked)
        close = IconButton(theme, "close", tr("Dismiss this message"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.setSpacing(8)
        row.addWidget(self._text, 1)
        row.addWidget(self._undo)
        row.addWidget(close)
        self._leaving = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._leaving.timeout.connect(self._on_leaving)
        self.hide()

    @property
    def text(self) -> str:
        """What it says; empty while it is hidden."""
        return "" if self.isHidden() else self._text.full_text

    @property
    def button(self) -> QPushButton:
        return self._undo

    def show_deleted(self, n_messages: int) -> None:
        """So many messages were deleted just now."""
        self._text.setText(tr("1 message deleted.") if n_messages == 1 else tr("%n messages deleted.", n_messages))
        self.setAccessibleName(self._text.full_text)
        self.show()
        self._leaving.start()

    @Slot()
    def _on_undo_clicked(self) -> None:
        self.hide()
        self.undo_clicked.emit()

    @Slot()
    def _on_leaving(self) -> None:
        if self.underMouse() or self._undo.hasFocus():
            self._leaving.start()
        else:
            self.hide()
