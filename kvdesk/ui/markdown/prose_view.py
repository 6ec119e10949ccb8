"""A run of prose as tall as its text. While it grows, only its last block is written again."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QColor, QDesktopServices, QPalette, QResizeEvent, QTextCursor, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QTextEdit

from kvdesk.ui.markdown.marks import word_marks
from kvdesk.ui.markdown.offsets import source_offsets, to_shown, to_source
from kvdesk.ui.markdown.prose import SAFE_SCHEMES, ProseWriter, markdown_parser, top_level_starts
from kvdesk.ui.widgets.theme import Theme

if TYPE_CHECKING:
    from markdown_it.token import Token

_INDENT_PX: Final = 20  # of a list; more where its numbers need it


class ProseView(QTextBrowser):
    """Read-only text one can select. Markdown or, for what a person typed, plain text."""

    def __init__(self, theme: Theme, quiet: bool = False) -> None:
        super().__init__()
        self._theme, self._quiet = theme, quiet
        self._source, self._markdown = "", True
        self._settled_text, self._settled_end = "", 0
        self._highest = 0  # number of an item of a list
        self._linked: list[QTextEdit.ExtraSelection] = []  # marked by `highlight`
        self._found: list[QTextEdit.ExtraSelection] = []  # marked by `mark`
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the message has one
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDocumentMargin(0)
        self.document().setIndentWidth(_INDENT_PX)
        self.document().setUndoRedoEnabled(False)
        self.anchorClicked.connect(self._on_anchor_clicked)
        theme.changed.connect(self._on_look_changed)
        self._style()

    def show_plain(self, text: str) -> None:
        """Text as it was typed; nothing in it means anything."""
        if not self._markdown and text == self._source:
            return
        self._markdown, self._source = False, text
        self.setPlainText(text)
        self._fit()

    def show_markdown(self, source: str) -> None:
        """The text of an answer so far. What is settled stays; the last block is written again."""
        if self._markdown and source == self._source:
            return
        self._markdown, self._source = True, source
        if not source.startswith(self._settled_text):
            self._settled_text, self._settled_end = "", 0
        if not self._settled_text:
            self._highest = 0
        rest = source[len(self._settled_text) :]
        tokens = markdown_parser().parse(rest)
        starts = top_level_starts(tokens)
        last = starts[-1] if starts else 0
        self._drop_tail()
        if last and (span := tokens[last].map):
            self._write(tokens[:last])
            self._settled_text += "".join(rest.splitlines(keepends=True)[: span[0]])
            self._settled_end = self.document().characterCount() - 1
        self._write(tokens[last:])
        self._fit()

    def selected_range(self) -> tuple[int, int]:
        """The selected characters, counted in the source; (0, 0) where nothing is selected."""
        cursor = self.textCursor()
        if not cursor.hasSelection():
            return 0, 0
        offsets = source_offsets(self._source, self.toPlainText())
        return to_source(offsets, cursor.selectionStart(), cursor.selectionEnd())

    def highlight(self, first: int, last: int) -> None:
        """Mark characters `[first, last)` of the source; none where the range is empty."""
        marks = []
        if first < last:
            start, end = to_shown(source_offsets(self._source, self.toPlainText()), first, last)
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document())
            mark.cursor.setPosition(start)
            mark.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            mark.format.setBackground(QColor(self._theme.colours.selection))
            marks.append(mark)
        self._linked = marks
        self.setExtraSelections(self._found + self._linked)

    def mark(self, words: Sequence[str]) -> QPoint | None:
        """Mark every place where one of the words stands; where the first one is, None where there is none."""
        self._found = word_marks(self.document(), words, self._theme.colours)
        self.setExtraSelections(self._found + self._linked)
        return self.cursorRect(self._found[0].cursor).topLeft() if self._found else None

    @Slot(QUrl)
    def _on_anchor_clicked(self, url: QUrl) -> None:
        if url.scheme().lower() in SAFE_SCHEMES:
            QDesktopServices.openUrl(url)

    @Slot()
    def _on_look_changed(self) -> None:
        self._style()
        source, self._source = self._source, ""
        self._settled_text, self._settled_end = "", 0
        if self._markdown:
            self.show_markdown(source)
        else:
            self.show_plain(source)

    def _style(self) -> None:
        palette = self.palette()
        colours = self._theme.colours
        palette.setColor(QPalette.ColorRole.Text, QColor(colours.secondary if self._quiet else colours.text))
        self.setPalette(palette)
        self.document().setDefaultFont(self._theme.text)

    def _write(self, tokens: Sequence[Token]) -> None:
        """Append blocks. Qt writes the number of an item into the indentation, and cuts what has no room there."""
        writer = ProseWriter(self.document(), self._theme)
        writer.write(tokens)
        self._highest = max(self._highest, writer.highest)
        number = self.fontMetrics().horizontalAdvance(f"{self._highest}. ") if self._highest else 0
        self.document().setIndentWidth(max(_INDENT_PX, number))

    def _drop_tail(self) -> None:
        if not self._settled_end:
            self.document().clear()
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._settled_end)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()

    def _fit(self) -> None:
        self.document().setTextWidth(self.viewport().width())
        height = max(ceil(self.document().size().height()), 1)
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the chat scrolls, not the paragraph
