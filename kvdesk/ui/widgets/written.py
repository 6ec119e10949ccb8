"""What a person writes, as it was written: Qt's `toPlainText` makes blanks of no-break spaces."""

from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QPlainTextEdit


def written(document: QTextDocument) -> str:
    """The text of a document that a person writes."""
    return document.toRawText().replace("\u2029", "\n").replace("\u2028", "\n")


class PlainField(QPlainTextEdit):
    """A field for plain text of several lines."""

    def toPlainText(self) -> str:
        return written(self.document())
