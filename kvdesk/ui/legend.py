"""What the tints and marks of the cell map mean."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kvdesk.ui.palette import conversation_colour, mix
from kvdesk.ui.theme import Look


class Legend(QWidget):
    """One line of swatches."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Legend of the cell map")
        look.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(200, 20)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._look.colours
        painter = QPainter(self)
        painter.setFont(self._look.small)
        metrics = QFontMetrics(self._look.small)
        x, middle = 0.0, self.height() / 2
        first, second = (conversation_colour(i, colours.dark) for i in (0, 1))
        fresh = mix(first, "#ffffff" if colours.dark else "#000000", 0.65)
        for name in ("free", "walked over", "new", "shared", "head", "n_kv"):
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
            width = metrics.horizontalAdvance(name)
            painter.drawText(QRectF(x + 16, 0, width + 4, self.height()), Qt.AlignmentFlag.AlignVCenter, name)
            x += 16 + width + 16
