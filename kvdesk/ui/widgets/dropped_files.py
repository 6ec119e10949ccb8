"""Files that are dragged over a widget or dropped on it. They are never moved: the file manager would delete them."""

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QAbstractScrollArea

_HARMLESS: Final = Qt.DropAction.CopyAction, Qt.DropAction.LinkAction


def leaves_files(field: QAbstractScrollArea) -> None:
    """A field for text into which no files are dropped: the window takes them."""
    field.viewport().installEventFilter(_Leaving(field))


def files_of(event: QDropEvent) -> list[str]:
    """The paths of the files on this computer; none if they can only be moved."""
    can = any(event.possibleActions() & one for one in _HARMLESS)
    return [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()] if can else []


def accept(event: QDropEvent) -> None:
    """Take them, whatever the file manager proposes to do with them."""
    event.setDropAction(next(one for one in _HARMLESS if event.possibleActions() & one))
    event.accept()


class _Leaving(QObject):
    """Belongs to the field."""

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QDragEnterEvent) or not any(url.isLocalFile() for url in event.mimeData().urls()):
            return False
        event.ignore()
        return True
