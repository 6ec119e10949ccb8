"""A small graph over time. It is drawn while two threads decode, so it is painted here, in 0.2 ms: pyqtgraph takes 3.

Plots that are moved, zoomed and exported are `time_graph.TimePlot`.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from kvdesk.ui.graphs.graph import BELOW_PX, LEFT_PX, TICKS_PX, WORD_PX, Drawing, Scale, ink_of
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graph_spec import GraphSpec
from kvdesk.viewmodel.series import FloatArray

_LEAST_PX: Final = 56  # height of the plot
_WORD: Final = QSize(WORD_PX, 14)


class TrendPlot(QWidget):
    """A scale at the left, curves, a line for every operation and one at the time that is read out.

    `ticks`: writes the seconds of the axis under it.
    """

    painted = Signal(float)  # milliseconds it took
    hovered = Signal(object)  # a second of the axis, None: outside

    def __init__(self, theme: Theme, spec: GraphSpec, *, ticks: bool) -> None:
        super().__init__()
        self.spec = spec
        self.drawing = Drawing((0.0, 10.0), [], None, [], [])
        self._theme, self._has_ticks = theme, ticks
        self._line: float | None = None
        self.setAccessibleName(tr("{title} over time").format(title=spec.title))
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setMinimumHeight(_LEAST_PX + (TICKS_PX if ticks else 0))

    @property
    def inside(self) -> QRectF:
        """Where the curves are, in pixels of the widget."""
        below = TICKS_PX if self._has_ticks else BELOW_PX
        return QRectF(LEFT_PX, 0, max(self.width() - LEFT_PX, 1), max(self.height() - below, 1))

    def set_colours(self) -> None:
        self.update()

    def show_drawing(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.update()

    def show_line(self, second: float | None) -> None:
        if second != self._line:
            self._line = second
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        begun = time.perf_counter()
        colours, inside, highest = self._theme.colours, self.inside, self.drawing.highest
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), QColor(colours.panel))
            scale = None if highest is None else Scale.of(highest, inside.height(), self.spec.top)
            self._draw_axes(painter, inside, scale)
            painter.setClipRect(inside)
            self._draw_marks(painter, inside)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if scale is not None:
                self._draw_curves(painter, inside, scale)
            if self._line is not None:
                painter.setPen(QColor(colours.secondary))
                x = round(self._x(self._line, inside))
                painter.drawLine(QLineF(x, inside.top(), x, inside.bottom()))
        self.painted.emit((time.perf_counter() - begun) * 1e3)

    def _x(self, second: float, inside: QRectF) -> float:
        begin, end = self.drawing.seconds
        return inside.left() + (second - begin) / (end - begin) * inside.width()

    def _draw_curves(self, painter: QPainter, inside: QRectF, scale: Scale) -> None:
        shown = list(zip(self.spec.curves, self.drawing.curves, strict=True))
        for curve, (seconds, values) in reversed(shown):  # the first is on top
            ink = QColor(ink_of(self._theme, curve.ink))
            for line in self._lines(seconds, values, inside, scale):
                painter.setPen(QPen(ink, 1.5))
                painter.drawPolyline(line)
                if curve.style == "dots" or line.size() == 1:
                    painter.setPen(QPen(ink, 5.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                    painter.drawPoints(line)

    def _lines(self, seconds: FloatArray, values: FloatArray, inside: QRectF, scale: Scale) -> list[QPolygonF]:
        """A curve in pixels; where nothing was measured one line ends."""
        begin, end = self.drawing.seconds
        xs = inside.left() + (seconds - begin) * (inside.width() / (end - begin))
        ys = inside.bottom() - values * (inside.height() / scale.end)
        edges = [-1, *np.flatnonzero(np.isnan(ys)).tolist(), ys.size]
        points = [QPointF(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
        return [QPolygonF(points[first + 1 : last]) for first, last in pairwise(edges) if last - first > 1]

    def _draw_axes(self, painter: QPainter, inside: QRectF, scale: Scale | None) -> None:
        colours = self._theme.colours
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(colours.line))
        painter.drawLine(QLineF(inside.left() - 1, inside.top(), inside.left() - 1, inside.bottom()))
        painter.drawLine(QLineF(inside.left() - 1, inside.bottom(), inside.right(), inside.bottom()))
        if scale is None:
            return
        painter.setPen(QColor(colours.secondary))
        half, centre = _WORD.height() / 2, Qt.AlignmentFlag.AlignVCenter
        for value, text in scale.ticks:
            middle = inside.bottom() - value / scale.end * inside.height()
            middle = min(max(middle, half), self.height() - half)
            box = QRectF(0, middle - half, LEFT_PX - 8, _WORD.height())
            painter.drawText(box, centre | Qt.AlignmentFlag.AlignRight, text)
        for second, text in self.drawing.ticks if self._has_ticks else ():
            x = self._x(second, inside)
            word = QRectF(x - _WORD.width() / 2, inside.bottom() + 4, _WORD.width(), _WORD.height())
            painter.drawText(word, centre | Qt.AlignmentFlag.AlignHCenter, text)

    def _draw_marks(self, painter: QPainter, inside: QRectF) -> None:
        """A line for every operation, and a triangle in the colour of its conversation."""
        colours = self._theme.colours
        begin, end = self.drawing.seconds
        marks = self.drawing.marks
        seen = [(round(self._x(second, inside)), ink) for second, ink in marks if begin <= second <= end]
        painter.setPen(QColor(palette.mix(colours.panel, colours.secondary, 0.4)))
        painter.drawLines([QLineF(x, inside.top(), x, inside.bottom()) for x, _ in seen])
        painter.setPen(QPen(QColor(colours.secondary), 1, Qt.PenStyle.DashLine))
        edges = [round(self._x(edge, inside)) for gap in self.drawing.gaps for edge in gap]
        painter.drawLines([QLineF(x, inside.top(), x, inside.bottom()) for x in edges])
        painter.setPen(Qt.PenStyle.NoPen)
        for x, ink in seen:
            painter.setBrush(QColor(ink))
            painter.drawPolygon(QPolygonF([QPointF(x - 3.5, 0), QPointF(x + 4.5, 0), QPointF(x + 0.5, 6)]))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        begin, end = self.drawing.seconds
        inside, at = self.inside, event.position()
        share = (at.x() - inside.left()) / inside.width()
        self.hovered.emit(begin + share * (end - begin) if inside.contains(at) else None)

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)  # type: ignore[arg-type]
        self.hovered.emit(None)
