"""The direction of a text: Arabic and Hebrew are drawn from right to left inside a window that goes from left to right.

Documents and Qt's labels see to it themselves, paragraph by paragraph; this is for what is drawn by hand, and for
fields of plain text, which Qt leaves at the left edge.
"""

from unicodedata import bidirectional

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit


def is_right_to_left(text: str) -> bool:
    """By its first letter that has a direction, as Unicode's algorithm has it (UAX #9, P2 and P3)."""
    for letter in text:
        kind = bidirectional(letter)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False


def drawing_flags(text: str) -> int:
    """For `QPainter.drawText`, beside an alignment, which stays as it is: the window's."""
    if not is_right_to_left(text):
        return 0
    return Qt.TextFlag.TextForceRightToLeft.value | Qt.AlignmentFlag.AlignAbsolute.value


def align_by_text(field: QPlainTextEdit) -> None:
    """From now on the text lies at the edge at which its first paragraph begins."""
    field.textChanged.connect(lambda: _align(field))


def keep_left_to_right(field: QPlainTextEdit) -> None:
    """For code, whatever it contains."""
    option = field.document().defaultTextOption()
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    field.document().setDefaultTextOption(option)


def _align(field: QPlainTextEdit) -> None:
    edge = Qt.AlignmentFlag.AlignRight if is_right_to_left(field.toPlainText()) else Qt.AlignmentFlag.AlignLeft
    option = field.document().defaultTextOption()
    if option.alignment() != edge:
        option.setAlignment(edge)
        field.document().setDefaultTextOption(option)
