"""Files that are dragged over a widget or dropped on it. They are never moved: the file manager would delete them."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QDropEvent

_HARMLESS: Final = Qt.DropAction.CopyAction, Qt.DropAction.LinkAction


def has_files(event: QDropEvent) -> bool:
    """Whether files of this computer are dragged, which a field for text leaves to the window."""
    return any(url.isLocalFile() for url in event.mimeData().urls())


def files_of(event: QDropEvent) -> list[str]:
    """The paths of the files on this computer; none if they can only be moved."""
    can = any(event.possibleActions() & one for one in _HARMLESS)
    return [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()] if can else []


def accept(event: QDropEvent) -> None:
    """Take them, whatever the file manager proposes to do with them."""
    event.setDropAction(next(one for one in _HARMLESS if event.possibleActions() & one))
    event.accept()
