"""A key of colours: swatches and their words, in as many lines as they need."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import zip_longest
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QImage, QImageWriter, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kvdesk.ui.widgets.controls import label

_GAP_PX: Final = 14


class Legend(QWidget):
    """A label for each entry; a line is broken between them alone."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: list[QLabel] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_entries(self, entries: Iterable[tuple[str, str]]) -> None:
        """Each is a `swatch` or an `ink`, in rich text, and plain words."""
        labels: list[QLabel] = []
        for known, entry in zip_longest(self._labels, list(entries)):
            if entry is None:
                known.deleteLater()
                continue
            labels.append(known or label("", tone="secondary", scale="small", rich=True))
            labels[-1].setParent(self)
            if (text := f"{entry[0]}&nbsp; {escape(entry[1])}") != labels[-1].text():
                labels[-1].setText(text)
            labels[-1].show()
        self._labels = labels
        self._place(self.width())
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(200))

    def minimumSizeHint(self) -> QSize:
        return QSize(max((one.sizeHint().width() for one in self._labels), default=0), 0)

    def heightForWidth(self, width: int) -> int:
        return max((box.bottom() + 1 for box in self._boxes(width)), default=0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width())

    def _place(self, width: int) -> None:
        for one, box in zip(self._labels, self._boxes(width), strict=True):
            mirrored = QRect(QPoint(width - box.right() - 1, box.top()), box.size())
            one.setGeometry(mirrored if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else box)

    def _boxes(self, width: int) -> list[QRect]:
        boxes: list[QRect] = []
        x = y = 0
        for size in (one.sizeHint() for one in self._labels):
            if x and x + size.width() > width:
                x, y = 0, y + size.height()
            boxes.append(QRect(QPoint(x, y), size))
            x += size.width() + _GAP_PX
        return boxes


def ink(colour: str) -> str:
    """A square of one colour."""
    return f'<span style="color:{colour}">■</span>'


def swatch(image: QImage, width: int, height: int) -> str:
    """A picture in so many pixels of the text."""
    data = QBuffer()
    data.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(data, b"PNG").write(image)
    png = data.data().toBase64().toStdString()
    return f'<img src="data:image/png;base64,{png}" width="{width}" height="{height}" style="vertical-align:middle">'
