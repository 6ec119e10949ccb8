"""What the tints and marks of the cell map mean."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kvdesk.ui.palette import conversation_colour, mix
from kvdesk.ui.theme import Look

_ROW_PX: Final = 18


class Legend(QWidget):
    """Swatches in one line, or two where the pane is narrow."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Legend of the cell map")
        look.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * _ROW_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._look.colours
        painter = QPainter(self)
        painter.setFont(self._look.small)
        metrics = QFontMetrics(self._look.small)
        x, top = 0.0, 0.0
        first, second = (conversation_colour(i, colours.dark) for i in (0, 1))
        fresh = mix(first, "#ffffff" if colours.dark else "#000000", 0.65)
        for name in ("free", "walked over", "new", "shared", "head", "n_kv"):
            width = metrics.horizontalAdvance(name)
            if x + 16 + width > self.width():
                x, top = 0.0, top + _ROW_PX
            middle = top + _ROW_PX / 2
            box = QRectF(x, middle - 5, 10, 10)
            if name == "head":
                painter.setPen(QPen(QColor(colours.text), 1.5))
                painter.drawRect(box.adjusted(1, 1, -1, -1))
            elif name == "n_kv":
                pen = QPen(QColor(colours.text), 1)
                pen.setStyle(Qt.PenStyle.DashLine)
                painter.setPen(pen)
                painter.drawLine(QPointF(box.left(), middle), QPointF(box.right(), middle))
            else:
                tints = {"free": colours.cell_free, "walked over": colours.cell_span, "new": fresh}
                painter.fillRect(box, QColor(tints.get(name, first)))
                if name == "shared":
                    painter.fillRect(box.adjusted(0, 5.5, 0, 0), QColor(second))
            painter.setPen(QColor(colours.secondary))
            painter.drawText(QRectF(x + 16, top, width + 4, _ROW_PX), Qt.AlignmentFlag.AlignVCenter, name)
            x += 16 + width + 16
