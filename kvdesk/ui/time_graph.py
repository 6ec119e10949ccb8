"""One graph over time: its captions, its curves, a line for every operation and one at the time that is read out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kvdesk.ui import palette
from kvdesk.ui.plot import AS_PATHS, TICKS_PX, Captions, Plot, RowSpec, ink_of
from kvdesk.ui.series import FloatArray, visible
from kvdesk.ui.theme import Look
from kvdesk.ui.time_axis import TimeAxis

_TICK_PX = 72


class TimeGraph(QWidget):
    """Draws `spec` for the seconds of `axis`. `height` in px: of the plot, at least."""

    def __init__(self, look: Look, spec: RowSpec, axis: TimeAxis, *, height: int, ticks: bool, movable: bool) -> None:
        super().__init__()
        self._look, self._spec, self._axis, self._ticks = look, spec, axis, ticks
        self._is_kept = not movable  # the others are exported as they are drawn
        self.captions = Captions(look, spec)
        self.plot = Plot(f"{spec.title} over time", x_values=ticks, movable=movable)
        self.plot.setMinimumHeight(height + (TICKS_PX if ticks else 0))
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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self.captions)
        column.addWidget(self.plot, 1)

    @property
    def spec(self) -> RowSpec:
        return self._spec

    def set_colours(self) -> None:
        colours = self._look.colours
        self._drawn_marks = 0.0, b""
        self._drawn = ()
        self.plot.drop_picture()
        self.plot.set_colours(self._look)
        self.captions.set_colours()
        for curve, item in zip(self._spec.curves, self.items, strict=True):
            ink = ink_of(self._look, curve.ink)
            item.setPen(None if curve.style == "points" else pg.mkPen(ink, width=1.5))
            item.setSymbolBrush(pg.mkBrush(ink))
            item.setSymbolPen(None)
        self._marks.setPen(pg.mkPen(palette.mix(colours.panel, colours.secondary, 0.4), width=1))
        self._line.setPen(pg.mkPen(colours.secondary))

    def draw(self, start_s: float, marks: FloatArray, brushes: list[Any]) -> None:
        """The curves as they are now, if they differ. `start_s`: second 0 of the axis; `marks`: seconds on it."""
        begin, end = self._axis.range
        n_bins = max(int(self.plot.inside.width()), 100)
        series = tuple((len(curve.series), curve.series.last, curve.series.held_s) for curve in self._spec.curves)
        drawn = begin, end, start_s, self.plot.size(), series, marks.tobytes()
        if drawn == self._drawn:
            return
        self._drawn = drawn
        highest, known = 0.0, False
        for curve, item in zip(self._spec.curves, self.items, strict=True):
            times, values = visible(curve.series, begin + start_s, end + start_s, n_bins)
            item.setData(times - start_s, values)
            known = known or curve.series.last is not None
            shown = values[times >= begin + start_s]
            highest = max(highest, float(np.nan_to_num(shown).max(initial=0.0)))
        top = self.plot.set_top(highest, known=known, top=self._spec.top)
        drawn_marks = top, marks.tobytes()
        if drawn_marks != self._drawn_marks:
            self._drawn_marks = drawn_marks
            self._marks.setXVals(marks)
            self._points.setData(marks, np.full(marks.size, top * 1.06), brush=brushes)
        self.plot.setXRange(begin, end, padding=0)
        if self._ticks:
            most = int(self.plot.inside.width()) // _TICK_PX
            self.plot.getAxis("bottom").setTicks([self._axis.ticks(most)] if known else [[]])
        self.plot.scene().prepareForPaint()  # else the first paint finds that another one is needed
        if self._is_kept and not self._line.isVisible() and self.isVisible():
            self.plot.keep_picture()

    def show_at(self, second: float | None, start_s: float) -> None:
        """Write every curve's value at a second of the axis, or the last one."""
        if second is not None or self._line.isVisible():
            self.plot.drop_picture()
        self._line.setVisible(second is not None)
        if second is not None:
            self._line.setValue(second)
        series = (curve.series for curve in self._spec.curves)
        self.captions.show_values([s.last if second is None else s.at(second + start_s) for s in series])
