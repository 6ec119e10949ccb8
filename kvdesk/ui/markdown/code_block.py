"""A program in an answer: highlighted, scrollable sideways, copied with one button."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QResizeEvent, QSyntaxHighlighter, QTextCharFormat, QWheelEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from kvdesk.translation import tr
from kvdesk.ui.markdown.offsets import source_offsets
from kvdesk.ui.markdown.segments import Segment
from kvdesk.ui.markdown.text_marks import TextMarks
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.direction import keep_left_to_right
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.text_height import text_height
from kvdesk.whole_file import write_whole

_HIGHLIGHT_WHILE_OPEN: Final = 8_000  # characters; a longer program is coloured once, when it is complete
_HIGHLIGHT_AT_ALL: Final = 200_000


class CodeBlock(QFrame):
    """One fenced block."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._segment = Segment("code", "", closed=False)
        self.setProperty("card", "code")
        self._language = label("", tone="secondary", scale="small")
        self._copy = IconButton(theme, "copy", tr("Copy this code"))
        self._copy.clicked.connect(self._on_copy_clicked)
        self._save = IconButton(theme, "save", tr("Save this code as a file"))
        self._save.clicked.connect(self._on_save_clicked)
        self._problem = label("", tone="danger", scale="small", wrap=True)
        self._problem.setContentsMargins(12, 4, 12, 4)
        self._problem.hide()
        self._view = _CodeView()
        self._view.setAccessibleName(tr("Code"))
        self._colouring = _Colouring(self._view)
        self.marks = TextMarks(self._view, theme, self._offsets)
        self.source = ""
        """What it is written as, from its fence on."""
        head = boxes.row((self._language, 1), self._save, self._copy, margins=(12, 4, 4, 0))
        boxes.column(head, self._view, self._problem, on=self, margins=(0, 0, 0, 4), spacing=0)
        theme.changed.connect(self._on_look_changed)
        self._view.setFont(theme.mono)

    def show_segment(self, segment: Segment) -> None:
        if segment == self._segment:
            self._segment = segment  # `whole` may have grown
            return
        grown = segment.text.startswith(self._segment.text)
        self._language.setText(segment.language or tr("text"))
        if grown:
            self._view.append_text(segment.text[len(self._segment.text) :])
        else:
            self._view.setPlainText(segment.text)
        self._segment = segment
        self._highlight()
        self._view.fit()

    def _offsets(self) -> list[int]:
        """Of the characters that are shown, in the source; the line of the fence is not."""
        start = self.source.find("\n") + 1 if self.source.lstrip()[:3] in ("```", "~~~") else 0
        return [start + at for at in source_offsets(self.source[start:], self._view.toPlainText())]

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._segment.whole or self._segment.text)
        self._copy.confirm()

    def _on_save_clicked(self) -> None:
        from kvdesk.ui.markdown.highlight import file_suffix

        suffix = file_suffix(self._segment.language)
        file = ask_where_to_save(self, tr("Save the code"), f"code{suffix}", f"*{suffix}")
        if file is None:
            return
        text = self._segment.whole or self._segment.text
        self._problem.hide()
        try:
            write_whole(file, f"{text}\n".encode(errors="replace"))
        except OSError as error:
            why = error.strerror or str(error)
            self._problem.setText(tr("{file} cannot be written: {why}.").format(file=file.name, why=why))
            self._problem.show()
            return
        self._save.confirm()

    def _on_look_changed(self) -> None:
        self._view.setFont(self._theme.mono)
        self._highlight()
        self.marks.refresh()
        self._view.fit()

    def _highlight(self) -> None:
        limit = _HIGHLIGHT_AT_ALL if self._segment.closed else _HIGHLIGHT_WHILE_OPEN
        if len(self._segment.text) <= limit:
            from kvdesk.ui.markdown.highlight import (
                lines_of_spans,  # not at the top: Pygments is loaded for the first program
            )

            text, language = self._segment.text, self._segment.language
            self._colouring.set_lines(lines_of_spans(text, language, dark=self._theme.colours.dark))


class _CodeView(QPlainTextEdit):
    """As tall as its lines; wheel turns go to the chat unless they are sideways."""

    def __init__(self) -> None:
        super().__init__(readOnly=True, tabChangesFocus=True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        keep_left_to_right(self)
        self.setViewportMargins(12, 4, 12, 0)
        self.setUndoRedoEnabled(False)
        self.horizontalScrollBar().rangeChanged.connect(self.fit)  # known only once the lines are laid out

    def append_text(self, text: str) -> None:
        cursor = self.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        cursor.insertText(text)

    def fit(self) -> None:
        bar = self.horizontalScrollBar().sizeHint().height() if self.horizontalScrollBar().maximum() > 0 else 4
        self.setFixedHeight(text_height(self) + 8 + bar)

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
        same = next((i for i, (old, new) in enumerate(zip(self._lines, lines, strict=False)) if old != new), None)
        first = min(len(self._lines), len(lines)) if same is None else same
        self._lines = lines
        block = self.document().findBlockByNumber(first)
        while block.isValid():  # those above have their colours
            self.rehighlightBlock(block)
            block = block.next()

    def highlightBlock(self, _text: str) -> None:
        number = self.currentBlock().blockNumber()
        for start, length, colour in self._lines[number] if number < len(self._lines) else ():
            form = QTextCharFormat()
            form.setForeground(QColor(colour))
            self.setFormat(start, length, form)
