"""Writes Markdown into a QTextDocument from markdown-it's tokens, with a cursor: no HTML is ever made or read.

Whatever a model or a person writes is therefore text: tags stay visible as they were typed, and no image or file is
loaded. Links are kept only for the schemes of `SAFE_SCHEMES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextList,
    QTextListFormat,
    QTextTableCellFormat,
    QTextTableFormat,
)

from kvdesk.ui.markdown.formula_object import insert_formula
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme

if TYPE_CHECKING:
    from markdown_it.token import Token

SAFE_SCHEMES: Final = ("http", "https", "mailto")
QUOTES: Final = QTextFormat.Property.UserProperty.value + 1
"""Of a block: a bit for each indentation at which a quote begins that the block is in."""
_DEEPEST: Final = 30
_RULE: Final = QTextFormat.Property.BlockTrailingHorizontalRulerWidth.value
_GAP_PX: Final = 8
_LEADING: Final = 128.0  # percent of what the font asks for
_BULLET_STRETCH: Final = 200  # percent
_CELL_PX: Final = 8  # around the text of a cell of a table
_TASKS: Final = {
    "[ ] ": QTextBlockFormat.MarkerType.Unchecked,
    "[x] ": QTextBlockFormat.MarkerType.Checked,
    "[X] ": QTextBlockFormat.MarkerType.Checked,
}
_ALIGNMENTS: Final = {
    "text-align:center": Qt.AlignmentFlag.AlignHCenter,
    "text-align:right": Qt.AlignmentFlag.AlignRight,
}
_BULLETS: Final = (QTextListFormat.Style.ListDisc, QTextListFormat.Style.ListCircle, QTextListFormat.Style.ListSquare)


def top_level_starts(tokens: Sequence[Token]) -> list[int]:
    """Index of the first token of each top-level block."""
    return [i for i, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]


def set_leading(form: QTextBlockFormat) -> None:
    """The distance between the lines of all text that one reads."""
    form.setLineHeight(_LEADING, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)


def set_plain(document: QTextDocument, text: str) -> None:
    """Show `text` as it is written, with that distance between its lines."""
    document.setPlainText(text)
    form, whole = QTextBlockFormat(), QTextCursor(document)
    set_leading(form)
    whole.select(QTextCursor.SelectionType.Document)
    whole.mergeBlockFormat(form)


class ProseWriter:
    """One writing of a run of top-level blocks at the end of a document."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        self._cursor = QTextCursor(document)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._theme = theme
        # The first block of a document, and the one Qt puts after a table, are there already.
        is_empty = self._cursor.atBlockStart() and self._cursor.atBlockEnd()
        self._fresh = is_empty and not self._cursor.blockFormat().hasProperty(_RULE)
        self._chars = [self._plain()]
        self._lists: list[QTextListFormat] = []
        self._item_open = False
        self._item_begins = False  # nothing of it is written yet
        self._quotes: list[int] = []  # the indentation at which each quote that is open begins
        self.has_quotes = False
        self.highest = 0  # number of an item of a list
        self.waits = False  # for formulas that are not known yet

    def write_formula(self, latex: str) -> None:
        """Append a display formula."""
        self._start_block()
        form = self._cursor.blockFormat()
        form.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._cursor.setBlockFormat(form)
        self._formula(latex, f"$$\n{latex}\n$$", display=True)

    def write(self, tokens: Sequence[Token]) -> None:
        """Append the blocks of `tokens`, as `MarkdownIt.parse` returned them."""
        whole = QTextCursor(self._cursor)
        whole.beginEditBlock()  # laid out once, not after every word
        self._write(tokens)
        whole.endEditBlock()

    def _write(self, tokens: Sequence[Token]) -> None:
        i = 0
        while i < len(tokens):
            token = tokens[i]
            if token.type == "table_open":
                end = next(j for j in range(i, len(tokens)) if tokens[j].type == "table_close")
                self._table(tokens[i:end])
                i = end
            else:
                self._block(token)
            i += 1

    def _block(self, token: Token) -> None:
        match token.type:
            case "paragraph_open":
                self._start_block(bottom=4 if token.hidden else _GAP_PX)
            case "inline":
                self._inline(self._without_task(token.children or []))
            case "hr":
                self._start_block(bottom=_GAP_PX)
                form = self._cursor.blockFormat()
                form.setBackground(QColor(self._theme.colours.line))  # of the rule alone
                form.setProperty(_RULE, QTextLength(QTextLength.Type.PercentageLength, 100))
                self._cursor.setBlockFormat(form)
            case "code_block" | "fence":
                self._start_block(bottom=_GAP_PX)
                form = self._cursor.blockFormat()
                form.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
                self._cursor.setBlockFormat(form)
                self._cursor.insertText(token.content.rstrip("\n").replace("\n", "\u2028"), self._code())
            case "heading_open" | "blockquote_open":
                self._open(token)
            case "heading_close" | "blockquote_close":
                self._chars.pop()
                if token.type == "blockquote_close":
                    self._quotes.pop()
            case _:
                self._list_token(token)

    def _without_task(self, children: list[Token]) -> list[Token]:
        """A box is drawn for an item that begins with `[ ]` or `[x]`, which is then left out."""
        first = children[0] if children and children[0].type == "text" else None
        starts_item = self._item_begins and first is not None
        self._item_begins = False
        if not starts_item or first is None or first.content[:4] not in _TASKS:
            return children
        form = self._cursor.blockFormat()
        form.setMarker(_TASKS[first.content[:4]])
        self._cursor.setBlockFormat(form)
        return [first.copy(content=first.content[4:]), *children[1:]]

    def _open(self, token: Token) -> None:
        if token.type == "blockquote_open":
            self.has_quotes = True
            self._quotes.append(len(self._quotes) + len(self._lists))
            self._chars.append(self._toned(self._theme.colours.secondary))
            return
        self._start_block(top=_GAP_PX, bottom=4)
        char = QTextCharFormat(self._chars[-1])
        fonts = {"h1": self._theme.title, "h2": self._theme.large}
        char.setFont(fonts.get(token.tag, self._theme.strong))
        self._chars.append(char)

    def _list_token(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._lists.append(self._list_format(token))
            case "list_item_open":
                self._item_open = self._item_begins = True
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                if not self._lists:
                    last = self._cursor.blockFormat()
                    last.setBottomMargin(_GAP_PX)
                    self._cursor.setBlockFormat(last)

    def _start_block(self, top: int = 0, bottom: int = 0) -> None:
        form = QTextBlockFormat()
        form.setTopMargin(0 if self._fresh else top)
        form.setBottomMargin(bottom)
        set_leading(form)
        form.setIndent(len(self._quotes) + (0 if self._item_open else len(self._lists)))
        if self._quotes:
            form.setProperty(QUOTES, sum(1 << min(at, _DEEPEST) for at in self._quotes))
        if self._fresh:
            self._cursor.setBlockFormat(form)
            self._fresh = False
        else:
            self._cursor.insertBlock(form, self._chars[-1])
        if self._lists and self._item_open:
            self._attach_to_list()
            self._item_open = False

    def _attach_to_list(self) -> None:
        form = self._lists[-1]
        if form.style() != QTextListFormat.Style.ListDecimal:
            self._cursor.setBlockCharFormat(self._bullet())
        block = self._cursor.block().previous()
        while block.isValid():
            other: QTextList | None = block.textList()  # the stubs do not know that it may be None
            if other is None or other.format().indent() < form.indent():
                break
            if other.format() == form:
                other.add(self._cursor.block())
                self._count(form, other.count())
                return
            block = block.previous()
        self._cursor.createList(form)
        self._count(form, 1)

    def _bullet(self) -> QTextCharFormat:
        """Qt leaves the room of a blank of this font between bullet and text, which is too little."""
        char, font = QTextCharFormat(self._chars[-1]), QFont(self._theme.text)
        font.setStretch(_BULLET_STRETCH)
        char.setFont(font)
        return char

    def _count(self, form: QTextListFormat, n_items: int) -> None:
        if form.style() == QTextListFormat.Style.ListDecimal:
            self.highest = max(self.highest, form.start() + n_items - 1)

    def _list_format(self, token: Token) -> QTextListFormat:
        form = QTextListFormat()
        depth = len(self._lists)
        if token.type == "ordered_list_open":
            form.setStyle(QTextListFormat.Style.ListDecimal)
            form.setStart(int(token.attrGet("start") or 1))
        else:
            form.setStyle(_BULLETS[min(depth, len(_BULLETS) - 1)])
        form.setIndent(depth + 1 + len(self._quotes))
        form.setProperty(QTextListFormat.Property.UserProperty, id(token))  # two lists in a row stay two lists
        return form

    def _inline(self, children: Sequence[Token]) -> None:
        for child in children:
            match child.type:
                case "text":
                    self._cursor.insertText(child.content, self._chars[-1])
                case "formula":
                    closing = {"\\(": "\\)", "\\[": "\\]"}.get(child.markup, child.markup)
                    source = f"{child.markup}{child.content}{closing}"
                    self._formula(child.content, source, display=child.markup in ("$$", "\\["))
                case "code_inline":
                    self._cursor.insertText(child.content, self._code())
                case "softbreak" | "hardbreak":  # models mean the lines they write: poems, addresses
                    self._cursor.insertText("\u2028", self._chars[-1])
                case "image":
                    self._cursor.insertText(child.content or "image", self._chars[-1])
                case "strong_open" | "em_open" | "s_open" | "link_open":
                    self._chars.append(self._inline_format(child))
                case "strong_close" | "em_close" | "s_close" | "link_close":
                    self._chars.pop()
                case _:
                    self._cursor.insertText(child.content, self._chars[-1])

    def _formula(self, latex: str, source: str, *, display: bool) -> None:
        self.waits |= insert_formula(self._cursor, self._chars[-1], latex, source, display=display)

    def _inline_format(self, token: Token) -> QTextCharFormat:
        form = QTextCharFormat(self._chars[-1])
        if token.type == "strong_open":
            form.setFontWeight(QFont.Weight.DemiBold.value)
        elif token.type == "em_open":
            form.setFontItalic(True)
        elif token.type == "s_open":
            form.setFontStrikeOut(True)
        else:
            address = str(token.attrGet("href") or "")
            if QUrl(address).scheme().lower() in SAFE_SCHEMES:
                form.setAnchor(True)
                form.setAnchorHref(address)
                form.setToolTip(plain_tip(address))
                form.setFontUnderline(True)
        return form

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[Token]] = []
        alignments: list[Qt.AlignmentFlag | None] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "th_open":
                alignments.append(_ALIGNMENTS.get(str(token.attrGet("style") or "")))
            elif token.type == "inline":
                rows[-1].append(token)
        columns = max(len(row) for row in rows)
        form = QTextTableFormat()
        form.setBorder(0)
        form.setBorderCollapse(True)
        form.setCellSpacing(0)
        form.setTopMargin(4)
        form.setBottomMargin(_GAP_PX)
        form.setWidth(QTextLength())
        table = self._cursor.insertTable(len(rows), columns, form)
        for r, row in enumerate(rows):
            for c, cell in enumerate(row):
                place = table.cellAt(r, c)
                place.setFormat(self._cell_format(is_first=c == 0, is_last_row=r == len(rows) - 1))
                self._cursor = place.firstCursorPosition()
                if c < len(alignments) and (alignment := alignments[c]) is not None:
                    block = self._cursor.blockFormat()
                    block.setAlignment(alignment)
                    self._cursor.setBlockFormat(block)
                if r == 0:
                    char = self._plain()
                    char.setFontWeight(QFont.Weight.DemiBold.value)
                    self._chars.append(char)
                self._inline(cell.children or [])
                if r == 0:
                    self._chars.pop()
        self._cursor = QTextCursor(table.document())
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        thin = QTextBlockFormat()
        thin.setLineHeight(1.0, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self._cursor.setBlockFormat(thin)
        self._fresh = True

    def _cell_format(self, *, is_first: bool, is_last_row: bool) -> QTextTableCellFormat:
        """Room around the text, and a rule below all rows but the last: no grid."""
        form = QTextTableCellFormat()
        form.setTopPadding(self._theme.px(_CELL_PX) * 0.75)
        form.setBottomPadding(self._theme.px(_CELL_PX) * 0.75)
        form.setLeftPadding(0 if is_first else self._theme.px(_CELL_PX))
        form.setRightPadding(self._theme.px(_CELL_PX))
        if not is_last_row:
            form.setBottomBorder(1)
            form.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            form.setBottomBorderBrush(QBrush(QColor(self._theme.colours.line)))
        return form

    def _plain(self) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._theme.text)
        form.setForeground(QColor(self._theme.colours.text))
        return form

    def _toned(self, colour: str) -> QTextCharFormat:
        form = QTextCharFormat(self._chars[-1])
        form.setForeground(QColor(colour))
        return form

    def _code(self) -> QTextCharFormat:
        form = QTextCharFormat(self._chars[-1])
        form.setFont(self._theme.mono)
        form.setBackground(
            QColor(self._theme.colours.raised if self._theme.colours.dark else self._theme.colours.hover)
        )
        return form
