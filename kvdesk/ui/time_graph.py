"""One graph over time: its captions, its curves, a line for every operation and one at the time that is read out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF

from kvdesk.ui import palette
from kvdesk.ui.graph import TICKS_PX, Graph, RowSpec, ink_of, readings
from kvdesk.ui.plot import AS_PATHS, Plot
from kvdesk.ui.series import FloatArray
from kvdesk.ui.theme import Look
from kvdesk.ui.time_axis import TimeAxis

_TICK_PX = 72
_LEAST_PX = 64  # height of the plot


class TimeGraph(Graph):
    """Draws `spec` for the seconds of `axis`."""

    def __init__(self, look: Look, spec: RowSpec, axis: TimeAxis) -> None:
        self.plot = Plot(f"{spec.title} over time", movable=True)
        super().__init__(look, spec, axis, self.plot)
        for told, passed_on in (
            (self.plot.hovered, self.hovered),
            (self.plot.painted, self.painted),
            (self.plot.zoomed, self.zoomed),
            (self.plot.panned, self.panned),
        ):
            told.connect(passed_on)
        self.plot.setMinimumHeight(_LEAST_PX + TICKS_PX)
        self._marks = pg.VTickGroup(yrange=[0, 1])
        self._points = pg.ScatterPlotItem(symbol="t", size=7, pen=None, **AS_PATHS)
        self._line = pg.InfiniteLine(angle=90)
        self._line.setVisible(False)
        self.plot.addItem(self._marks)
        self.items: list[Any] = []
        self._drawn_marks: tuple[float, bytes] = 0.0, b""
        self._drawn: tuple[object, ...] = ()  # all that the curves were drawn of
        for n, curve in enumerate(spec.curves):
            symbol = None if curve.style == "line" else "o"
            item = pg.PlotDataItem(connect="finite", symbol=symbol, symbolSize=5, **AS_PATHS)
            item.setZValue(-n)  # the first is on top
            self.items.append(item)
            self.plot.addItem(item)
        for item in (self._points, self._line):
            self.plot.addItem(item, ignoreBounds=True)

    @property
    def inside(self) -> QRectF:
        return self.plot.inside

    def set_colours(self) -> None:
        super().set_colours()
        colours = self._look.colours
        self._drawn_marks = 0.0, b""
        self._drawn = ()
        self.plot.set_colours(self._look)
        for curve, item in zip(self._spec.curves, self.items, strict=True):
            ink = ink_of(self._look, curve.ink)
            item.setPen(None if curve.style == "points" else pg.mkPen(ink, width=1.5))
            item.setSymbolBrush(pg.mkBrush(ink))
            item.setSymbolPen(None)
        self._marks.setPen(pg.mkPen(palette.mix(colours.panel, colours.secondary, 0.4), width=1))
        self._line.setPen(pg.mkPen(colours.secondary))

    def draw(self, start_s: float, marks: FloatArray, inks: list[str]) -> None:
        begin, end = self._axis.range
        n_bins = max(int(self.inside.width()), 100)
        series = tuple((len(curve.series), curve.series.last, curve.series.held_s) for curve in self._spec.curves)
        drawn = begin, end, start_s, self.plot.size(), series, marks.tobytes()
        if drawn == self._drawn:
            return
        self._drawn = drawn
        curves, highest, known = readings(self._spec, start_s, begin, end, n_bins)
        for item, (seconds, values) in zip(self.items, curves, strict=True):
            item.setData(seconds, values)
        top = self.plot.set_top(highest, known=known, top=self._spec.top)
        drawn_marks = top, marks.tobytes()
        if drawn_marks != self._drawn_marks:
            self._drawn_marks = drawn_marks
            self._marks.setXVals(marks)
            self._points.setData(marks, np.full(marks.size, top * 1.06), brush=[pg.mkBrush(ink) for ink in inks])
        self.plot.setXRange(begin, end, padding=0)
        most = int(self.inside.width()) // _TICK_PX
        self.plot.getAxis("bottom").setTicks([self._axis.ticks(most)] if known else [[]])
        self.plot.scene().prepareForPaint()  # else the first paint finds that another one is needed

    def show_at(self, second: float | None, start_s: float) -> None:
        self._line.setVisible(second is not None)
        if second is not None:
            self._line.setValue(second)
        super().show_at(second, start_s)
