"""Widgets side by side, in as many lines as they need."""

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget


class Flow(QWidget):
    """A line is broken between them alone. gaps: pixels between two of a line, and between two lines."""

    def __init__(self, gaps: tuple[int, int]) -> None:
        super().__init__()
        self._gaps = gaps
        self._parts: list[QWidget] = []
        self._sizes: list[QSize] = []  # of the parts, when what is around was last told
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_parts(self, parts: Iterable[QWidget]) -> None:
        """These and no others. Those that were shown before still belong to it."""
        self._parts = list(parts)
        for part in self._parts:
            part.setParent(self)
            part.show()
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(200))

    def minimumSizeHint(self) -> QSize:
        return QSize(max((one.sizeHint().width() for one in self._parts), default=0), 0)

    def heightForWidth(self, width: int) -> int:
        return max((box.bottom() + 1 for box in self._boxes(width)), default=0)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a part needs another size
            self._fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width())

    def _fit(self) -> None:
        """What is around is laid out again, which takes milliseconds in a page, only if a part needs another size."""
        self._place(self.width())
        sizes = [part.sizeHint() for part in self._parts]
        if sizes != self._sizes:
            self._sizes = sizes
            self.updateGeometry()

    def _place(self, width: int) -> None:
        for one, box in zip(self._parts, self._boxes(width), strict=True):
            mirrored = QRect(QPoint(width - box.right() - 1, box.top()), box.size())
            one.setGeometry(mirrored if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else box)

    def _boxes(self, width: int) -> list[QRect]:
        boxes: list[QRect] = []
        x = y = 0
        for size in (one.sizeHint() for one in self._parts):
            if x and x + size.width() > width:
                x, y = 0, y + size.height() + self._gaps[1]
            boxes.append(QRect(QPoint(x, y), size))
            x += size.width() + self._gaps[0]
        return boxes
