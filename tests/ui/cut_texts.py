"""Finds texts that are not seen whole: a label, button, tab, header or field that needs more room than it has.

What ends in … by design (`ElidedLabel`, `ElidedButton`, `Choice`) shows the whole text in its tooltip and is left out.
"""

import re
from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QStyle,
    QStyleOptionFrame,
    QWidget,
)

from kvdesk.paths import catalogues
from kvdesk.translation import Translate, catalogue, english
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel, NumberLabel

STAND_IN: Final = "W\u200b"
"""As wide as a Chinese character (0.97 to 1 em in Inter, the text's font), and a line can break after it: Chinese is
judged with it where no font of the machine has Chinese characters."""
_BREAKS: Final = re.compile("(?<=[\u200b\u3000-\u9fff\uff00-\uffef])|(?=[\u3000-\u9fff])")
_HEADER_PX: Final = 8  # beside the text of a header
_NEAR: Final = 1  # pixels that a style may be off


def longer(one: str, many: str = "", n: int = 1) -> str:
    """A language with about 40 % more letters: every vowel twice, but in placeholders and tags."""
    text, made, inside = english(one, many, n), [], 0
    for i, letter in enumerate(text):
        inside += (letter in "{<") - (letter in "}>")
        is_number = text[i - 1 : i + 1] == "%n"
        made.append(letter * 2 if letter in "aeiouAEIOU" and not inside and not is_number else letter)
    return "".join(made)


def chinese(has_glyphs: bool) -> Translate:
    """The catalogue that ships; what it lacks is English."""
    translate = catalogue(catalogues()["zh_CN"].read_bytes())
    return translate if has_glyphs else lambda *text: _with_stand_ins(translate(*text))


def _with_stand_ins(text: str) -> str:
    return "".join(
        STAND_IN if "\u3000" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef" else letter for letter in text
    )


def cut(root: QWidget) -> Iterator[str]:
    """What is not seen whole in a window, and how much room it lacks."""
    for widget in root.findChildren(QWidget):
        if widget.isVisible() and not isinstance(widget, ElidedLabel | ElidedButton | NumberLabel):
            found = _needed(widget)
            if found is not None:
                yield from _lacking(widget, *found)
            if isinstance(widget, QHeaderView):
                yield from _cut_headers(widget)


def _needed(widget: QWidget) -> tuple[str, QSize] | None:
    """Its text and the room that takes; None if it has none."""
    match widget:
        case QLabel() if widget.text() and widget.wordWrap():
            words = (
                widget.text().replace("\n", " ").split(" ") if widget.textFormat() == Qt.TextFormat.PlainText else []
            )
            widest = max((_line(widget.fontMetrics(), word) for word in words), default=0)
            margins = widget.width() - widget.contentsRect().width()
            return widget.text(), QSize(widest + margins, widget.heightForWidth(widget.width()))
        case QLabel() if widget.text():
            return widget.text(), widget.sizeHint()
        case QAbstractButton() if widget.text():
            return widget.text(), QSize(widget.sizeHint().width(), widget.fontMetrics().height())
        case QLineEdit() if widget.placeholderText() and not isinstance(widget.parentWidget(), QAbstractScrollArea):
            text = widget.placeholderText()
            frame = widget.style().subElementRect(QStyle.SubElement.SE_LineEditContents, _option(widget), widget)
            buttons = 24 if widget.isClearButtonEnabled() else 0
            taken = widget.width() - frame.width() + 4 + (buttons if widget.text() else 0)
            return text, QSize(_line(widget.fontMetrics(), text) + taken, 0)
        case QPlainTextEdit() if widget.placeholderText() and not widget.toPlainText():
            text, room = widget.placeholderText(), widget.viewport().width() - 8
            box = widget.fontMetrics().boundingRect(QRect(0, 0, room, 10_000), int(Qt.TextFlag.TextWordWrap), text)
            return text, QSize(box.width(), box.height())
        case _:
            return None


def _line(metrics: QFontMetrics, text: str) -> int:
    """The width of what cannot be broken: Chinese can, after each character."""
    return max(metrics.horizontalAdvance(part) for part in _BREAKS.split(text))


def _option(widget: QLineEdit) -> QStyleOptionFrame:
    option = QStyleOptionFrame()
    widget.initStyleOption(option)
    return option


def _lacking(widget: QWidget, text: str, needed: QSize) -> Iterator[str]:
    """It is too small for its text, or something around it is too small for it."""
    if needed.width() > widget.width() + _NEAR or needed.height() > widget.height() + _NEAR:
        size = f"{needed.width()} x {needed.height()} in {widget.width()} x {widget.height()}"
        yield f"{_place(widget)}: {text!r} needs {size}"
        return
    around, inner = widget.parentWidget(), widget
    while around is not None and not inner.isWindow():
        box = QRect(widget.mapTo(around, QPoint()), widget.size())
        area = around.parentWidget()
        scrolls = isinstance(area, QAbstractScrollArea) and area.viewport() is around
        if scrolls:
            assert isinstance(area, QAbstractScrollArea)
            if area.horizontalScrollBarPolicy() != Qt.ScrollBarPolicy.ScrollBarAlwaysOff:
                return
            box.setTop(0)
            box.setHeight(0)
        if box.left() < -_NEAR or box.right() > around.width() + _NEAR or box.bottom() > around.height() + _NEAR:
            room = f"{type(around).__name__} {around.size().toTuple()}"
            yield f"{_place(widget)}: {text!r} at {box.getRect()} is outside of {room}"
            return
        if scrolls:
            return  # up and down one scrolls to it
        inner, around = around, around.parentWidget()


def _cut_headers(header: QHeaderView) -> Iterator[str]:
    font = QApplication.font()
    font.setPixelSize(font.pixelSize() - 2)  # as the style sheet has it
    small, model = QFontMetrics(font), header.model()
    if header.orientation() != Qt.Orientation.Horizontal:
        return
    for i in range(header.count()):
        text = str(model.headerData(i, Qt.Orientation.Horizontal) or "")
        tip = str(model.headerData(i, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) or "")
        if text and not header.isSectionHidden(i) and text not in tip:
            needed = small.horizontalAdvance(text) + _HEADER_PX  # Qt's own hint has room for the sign of the order
            if needed > header.sectionSize(i) + _NEAR:
                yield f"{_place(header)}: column {text!r} needs {needed} in {header.sectionSize(i)}"


def _place(widget: QWidget) -> str:
    at: QWidget | None = widget
    while at is not None and not type(at).__module__.startswith("kvdesk."):
        at = at.parentWidget()
    return f"{type(at).__name__}/{type(widget).__name__}"
