"""A formula inside of a text document: one character (U+FFFC) that is painted as a formula on the baseline."""

from functools import cache
from math import ceil
from typing import Final

from PySide6.QtCore import QCoreApplication, QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from kvdesk.ui.markdown.formulas import Formula, formula_drawer, picture

OBJECT: Final = "\ufffc"
_TYPE: Final = QTextFormat.ObjectTypes.UserObject.value + 1
_LATEX, _DISPLAY, _SOURCE, _FONT = (QTextFormat.Property.UserProperty.value + i for i in range(1, 5))
_SCALE: Final = 1.12  # the letters of the formulas' font are lower than those of the text beside them
_BESIDE_EM: Final = 0.06  # of room on both sides
_SMALLEST: Final = 0.5  # of its size: an inline formula that is wider than the text is drawn smaller


def insert_formula(
    cursor: QTextCursor, form: QTextCharFormat, latex: str, source: str, *, display: bool = False
) -> bool:
    """Insert a formula in the size and colour of `form`; `source` is what a copy of it gives. Where it cannot be read,
    its source. Returns whether it is not known yet: `update_formulas` when it is.
    """
    drawer = formula_drawer()
    formula = drawer.look(latex, display=display)
    waits = formula is None and drawer.is_waiting(latex, display=display)
    if formula is None and not waits:
        cursor.insertText(source.replace("\n", "\u2028"), form)
        return False
    layout = cursor.document().documentLayout()
    layout.registerHandler(_TYPE, _handler())
    made = QTextCharFormat(form)
    made.setObjectType(_TYPE)
    for name, value in ((_LATEX, latex), (_DISPLAY, display), (_SOURCE, source), (_FONT, form.font())):
        made.setProperty(name, value)
    cursor.insertText(OBJECT, _on_baseline(made, formula))
    return waits


def formulas_in(document: QTextDocument) -> list[tuple[int, QTextCharFormat]]:
    """Their positions and formats."""
    text = document.toPlainText()
    cursor = QTextCursor(document)
    found = []
    at = text.find(OBJECT)
    while at >= 0:
        cursor.setPosition(at + 1)
        if cursor.charFormat().objectType() == _TYPE:
            found.append((at, cursor.charFormat()))
        at = text.find(OBJECT, at + 1)
    return found


def source_of(form: QTextCharFormat) -> str:
    """What a copy of the formula gives."""
    return str(form.property(_SOURCE))


def update_formulas(document: QTextDocument) -> bool:
    """Show those that are known by now; what cannot be read becomes its source. Returns whether some are missing."""
    drawer = formula_drawer()
    missing = False
    cursor = QTextCursor(document)
    cursor.beginEditBlock()
    for at, form in reversed(formulas_in(document)):
        latex, display = str(form.property(_LATEX)), bool(form.property(_DISPLAY))
        formula = drawer.look(latex, display=display)
        cursor.setPosition(at)
        cursor.setPosition(at + 1, QTextCursor.MoveMode.KeepAnchor)
        if formula is not None:
            cursor.setCharFormat(_on_baseline(form, formula))
        elif drawer.is_waiting(latex, display=display):
            missing = True
        else:
            _insert_source(cursor, form)
    cursor.endEditBlock()
    return missing


def formulas_to_source(document: QTextDocument) -> None:
    """Every formula as it was written."""
    cursor = QTextCursor(document)
    for at, form in reversed(formulas_in(document)):
        cursor.setPosition(at)
        cursor.setPosition(at + 1, QTextCursor.MoveMode.KeepAnchor)
        _insert_source(cursor, form)


def _insert_source(cursor: QTextCursor, form: QTextCharFormat) -> None:
    plain = QTextCharFormat(form)
    plain.setObjectType(QTextFormat.ObjectTypes.NoObject.value)
    plain.setFont(_font(form))
    plain.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignNormal)
    cursor.insertText(source_of(form).replace("\n", "\u2028"), plain)


def text_of(cursor: QTextCursor) -> str:
    """The selected text, each formula as its source."""
    selected = cursor.selectedText().replace("\u2029", "\n").replace("\u2028", "\n").replace("\u00a0", " ")
    if OBJECT not in selected:
        return selected
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    sources = iter([source_of(form) for at, form in formulas_in(cursor.document()) if start <= at < end])
    return "".join(next(sources, char) if char == OBJECT else char for char in selected)


class _FormulaObject(QPyTextObject):
    def intrinsicSize(self, doc: QTextDocument, _position: int, form: QTextFormat) -> QSizeF:
        formula, font = _formula(form), _font(form)
        if formula is None:
            metrics = QFontMetricsF(font)
            return QSizeF(min(metrics.horizontalAdvance(str(form.property(_SOURCE))), _room(doc)), metrics.height())
        em = _em(doc, form, formula)
        ascent = max(formula.ascent * em, QFontMetricsF(font).ascent())  # the baseline is that of text beside it
        return QSizeF((formula.width + 2 * _BESIDE_EM) * em, ascent + _descent(form))

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, doc: QTextDocument, _position: int, form: QTextFormat
    ) -> None:
        rect = QRectF(rect)
        formula, font = _formula(form), _font(form)
        colour = form.foreground().color()
        if formula is None:
            painter.setFont(font)
            painter.setPen(colour)
            text = str(form.property(_SOURCE)).replace("\n", " ")
            text = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width() + 1)
            painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, text)
            return
        em, ratio = _em(doc, form, formula), painter.device().devicePixelRatio()
        top = rect.bottom() - _descent(form) - formula.ascent * em
        left = rect.left() + _BESIDE_EM * em
        place = QPointF(round(left * ratio) / ratio, round(top * ratio) / ratio)
        painter.drawImage(place, picture(formula, colour.name(), em, ratio))


@cache
def _handler() -> _FormulaObject:
    return _FormulaObject(QCoreApplication.instance())


def _formula(form: QTextFormat) -> Formula | None:
    return formula_drawer().look(str(form.property(_LATEX)), display=bool(form.property(_DISPLAY)))


def _font(form: QTextFormat) -> QFont:
    font = form.property(_FONT)
    assert isinstance(font, QFont)
    return font


def _room(doc: QTextDocument) -> float:
    return doc.textWidth() if doc.textWidth() > 0 else 1e6


def _em(doc: QTextDocument, form: QTextFormat, formula: Formula) -> float:
    em = _SCALE * _font(form).pixelSize()
    if form.property(_DISPLAY):
        return em
    return em * min(1.0, max(_SMALLEST, _room(doc) / ((formula.width + 2 * _BESIDE_EM) * em)))


def _descent(form: QTextFormat) -> float:
    return QFontMetricsF(form.toCharFormat().font()).descent()


def _on_baseline(form: QTextCharFormat, formula: Formula | None) -> QTextCharFormat:
    """Qt puts an object as far below the baseline as the descent of its font is: of a font in a size for that."""
    made = QTextCharFormat(form)
    made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    if formula is not None:
        font = QFont(_font(form))
        depth = max(formula.depth, 0.0) * _SCALE * font.pixelSize()
        font.setPixelSize(max(font.pixelSize(), ceil(depth / _descent_of_pixel(font.family()))))
        made.setFont(font)
    return made


@cache
def _descent_of_pixel(family: str) -> float:
    font = QFont(family)
    font.setPixelSize(100)
    return QFontMetricsF(font).descent() / 100
