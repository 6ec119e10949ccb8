"""The reasoning of a model before its answer: open while it is written, then folded away with how long it took."""

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from kvdesk.folding import places
from kvdesk.translation import plural, tr
from kvdesk.ui.markdown.text_marks import TokenText
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.style.theme import Theme


class TextBody(Protocol):
    """A widget that shows a text which may grow (`MessageBody`)."""

    def show_source(self, source: str, growing: bool = False) -> None: ...

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> list[QPoint]: ...

    def show_tokens(self, tokens: TokenText | None) -> None: ...


class CollapsedThinking(QWidget):
    """One click opens and closes it; from then on it stays as the person wants it.

    body  shows the text: a widget that is a `TextBody`; it is given none while it is hidden
    """

    def __init__(self, theme: Theme, body: QWidget) -> None:
        super().__init__()
        self._body = body
        self.text, self._is_being_written = "", False
        self._was_clicked = False
        self._tokens: TokenText | None = None
        self._fold = Collapsible(theme, tr("Thinking…"), body, opened=False)
        self._fold.toggled.connect(self._on_toggled)
        self._fold.button.clicked.connect(self._on_clicked)
        boxes.column(self._fold, on=self, margins=0)

    @property
    def is_open(self) -> bool:
        return self._fold.is_open

    def show_thought(self, text: str, ms: int, *, is_open: bool, may_collapse: bool = True) -> None:
        """The reasoning so far. `is_open`: it is being written. `ms`: how long it took, 0 if that is not known."""
        begun, ended = is_open and not self._is_being_written, self._is_being_written and not is_open
        self.text, self._is_being_written = text, is_open
        self._fold.set_title(_title(text, ms, is_open=is_open))
        if not self._was_clicked and (begun or (ended and may_collapse)):
            self._fold.button.setChecked(is_open)
        if self.is_open:
            self._show_text()

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> list[QPoint]:
        """As `MessageBody.mark`. `unfold`: opens it if it contains one of the words."""
        if unfold and places(self.text, words):
            self._fold.button.setChecked(True)
        body: TextBody = self._body  # type: ignore[assignment]
        found = body.mark(words, at, unfold=unfold) if self.is_open else []
        return [self._body.mapTo(self, place) for place in found]

    def show_tokens(self, tokens: TokenText | None) -> None:
        """As `TextMarks.show_tokens`."""
        self._tokens = tokens
        if self.is_open:
            self._show_text()

    def _show_text(self) -> None:
        body: TextBody = self._body  # type: ignore[assignment]
        body.show_source(self.text, growing=self._is_being_written)
        body.show_tokens(self._tokens)

    def _on_clicked(self) -> None:
        self._was_clicked = True

    def _on_toggled(self, opened: bool) -> None:
        if opened:
            self._show_text()


def _title(text: str, ms: int, *, is_open: bool) -> str:
    if is_open:
        return tr("Thinking…")
    if not ms:
        n = len(text.split())
        return plural("Thought, 1 word", "Thought, %n words", n)
    seconds = max(1, round(ms / 1000))
    if seconds < 60:
        return tr("Thought for {s} s").format(s=seconds)
    return tr("Thought for {min} min {s} s").format(min=seconds // 60, s=seconds % 60)
