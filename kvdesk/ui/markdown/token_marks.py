"""Tokens of a text that is shown: a colour behind some, a tooltip over each, and what a click on one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QToolTip

from kvdesk.ui.markdown.offsets import to_shown
from kvdesk.ui.widgets.controls import plain_tip
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


class TokenMarks(QObject):
    """Of one view. `offsets`: of the characters that it shows, in the source; `changed`: its marks are others now."""

    def __init__(
        self, view: QTextEdit | QPlainTextEdit, offsets: Callable[[], list[int]], changed: Callable[[], None]
    ) -> None:
        super().__init__(view)
        self._view, self._offsets_of, self._changed = view, offsets, changed
        self._tokens: TokenText | None = None
        self._offsets: list[int] = []
        self._starts: list[int] = []  # of each character that is shown in the document, which counts UTF-16 units
        self.selections: list[QTextEdit.ExtraSelection] = []

    def show(self, tokens: TokenText | None) -> None:
        """These tokens; None: none."""
        if tokens is None and self._tokens is None:
            return
        if self._tokens is None:
            self._view.viewport().installEventFilter(self)
        elif tokens is None:
            self._view.viewport().removeEventFilter(self)
        self._tokens = tokens
        self._offsets = self._offsets_of() if tokens is not None else []
        text = self._view.toPlainText() if tokens is not None else ""
        self._starts = [0, *accumulate(1 + (character > "\uffff") for character in text)]
        self.selections = [] if tokens is None else [one for tint in tokens.tints for one in self._selection(*tint)]
        self._changed()

    def refresh(self) -> None:
        """The text is laid out again."""
        self.show(self._tokens)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        tokens = self._tokens
        if tokens is None:
            return False
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = self._source_at(event.pos())
            text = tokens.tip(at) if at is not None else ""
            if text:
                QToolTip.showText(event.globalPos(), plain_tip(text), self._view.viewport())
            return bool(text)
        if event.type() is QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            point = event.position().toPoint()
            is_click = event.button() is Qt.MouseButton.LeftButton and not self._view.textCursor().hasSelection()
            at = self._source_at(point) if is_click and not self._view.anchorAt(point) else None
            if at is not None:
                tokens.click(at)
        return False

    def _selection(self, first: int, last: int, colour: str) -> Sequence[QTextEdit.ExtraSelection]:
        start, end = to_shown(self._offsets, max(first, 0), last)
        if start >= end:
            return ()
        mark = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self._view.document())
        cursor.setPosition(self._starts[start])
        cursor.setPosition(self._starts[end], QTextCursor.MoveMode.KeepAnchor)
        mark.cursor = cursor
        mark.format.setBackground(QColor(colour))
        return (mark,)

    def _source_at(self, point: QPoint) -> int | None:
        """The character of the source under the pointer; None beside the text."""
        cursor = self._view.cursorForPosition(point)
        rect, position = self._view.cursorRect(cursor), cursor.position()
        is_before = point.x() < rect.x()
        if is_before:
            position -= 1
        elif cursor.atBlockEnd():
            return None
        i = next((i for i, start in enumerate(self._starts) if start > position), 0) - 1
        return self._offsets[i] if 0 <= i < len(self._offsets) else None
