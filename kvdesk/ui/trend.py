"""A small graph over time. It is drawn while two threads decode, so it is painted here, in 0.2 ms: pyqtgraph takes 3.

Graphs that are moved, zoomed and exported are `time_graph.TimeGraph`.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from kvdesk.ui import palette
from kvdesk.ui.graph import LEFT_PX, TICKS_PX, Graph, RowSpec, Scale, ink_of, readings
from kvdesk.ui.series import FloatArray
from kvdesk.ui.theme import Look
from kvdesk.ui.time_axis import TimeAxis

_LEAST_PX: Final = 28  # height of the plot
_BELOW_PX: Final = 4  # under a plot without a time axis
_TICK_PX: Final = 72  # from one word of the time axis to the next
_WORD: Final = QSize(_TICK_PX, 14)


class Trend(Graph):
    """`ticks`: writes the seconds of the axis under it."""

    def __init__(self, look: Look, spec: RowSpec, axis: TimeAxis, *, ticks: bool) -> None:
        self.plot = TrendPlot(look, spec, ticks=ticks)
        super().__init__(look, spec, axis, self.plot)
        self.plot.hovered.connect(self.hovered)
        self.plot.painted.connect(self.painted)

    @property
    def inside(self) -> QRectF:
        return self.plot.inside

    def set_colours(self) -> None:
        super().set_colours()
        self.plot.update()

    def draw(self, start_s: float, marks: FloatArray, inks: list[str]) -> None:
        begin, end = self._axis.range
        width = int(self.inside.width())
        curves, highest, known = readings(self._spec, start_s, begin, end, max(width, 100))
        self.plot.show_curves((begin, end), curves, highest if known else None)
        self.plot.show_marks(list(zip(marks.tolist(), inks, strict=True)))
        self.plot.show_ticks(self._axis.ticks(width // _TICK_PX))

    def show_at(self, second: float | None, start_s: float) -> None:
        super().show_at(second, start_s)
        self.plot.show_line(second)


class TrendPlot(QWidget):
    """The plot alone: a scale at the left, curves, a line for every operation and one at the time that is read out."""

    painted = Signal(float)  # milliseconds it took
    hovered = Signal(object)  # a second of the axis, None: outside

    def __init__(self, look: Look, spec: RowSpec, *, ticks: bool) -> None:
        super().__init__()
        self._look, self._spec, self._has_ticks = look, spec, ticks
        self._range = 0.0, 10.0
        self._highest: float | None = None
        self._curves: list[tuple[FloatArray, FloatArray]] = []
        self._marks: list[tuple[float, str]] = []
        self._ticks: list[tuple[float, str]] = []
        self._line: float | None = None
        self.setAccessibleName(f"{spec.title} over time")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setMinimumHeight(_LEAST_PX + (TICKS_PX if ticks else 0))

    @property
    def inside(self) -> QRectF:
        """Where the curves are, in pixels of the widget."""
        below = TICKS_PX if self._has_ticks else _BELOW_PX
        return QRectF(LEFT_PX, 0, max(self.width() - LEFT_PX, 1), max(self.height() - below, 1))

    @property
    def curves(self) -> list[tuple[FloatArray, FloatArray]]:
        """Seconds of the axis and values of every curve, as they are drawn."""
        return self._curves

    def show_curves(
        self, seconds: tuple[float, float], curves: list[tuple[FloatArray, FloatArray]], highest: float | None
    ) -> None:
        """Seconds and values of each curve. `highest` is None while nothing is known: no numbers are written then."""
        self._range, self._curves, self._highest = seconds, curves, highest
        self.update()

    def show_marks(self, marks: list[tuple[float, str]]) -> None:
        """Operations: a second and an ink for each."""
        self._marks = marks
        self.update()

    def show_ticks(self, ticks: list[tuple[float, str]]) -> None:
        """Words of the time axis."""
        self._ticks = ticks if self._has_ticks else []
        self.update()

    def show_line(self, second: float | None) -> None:
        if second != self._line:
            self._line = second
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        begun = time.perf_counter()
        colours, inside = self._look.colours, self.inside
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), QColor(colours.panel))
            scale = None if self._highest is None else Scale.of(self._highest, inside.height(), self._spec.top)
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
        begin, end = self._range
        return inside.left() + (second - begin) / (end - begin) * inside.width()

    def _draw_curves(self, painter: QPainter, inside: QRectF, scale: Scale) -> None:
        shown = list(zip(self._spec.curves, self._curves, strict=True))
        for curve, (seconds, values) in reversed(shown):  # the first is on top
            ink = QColor(ink_of(self._look, curve.ink))
            for line in self._lines(seconds, values, inside, scale):
                painter.setPen(QPen(ink, 1.5))
                painter.drawPolyline(line)
                if curve.style == "dots" or line.size() == 1:
                    painter.setPen(QPen(ink, 5.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                    painter.drawPoints(line)

    def _lines(self, seconds: FloatArray, values: FloatArray, inside: QRectF, scale: Scale) -> list[QPolygonF]:
        """A curve in pixels; where nothing was measured one line ends."""
        begin, end = self._range
        xs = inside.left() + (seconds - begin) * (inside.width() / (end - begin))
        ys = inside.bottom() - values * (inside.height() / scale.end)
        edges = [-1, *np.flatnonzero(np.isnan(ys)).tolist(), ys.size]
        points = [QPointF(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
        return [QPolygonF(points[first + 1 : last]) for first, last in pairwise(edges) if last - first > 1]

    def _draw_axes(self, painter: QPainter, inside: QRectF, scale: Scale | None) -> None:
        colours = self._look.colours
        painter.setFont(self._look.mono_small)
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
        for second, text in self._ticks:
            x = self._x(second, inside)
            word = QRectF(x - _WORD.width() / 2, inside.bottom() + 4, _WORD.width(), _WORD.height())
            painter.drawText(word, centre | Qt.AlignmentFlag.AlignHCenter, text)

    def _draw_marks(self, painter: QPainter, inside: QRectF) -> None:
        """A line for every operation, and a triangle in the colour of its conversation."""
        colours = self._look.colours
        begin, end = self._range
        seen = [(round(self._x(second, inside)), ink) for second, ink in self._marks if begin <= second <= end]
        painter.setPen(QColor(palette.mix(colours.panel, colours.secondary, 0.4)))
        painter.drawLines([QLineF(x, inside.top(), x, inside.bottom()) for x, _ in seen])
        painter.setPen(Qt.PenStyle.NoPen)
        for x, ink in seen:
            painter.setBrush(QColor(ink))
            painter.drawPolygon(QPolygonF([QPointF(x - 3.5, 0), QPointF(x + 4.5, 0), QPointF(x + 0.5, 6)]))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        begin, end = self._range
        inside, at = self.inside, event.position()
        share = (at.x() - inside.left()) / inside.width()
        self.hovered.emit(begin + share * (end - begin) if inside.contains(at) else None)

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)  # type: ignore[arg-type]
        self.hovered.emit(None)
