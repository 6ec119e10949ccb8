"""The body of a message: its segments one below the other, each in the widget of its kind, long ones in pieces."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from kvdesk import folding
from kvdesk.reasoning import ReasoningMarks
from kvdesk.translation import tr
from kvdesk.ui.markdown.code_block import CodeBlock
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.markdown.segments import Segment
from kvdesk.ui.markdown.text_chunks import GrowingAnswer, prose_pieces, typed_pieces, weights
from kvdesk.ui.markdown.text_marks import TextMarks, TokenText
from kvdesk.ui.messages.thinking import CollapsedThinking
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedButton, push_button
from kvdesk.ui.widgets.style.theme import Theme

_SMALL_REST: Final = 0.25  # of a full piece: shown with what is before it, it is not worth a click


class MessageBody(QWidget):
    """Shows the beginning of a text, and more on demand; keeps the widgets of pieces that did not change.

    `plain`: nothing in the text means anything; `typed`: nothing but a program between fences does, since a person
    typed it. `quiet`: prose in the secondary tone.
    """

    selected = Signal(int, int)  # characters of the source

    def __init__(self, theme: Theme, *, plain: bool = False, typed: bool = False, quiet: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._plain, self._typed, self._quiet = plain or typed, typed, quiet
        self._source = ""
        self._pages = 1  # how much is shown, in full pieces
        self._answer = GrowingAnswer()
        self.marks: ReasoningMarks | None = None  # around reasoning in the family that writes the text
        self._thought_ms, self._may_collapse = 0, True
        self._growing = False
        self._asked: tuple[Sequence[str], int, bool] = ((), -1, False)  # of `mark`
        self._n_made: int | None = None  # pieces, while they are made one by one
        self._shown: list[tuple[str, ProseView | CodeBlock | CollapsedThinking]] = []
        self._starts: list[int] = []  # offsets of the shown pieces in the source
        self._end = 0  # of what is shown, in the source
        self._tokens: TokenText | None = None
        self._column = boxes.column(spacing=8)
        self._rest: _Rest | None = None  # made if there is one
        self._all = boxes.column(self._column, on=self, margins=0, spacing=8)

    @property
    def end(self) -> QWidget:
        """The widget in which a text that grows does so."""
        return self._shown[-1][1] if self._shown else self

    @property
    def selected_text(self) -> str:
        """The selected text; empty without a selection."""
        for _, widget in self._shown:
            if isinstance(widget, ProseView) and (text := widget.selected_text):
                return text
        return ""

    def highlight(self, first: int, last: int) -> None:
        """Mark characters `[first, last)` of the source; none if the range is empty, or in reasoning."""
        for marks, start in self._marks():
            marks.highlight(max(first - start, 0), max(last - start, 0))

    def point_at(self, first: int, last: int) -> None:
        """The same, beside what is highlighted."""
        for marks, start in self._marks():
            marks.point_at(max(first - start, 0), max(last - start, 0))

    def _marks(self) -> Iterator[tuple[TextMarks, int]]:
        """Of prose and programs that are shown, and where each begins in the source."""
        for (_, widget), start in zip(self._shown, self._starts, strict=True):
            if isinstance(widget, CodeBlock):
                widget.source = self._source[start:]
            if not isinstance(widget, CollapsedThinking):
                yield widget.marks, start

    def show_tokens(self, tokens: TokenText | None) -> None:
        """What is known of the tokens of the source, which does not grow; None: nothing."""
        self._tokens = tokens
        for i, widget in enumerate(widget for _, widget in self._shown):
            self._show_tokens(i, widget)

    def _show_tokens(self, i: int, widget: ProseView | CodeBlock | CollapsedThinking) -> None:
        start = self._starts[i]
        if isinstance(widget, CollapsedThinking):
            start = max(self._source.find(widget.text, start), start)
        tokens = self._tokens.behind(start) if self._tokens is not None else None
        if isinstance(widget, CodeBlock):
            widget.source = self._source[start:]
        (widget if isinstance(widget, CollapsedThinking) else widget.marks).show_tokens(tokens)

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> list[QPoint]:
        """Mark every place of one of the words in what is shown. Returns the places.

        at      the place where one is, marked in another colour
        unfold  show the text up to that place, or the first one, and open reasoning with one of the words
        """
        self._asked = words, at, unfold
        if self._n_made is not None:
            return []  # marked as soon as all is made
        found = folding.places(self._source, words) if unfold else []
        wanted = found[min(max(at, 0), len(found) - 1)][0] if found else -1
        while self._end <= wanted:
            self._show_page()
        marked: list[QPoint] = []
        for _, widget in self._shown:
            left = at - len(marked)
            if isinstance(widget, CollapsedThinking):
                marked += (widget.mapTo(self, place) for place in widget.mark(words, left, unfold=unfold))
            else:
                marked += (widget.marks.view.mapTo(self, place) for place in widget.marks.mark(words, left))
        return marked

    def make_gradually(self) -> None:
        """From now on one piece is made with each call of `make_next`, until there is no other."""
        self._n_made = 0

    def make_next(self) -> bool:
        """Make one more piece. False if none is missing."""
        if self._n_made is None:
            return False
        self._n_made += 1
        self.show_source(self._source, self._growing, self._thought_ms, self._may_collapse)
        if self._n_made is None and self._asked[0]:
            self.mark(self._asked[0], self._asked[1], unfold=self._asked[2])
        return self._n_made is not None

    def show_source(self, source: str, growing: bool = False, thought_ms: int = 0, may_collapse: bool = True) -> None:
        """The text so far. One that grows is shown to its end, but by no more than one full piece at a time.

        thought_ms    how long the reasoning in it took, 0: not known
        may_collapse  reasoning that ends closes; not while somebody reads there
        """
        same = thought_ms == self._thought_ms and growing == self._growing
        self._source, self._thought_ms, self._may_collapse = source, thought_ms, may_collapse
        self._growing = growing
        is_answer = not (self._plain or self._quiet)
        if is_answer:
            pieces = self._answer.pieces(source, self.marks, grows=growing)
        else:
            pieces = typed_pieces(source) if self._typed else prose_pieces(source)
        costs = weights(pieces)
        if growing and sum(costs[:-1]) >= self._pages:
            self._pages += 1
        before = (0.0, *accumulate(costs))
        n_shown = sum(cost < self._pages for cost in before[: len(pieces)])
        if sum(costs[n_shown:]) <= _SMALL_REST:
            n_shown = len(pieces)
        if self._n_made is not None:
            if n_shown <= self._n_made:
                self._n_made = None
            else:
                n_shown = self._n_made
        unchanged = min(self._answer.n_settled, len(self._shown), n_shown) if is_answer and same else 0
        for i, piece in enumerate(pieces[unchanged:n_shown], unchanged):
            self._show_piece(i, piece)
        self._starts = [piece.start for piece in pieces[:n_shown]]
        self._truncate(n_shown)
        self._end = pieces[n_shown].start if n_shown < len(pieces) else len(source)
        if self._tokens is not None:
            for i in range(unchanged, n_shown):
                self._show_tokens(i, self._shown[i][1])
        hidden = sum(len(piece.text) for piece in pieces[n_shown:]) if self._n_made is None else 0
        if hidden and self._rest is None:
            self._rest = _Rest(self.show_more, self._copy if self._plain else None)  # an answer has its own button
            self._all.addWidget(self._rest)
        if self._rest is not None:
            self._rest.show_hidden(hidden)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._source)

    def show_more(self) -> None:
        """Reveal the next piece."""
        self._show_page()
        if self._asked[0]:
            self.mark(self._asked[0], self._asked[1], unfold=False)

    def _show_page(self) -> None:
        self._pages += 1
        self.show_source(self._source, self._growing, self._thought_ms, self._may_collapse)

    def _show_piece(self, i: int, piece: Segment) -> None:
        if i < len(self._shown) and self._shown[i][0] != piece.kind:
            self._truncate(i)
        if i == len(self._shown):
            widget = self._make(piece)
            self._shown.append((piece.kind, widget))
            self._column.addWidget(widget)
        widget = self._shown[i][1]
        if isinstance(widget, CollapsedThinking):
            is_open = self._growing and not piece.closed
            widget.show_thought(piece.text, self._thought_ms, is_open=is_open, may_collapse=self._may_collapse)
        elif isinstance(widget, CodeBlock):
            widget.show_segment(piece)
        elif piece.kind == "formula":
            widget.show_formula(piece.text, is_whole=piece.closed)
        elif self._plain:
            widget.show_plain(piece.text)
        else:
            widget.show_markdown(piece.text)

    def _make(self, segment: Segment) -> ProseView | CodeBlock | CollapsedThinking:
        if segment.kind == "code":
            return CodeBlock(self._theme)
        if segment.kind == "think":
            return CollapsedThinking(self._theme, MessageBody(self._theme, quiet=True))
        prose = ProseView(self._theme, quiet=self._quiet, wide=segment.kind != "prose")
        if self._plain:
            prose.setAccessibleName(tr("Question"))
        else:
            prose.setAccessibleName(tr("Thinking") if self._quiet else tr("Answer"))
        prose.selectionChanged.connect(lambda: self._on_selection_changed(prose))
        return prose

    def _on_selection_changed(self, prose: ProseView) -> None:
        for (_, widget), start in zip(self._shown, self._starts, strict=False):
            if widget is prose:
                first, last = prose.selected_range()
                self.selected.emit(start + first, start + last)

    def _truncate(self, length: int) -> None:
        while len(self._shown) > length:
            boxes.drop(self._column, self._shown.pop()[1])


class _Rest(QWidget):
    """Under a text whose end is not shown yet."""

    def __init__(self, more: Callable[[], None], copy_all: Callable[[], None] | None) -> None:
        super().__init__()
        self._more = ElidedButton(quiet=True, scale="small")
        self._more.clicked.connect(more)
        copy = push_button(tr("Copy all"), quiet=True, scale="small", clicked=copy_all)
        boxes.row(self._more, copy, boxes.Stretch(1), on=self, margins=0, spacing=0)
        copy.setVisible(copy_all is not None)

    def show_hidden(self, n_characters: int) -> None:
        self._more.setText(tr("Show more  ·  {n} characters").format(n=f"{n_characters:,}"))
        self.setVisible(n_characters > 0)
