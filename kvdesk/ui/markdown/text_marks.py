"""What is marked in a text that is shown: selected and hovered cells, found words, tokens with tips and clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QToolTip

from kvdesk.folding import places
from kvdesk.ui.markdown.offsets import to_shown, utf16
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class TokenText:
    """What is known of the tokens of a text. All places are characters of its source.

    tints  first, last and colour of those that have one
    tip    what is said of the one at a place, "" for none; click: what a click there does
    """

    tints: tuple[tuple[int, int, str], ...]
    tip: Callable[[int], str]
    click: Callable[[int], None]

    def behind(self, start: int) -> TokenText:
        """The same for the part of the source that begins there."""
        tints = tuple((first - start, last - start, colour) for first, last, colour in self.tints if last > start)
        return replace(self, tints=tints, tip=lambda at: self.tip(at + start), click=lambda at: self.click(at + start))


class TextMarks(QObject):
    """Of one view. `offsets`: of the characters that it shows, in the source."""

    def __init__(self, view: QTextEdit | QPlainTextEdit, theme: Theme, offsets: Callable[[], list[int]]) -> None:
        super().__init__(view)
        self.view, self._theme, self._offsets_of = view, theme, offsets
        self._tokens: TokenText | None = None
        self._offsets: list[int] = []
        self._starts: list[int] = []  # of each character that is shown in the document, which counts UTF-16 units
        self._linked_range = self._pointed_range = 0, 0
        self._words: tuple[Sequence[str], int] = (), -1
        self._tints: list[QTextEdit.ExtraSelection] = []
        self._found: list[QTextEdit.ExtraSelection] = []
        self._linked: list[QTextEdit.ExtraSelection] = []
        self._pointed: list[QTextEdit.ExtraSelection] = []

    def highlight(self, first: int, last: int) -> None:
        """Mark characters `[first, last)` of the source; none if the range is empty."""
        self._linked_range, self._linked = (first, last), self._range(first, last)
        self._show()

    def point_at(self, first: int, last: int) -> None:
        """The same, beside what is highlighted, for as long as a cell of them is hovered."""
        self._pointed_range, self._pointed = (first, last), self._range(first, last)
        self._show()

    def mark(self, words: Sequence[str], at: int = -1) -> list[QPoint]:
        """Mark every place where one of the words occurs, number `at` as where one is. Where all of them are."""
        self._words = words, at
        text, colours = self.view.toPlainText(), self._theme.colours
        self._found = [
            self._selection(utf16(text[:first]), utf16(text[:last]), colours.selection)
            for first, last in places(text, words)
        ]
        if 0 <= at < len(self._found):
            self._found[at].format.setBackground(QColor(colours.accent))
            self._found[at].format.setForeground(QColor(colours.accent_text))
        self._show()
        return [self.view.cursorRect(found.cursor).topLeft() for found in self._found]

    def show_tokens(self, tokens: TokenText | None) -> None:
        """What is known of the tokens of the source; None: nothing. Again after the text has changed."""
        if tokens is None and self._tokens is None:
            return
        if self._tokens is None:
            self.view.viewport().installEventFilter(self)
        elif tokens is None:
            self.view.viewport().removeEventFilter(self)
        self._tokens = tokens
        self._offsets = self._offsets_of() if tokens is not None else []
        text = self.view.toPlainText() if tokens is not None else ""
        self._starts = [0, *accumulate(1 + (character > "\uffff") for character in text)]
        self._tints = []
        for first, last, colour in tokens.tints if tokens is not None else ():
            start, end = to_shown(self._offsets, max(first, 0), last)
            if start < end:
                self._tints.append(self._selection(self._starts[start], self._starts[end], colour))
        self._show()

    def refresh(self) -> None:
        """The text is laid out again, or in other colours."""
        self.highlight(*self._linked_range)
        self.point_at(*self._pointed_range)
        self.mark(*self._words)
        self.show_tokens(self._tokens)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        tokens = self._tokens
        if tokens is None:
            return False
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = self._source_at(event.pos())
            text = tokens.tip(at) if at is not None else ""
            if text:
                QToolTip.showText(event.globalPos(), plain_tip(text), self.view.viewport())
            return bool(text)
        if event.type() is QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            point = event.position().toPoint()
            is_click = event.button() is Qt.MouseButton.LeftButton and not self.view.textCursor().hasSelection()
            at = self._source_at(point) if is_click and not self.view.anchorAt(point) else None
            if at is not None:
                tokens.click(at)
        return False

    def _range(self, first: int, last: int) -> list[QTextEdit.ExtraSelection]:
        """One over what is shown of these characters of the source, if any of it is."""
        if first >= last:
            return []
        start, end = to_shown(self._offsets_of(), max(first, 0), last)
        if start >= end:
            return []
        text = self.view.toPlainText()
        return [self._selection(utf16(text[:start]), utf16(text[:end]), self._theme.colours.selection)]

    def _selection(self, start: int, end: int, colour: str) -> QTextEdit.ExtraSelection:
        """Of places in the document."""
        mark, cursor = QTextEdit.ExtraSelection(), QTextCursor(self.view.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        mark.cursor = cursor
        mark.format.setBackground(QColor(colour))
        return mark

    def _show(self) -> None:
        self.view.setExtraSelections(self._tints + self._found + self._linked + self._pointed)

    def _source_at(self, point: QPoint) -> int | None:
        """The character of the source under the pointer; None beside the text."""
        cursor = self.view.cursorForPosition(point)
        rect, position = self.view.cursorRect(cursor), cursor.position()
        is_before = point.x() < rect.x()
        if is_before:
            position -= 1
        elif cursor.atBlockEnd():
            return None
        i = next((i for i, start in enumerate(self._starts) if start > position), 0) - 1
        return self._offsets[i] if 0 <= i < len(self._offsets) else None
