"""A program in an answer: highlighted, scrollable sideways, copied with one button."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.token import Token
from pygments.util import ClassNotFound
from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QColor, QGuiApplication, QResizeEvent, QSyntaxHighlighter, QTextCharFormat, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout

from kvdesk.ui.controls import IconButton, label
from kvdesk.ui.segments import Segment
from kvdesk.ui.theme import Look

_HIGHLIGHT_WHILE_OPEN: Final = 8_000  # characters; a longer program is coloured once, when it is complete
_HIGHLIGHT_AT_ALL: Final = 200_000
_DARK: Final = {
    Token.Comment: "#9aa0aa",
    Token.Keyword: "#8fb4ff",
    Token.Name.Function: "#e8c07a",
    Token.Name.Class: "#e8c07a",
    Token.Name.Builtin: "#7fc9c2",
    Token.Name.Decorator: "#d9a3c9",
    Token.Literal.String: "#a5cf8e",
    Token.Literal.Number: "#e5a37e",
    Token.Operator.Word: "#8fb4ff",
    Token.Generic.Deleted: "#ff9185",
    Token.Generic.Inserted: "#7cc8a2",
}
_LIGHT: Final = {
    Token.Comment: "#61666f",
    Token.Keyword: "#1f4fb8",
    Token.Name.Function: "#7a5200",
    Token.Name.Class: "#7a5200",
    Token.Name.Builtin: "#00696b",
    Token.Name.Decorator: "#8c3d78",
    Token.Literal.String: "#2f6b1f",
    Token.Literal.Number: "#a04010",
    Token.Operator.Word: "#1f4fb8",
    Token.Generic.Deleted: "#b3261e",
    Token.Generic.Inserted: "#1f6d47",
}


class CodeBlock(QFrame):
    """One fenced block."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._segment = Segment("code", "", closed=False)
        self.setProperty("card", "code")
        self._language = label("", tone="secondary", scale="small")
        self._copy = IconButton(look, "copy", "Copy this code")
        self._copy.clicked.connect(self._on_copy_clicked)
        self._view = _CodeView()
        self._view.setAccessibleName("Code")
        self._colouring = _Colouring(self._view)
        head = QHBoxLayout()
        head.setContentsMargins(12, 4, 4, 0)
        head.addWidget(self._language, 1)
        head.addWidget(self._copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._view)
        look.changed.connect(self._on_look_changed)
        self._view.setFont(look.mono)

    @property
    def text(self) -> str:
        return self._segment.text

    def show_segment(self, segment: Segment) -> None:
        if segment == self._segment:
            self._segment = segment  # `whole` may have grown
            return
        grown = segment.text.startswith(self._segment.text)
        self._language.setText(segment.language or "text")
        if grown:
            self._view.append_text(segment.text[len(self._segment.text) :])
        else:
            self._view.setPlainText(segment.text)
        self._segment = segment
        self._highlight()
        self._view.fit()

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._segment.whole or self._segment.text)
        self._copy.set_icon_name("check")
        QTimer.singleShot(1200, self._copy, lambda: self._copy.set_icon_name("copy"))

    @Slot()
    def _on_look_changed(self) -> None:
        self._view.setFont(self._look.mono)
        self._highlight()
        self._view.fit()

    def _highlight(self) -> None:
        limit = _HIGHLIGHT_AT_ALL if self._segment.closed else _HIGHLIGHT_WHILE_OPEN
        if len(self._segment.text) <= limit:
            table = _DARK if self._look.colours.dark else _LIGHT
            self._colouring.set_lines(_lines_of_spans(self._segment.text, self._segment.language, table))


class _CodeView(QPlainTextEdit):
    """As tall as its lines; wheel turns go to the chat unless they are sideways."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(12, 4, 12, 0)
        self.setUndoRedoEnabled(False)

    def append_text(self, text: str) -> None:
        cursor = self.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        cursor.insertText(text)

    def fit(self) -> None:
        line = self.fontMetrics().lineSpacing()
        bar = self.horizontalScrollBar().sizeHint().height() if self.horizontalScrollBar().maximum() > 0 else 4
        self.setFixedHeight(ceil(line * max(self.blockCount(), 1)) + 8 + bar)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()


class _Colouring(QSyntaxHighlighter):
    """Puts spans that were computed elsewhere onto lines."""

    def __init__(self, view: QPlainTextEdit) -> None:
        super().__init__(view.document())
        self._lines: list[list[tuple[int, int, str]]] = []

    def set_lines(self, lines: list[list[tuple[int, int, str]]]) -> None:
        if lines != self._lines:
            self._lines = lines
            self.rehighlight()

    def highlightBlock(self, _text: str) -> None:
        number = self.currentBlock().blockNumber()
        for start, length, colour in self._lines[number] if number < len(self._lines) else ():
            form = QTextCharFormat()
            form.setForeground(QColor(colour))
            self.setFormat(start, length, form)


def _lines_of_spans(text: str, language: str, table: Mapping[Any, str]) -> list[list[tuple[int, int, str]]]:
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else TextLexer()
    except ClassNotFound:
        lexer = TextLexer()
    lines: list[list[tuple[int, int, str]]] = [[]]
    column = 0
    for kind, value in lexer.get_tokens(text):
        while kind not in table and kind.parent is not None:
            kind = kind.parent
        colour = table.get(kind)
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append([])
                column = 0
            if part and colour:
                lines[-1].append((column, len(part), colour))
            column += len(part)
    return lines
