"""Fields for several lines that keep no-break spaces and stay fast with long words, as Qt's own do not."""

import re
from typing import Final

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QTextDocument, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.dropped_files import leaves_files

_LONG_RUN: Final = re.compile(r"\S{2000}")


def written(document: QTextDocument) -> str:
    """The text of a document, with its no-break spaces: Qt's `toPlainText` replaces them with spaces."""
    return document.toRawText().replace("\u2029", "\n").replace("\u2028", "\n")


def wrap_for(field: QPlainTextEdit | QTextEdit, text: str, *, is_all: bool = False) -> None:
    """Choose how the field wraps, before `text` is inserted: Qt takes seconds to break a very long word at its end.
    `is_all`: it replaces the text of the field.
    """
    if _LONG_RUN.search(text) is not None:
        field.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    elif is_all or field.document().isEmpty():
        field.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)


class PlainField(QPlainTextEdit):
    """A field for plain text of several lines."""

    def toPlainText(self) -> str:
        return written(self.document())

    def setPlainText(self, text: str) -> None:
        wrap_for(self, text, is_all=True)
        super().setPlainText(text)

    def insertPlainText(self, text: str) -> None:
        wrap_for(self, text)
        super().insertPlainText(text)

    def insertFromMimeData(self, source: QMimeData) -> None:
        wrap_for(self, source.text())
        super().insertFromMimeData(source)


def text_box(name: str = "", placeholder: str = "") -> PlainField:
    """A box for several lines, which Tab leaves."""
    box = PlainField()
    box.setProperty("boxed", True)
    box.setAccessibleName(name)
    box.setPlaceholderText(placeholder)
    box.setTabChangesFocus(True)
    leaves_files(box)
    composes(box)
    return box
