"""A run of prose as tall as its text. While it grows, only its last block is written again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMimeData, QRect, QRectF, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QTextEdit

from kvdesk.ui.markdown.formula_object import (
    OBJECT,
    formulas_in,
    formulas_to_source,
    source_of,
    text_of,
    update_formulas,
)
from kvdesk.ui.markdown.formulas import formula_drawer
from kvdesk.ui.markdown.offsets import characters, source_offsets, to_source
from kvdesk.ui.markdown.parser import markdown_parser
from kvdesk.ui.markdown.prose import QUOTES, SAFE_SCHEMES, ProseWriter, set_plain, top_level_starts
from kvdesk.ui.markdown.text_marks import TextMarks
from kvdesk.ui.widgets.style.theme import Theme

if TYPE_CHECKING:
    from markdown_it.token import Token

_INDENT_PX: Final = 20  # of a list; more where its numbers need it
_BAR_PX: Final = 3  # of a quote
_DEFINITION: Final = re.compile(r"^[\d \t>*+.)-]*+\[[^\]\n]+\]:", re.MULTILINE)
"""Of a reference link: the text before it may refer to it."""


class ProseView(QTextBrowser):
    """Read-only text one can select: Markdown, a formula, or, for what a person typed, plain text.

    wide  it scrolls sideways where it is wider than there is room: a table, a formula
    """

    def __init__(self, theme: Theme, quiet: bool = False, wide: bool = False) -> None:
        super().__init__()
        self._theme, self._quiet = theme, quiet
        self._source, self._kind = "", "markdown"
        self._scrolls = wide
        self.waits = False  # formulas in it are still being drawn
        self._settled_text, self._settled_end = "", 0
        self._highest = 0  # number of an item of a list
        self._has_quotes = False
        self.marks = TextMarks(self, theme, self._offsets)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the message has one
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if wide else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setHorizontalScrollBarPolicy(policy)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        wrap = QTextOption.WrapMode.WordWrap if wide else QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        self.setWordWrapMode(wrap)
        self.document().setDocumentMargin(0)
        self.document().setUndoRedoEnabled(False)
        self.anchorClicked.connect(self._on_anchor_clicked)
        theme.changed.connect(self._on_look_changed)
        self._style()

    def show_plain(self, text: str) -> None:
        """Text as it was typed; nothing in it means anything."""
        if self._kind == "plain" and text == self._source:
            return
        self._kind, self._source = "plain", text
        set_plain(self.document(), text)
        self._fit()

    def show_formula(self, latex: str, is_whole: bool = True) -> None:
        """LaTeX; it is shown as it is written until it `is_whole`."""
        kind = "formula" if is_whole else "plain"
        if self._kind == kind and latex == self._source:
            return
        self._kind, self._source = kind, latex
        if is_whole:
            self.document().clear()
            writer = ProseWriter(self.document(), self._theme)
            writer.write_formula(latex)
            self._wait(writer.waits)
        else:
            set_plain(self.document(), latex)
        self._fit()

    def show_markdown(self, source: str) -> None:
        """The text of an answer so far. What is settled stays; the last block is written again."""
        if self._kind == "markdown" and source == self._source:
            return
        if self._kind != "markdown":
            self._settled_text, self._settled_end = "", 0
        self._kind, self._source = "markdown", source
        if not source.startswith(self._settled_text) or ("]:" in source and _DEFINITION.search(source)):
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
            self._settled_text += "".join(islice(StringIO(rest, newline=""), span[0]))  # lines as the parser has them
            self._settled_end = self.document().characterCount() - 1
        self._write(tokens[last:])
        self._fit()

    def selected_range(self) -> tuple[int, int]:
        """The selected characters, counted in the source; (0, 0) if nothing is selected."""
        cursor = self.textCursor()
        if not cursor.hasSelection():
            return 0, 0
        text, ends = self.toPlainText(), (cursor.selectionStart(), cursor.selectionEnd())
        first, last = to_source(self._offsets(), *(characters(text, end) for end in ends))
        ending = [source_of(form) for at, form in formulas_in(self.document()) if at + 1 == cursor.selectionEnd()]
        return first, min(last + len("".join(ending)[1:]), len(self._source))

    @property
    def selected_text(self) -> str:
        """What a copy gives: formulas as LaTeX."""
        return text_of(self.textCursor())

    def createMimeDataFromSelection(self) -> QMimeData:
        if OBJECT not in self.textCursor().selectedText():
            return super().createMimeDataFromSelection()
        return _WithoutFormulas(self.textCursor()).createMimeDataFromSelection()

    def _offsets(self) -> list[int]:
        """Of the characters that are shown, in the source."""
        formulas = [source_of(form) for _, form in formulas_in(self.document())]
        return source_offsets(self._source, self.toPlainText(), formulas)

    def _on_anchor_clicked(self, url: QUrl) -> None:
        if url.scheme().lower() in SAFE_SCHEMES:
            QDesktopServices.openUrl(url)

    def _on_look_changed(self) -> None:
        self._style()
        source, self._source = self._source, ""
        self._settled_text, self._settled_end = "", 0
        if self._kind == "markdown":
            self.show_markdown(source)
        elif self._kind == "formula":
            self.show_formula(source)
        else:
            self.show_plain(source)
        self.marks.refresh()

    def _wait(self, waits: bool) -> None:
        """For formulas that are not known yet."""
        if waits and not self.waits:
            formula_drawer().drawn.connect(self._on_drawn)
        elif self.waits and not waits:
            formula_drawer().drawn.disconnect(self._on_drawn)
        self.waits = waits

    def _on_drawn(self) -> None:
        before = self.document().characterCount()
        settled = QTextCursor(self.document())
        settled.setPosition(min(self._settled_end, before - 1))
        waits = update_formulas(self.document())
        self._settled_end = settled.position() if self._settled_end else 0
        self._wait(waits)
        self._fit()
        self.marks.refresh()

    def _style(self) -> None:
        palette = self.palette()
        colours = self._theme.colours
        palette.setColor(QPalette.ColorRole.Text, QColor(colours.secondary if self._quiet else colours.text))
        self.setPalette(palette)
        self.document().setDefaultFont(self._theme.text)
        self._indent()

    def _indent(self) -> None:
        """Qt writes the number of an item into the indentation, and cuts what has no room there."""
        number = self.fontMetrics().horizontalAdvance(f"{self._highest}. ") if self._highest else 0
        self.document().setIndentWidth(max(self._theme.px(_INDENT_PX), number))

    def _write(self, tokens: Sequence[Token]) -> None:
        """Append blocks."""
        writer = ProseWriter(self.document(), self._theme)
        writer.write(tokens)
        if writer.waits:
            self._wait(True)
        self._highest = max(self._highest, writer.highest)
        self._has_quotes |= writer.has_quotes
        self._indent()

    def _drop_tail(self) -> None:
        if not self._settled_text:
            self.document().clear()
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._settled_end)
        form = cursor.blockFormat()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        cursor.setBlockFormat(form)  # an empty block, such as a rule, took that of the next one

    def _fit(self) -> None:
        self.document().setTextWidth(self.viewport().width())
        size = self.document().size()
        bar = self.horizontalScrollBar()
        is_wider = self._scrolls and size.width() > self.viewport().width() + 1
        height = max(ceil(size.height()), 1) + (bar.sizeHint().height() if is_wider else 0)
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt knows quotes by their indentation alone: a bar is drawn at the left of each."""
        super().paintEvent(event)
        if not self._has_quotes:
            return
        painter, ink = QPainter(self.viewport()), QColor(self._theme.colours.line)
        for bar in self.quote_bars(event.rect()):
            painter.fillRect(bar, ink)

    def quote_bars(self, shown: QRect) -> Iterator[QRectF]:
        """The bars of quotes, of the blocks that have a part in `shown`."""
        layout, step, width = self.document().documentLayout(), self.document().indentWidth(), self._theme.px(_BAR_PX)
        block = self.cursorForPosition(shown.topLeft()).block()
        while block.isValid() and (box := layout.blockBoundingRect(block)).top() <= shown.bottom():
            quotes, after = _quotes_of(block), _quotes_of(block.next())
            for at in range(quotes.bit_length()):
                if quotes >> at & 1:
                    goes_on = after >> at & 1
                    end = layout.blockBoundingRect(block.next()).top() if goes_on else box.bottom()
                    yield QRectF(at * step + width, box.top(), width, end - box.top())
            block = block.next()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        sideways = abs(event.angleDelta().x()) > abs(event.angleDelta().y())
        if self._scrolls and (sideways or event.modifiers() & Qt.KeyboardModifier.ShiftModifier):
            super().wheelEvent(event)
        else:
            event.ignore()  # the chat scrolls, not the paragraph


def _quotes_of(block: QTextBlock) -> int:
    """Indentations at which the quotes begin that a block is in, as bits."""
    return int(block.blockFormat().intProperty(QUOTES)) if block.isValid() else 0


class _WithoutFormulas(QTextEdit):
    """A copy of what is selected, each formula as its source. Qt makes the clipboard's data, which outlives Python."""

    def __init__(self, selected: QTextCursor) -> None:
        super().__init__()
        QTextCursor(self.document()).insertFragment(selected.selection())
        formulas_to_source(self.document())
        self.selectAll()
