"""Files that are dragged over a widget and dropped on it, as a file manager does."""

from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget


def dragged(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def drop(target: QWidget, *paths: Path) -> bool:
    """Whether the target takes files that are dropped on it."""
    data = dragged(*paths)
    about = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    enter = QDragEnterEvent(QPoint(5, 5), *about)
    enter.ignore()
    QApplication.sendEvent(target, enter)
    QApplication.sendEvent(target, QDropEvent(QPointF(5, 5), *about))
    return enter.isAccepted()
