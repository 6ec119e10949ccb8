"""What was deleted, and the way back."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, push_button
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import once


class UndoNotice(QFrame):
    """Hidden while it says nothing. `undo` brings it back, and hides this once it is back.

    `shown_ms`: it goes after so long, but not under the pointer or while it has the keyboard, and can be dismissed; 0:
    whoever shows it takes it away.
    """

    def __init__(self, theme: Theme, undo: Callable[[], None], shown_ms: int = 0) -> None:
        super().__init__()
        self._undo = undo
        self.setProperty("card", "ask")
        self._text = ElidedLabel(n_lines=2, scale="small")
        self.button = push_button(
            tr("Undo"), scale="small", tip=tr("Restore it in its place (Ctrl+Z)"), clicked=self._on_undo_clicked
        )
        row = boxes.row((self._text, 1), self.button, on=self, margins=(8, 6, 6, 6), spacing=8)
        self._leaving = once(self, shown_ms, self._on_leaving)
        if shown_ms:
            row.addWidget(IconButton(theme, "close", tr("Dismiss this message"), clicked=self.hide))
        self.hide()

    @property
    def text(self) -> str:
        """What it says; empty while it is hidden."""
        return "" if self.isHidden() else self._text.full_text

    def show_text(self, text: str) -> None:
        """What was deleted; "" hides it."""
        self.setVisible(bool(text))
        if text:
            self._text.setText(text)
            self.setAccessibleName(text)
            announce(self, f"{text} {self.button.toolTip()}")
            if self._leaving.interval():
                self._leaving.start()

    def _on_undo_clicked(self) -> None:
        self._undo()

    def _on_leaving(self) -> None:
        if self.underMouse() or self.button.hasFocus():
            self._leaving.start()
        else:
            self.hide()
