"""Words marked in a text that is shown, as a search does, and places of its source."""

from collections.abc import Sequence

from PySide6.QtGui import QColor, QTextCursor, QTextDocument
from PySide6.QtWidgets import QTextEdit

from kvdesk.folding import places
from kvdesk.ui.markdown.offsets import to_shown
from kvdesk.ui.widgets.style.colours import Colours


def word_marks(
    document: QTextDocument, words: Sequence[str], colours: Colours, at: int = -1
) -> list[QTextEdit.ExtraSelection]:
    """One for each place where a word stands, first to last; number `at` is where one is. For `setExtraSelections` of
    the document's widget.
    """
    text = document.toPlainText()
    marks: list[QTextEdit.ExtraSelection] = []
    for first, last in places(text, words):
        mark = QTextEdit.ExtraSelection()
        cursor = QTextCursor(document)
        cursor.setPosition(utf16(text[:first]))
        cursor.setPosition(utf16(text[:last]), QTextCursor.MoveMode.KeepAnchor)
        mark.cursor = cursor
        is_here = len(marks) == at
        mark.format.setBackground(QColor(colours.accent if is_here else colours.selection))
        if is_here:
            mark.format.setForeground(QColor(colours.accent_text))
        marks.append(mark)
    return marks


def source_marks(
    document: QTextDocument, offsets: Sequence[int], first: int, last: int, colour: str
) -> list[QTextEdit.ExtraSelection]:
    """One over what is shown of characters `[first, last)` of the source (see `source_offsets`), if any of it is."""
    start, end = to_shown(offsets, max(first, 0), last)
    if first >= last or start >= end:
        return []
    text = document.toPlainText()
    mark = QTextEdit.ExtraSelection()
    cursor = QTextCursor(document)
    cursor.setPosition(utf16(text[:start]))
    cursor.setPosition(utf16(text[:end]), QTextCursor.MoveMode.KeepAnchor)
    mark.cursor = cursor
    mark.format.setBackground(QColor(colour))
    return [mark]


def characters(text: str, units: int) -> int:
    """How many characters of a text the first `units` are that Qt counts."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def utf16(text: str) -> int:
    """How long a text is for Qt, which counts characters beyond U+FFFF twice."""
    return len(text) + sum(character > "\uffff" for character in text)
