"""A plot over time, drawn by pyqtgraph."""

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from kvdesk.translation import tr
from kvdesk.ui.graphs.graph import BELOW_PX, TICKS_PX, Drawing, ink_of
from kvdesk.ui.graphs.plot import AS_PATHS, Plot
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.graph_spec import GraphSpec

_LEAST_PX = 64  # height of the plot


class TimePlot(Plot):
    """Its curves, a line for every operation and one at the time that is read out."""

    def __init__(self, theme: Theme, spec: GraphSpec, *, ticks: bool = True, movable: bool = True) -> None:
        """`ticks`: writes the seconds of the axis under it. `movable`: a person moves and zooms the axis."""
        title = tr("{title} over time").format(title=spec.title)
        super().__init__(theme, title, _LEAST_PX, below_px=TICKS_PX if ticks else BELOW_PX, movable=movable)
        self.spec = spec
        self._has_ticks = ticks
        self._marks = pg.VTickGroup(yrange=[0, 1])
        self._gaps = pg.VTickGroup(yrange=[0, 1])
        self.addItem(self._gaps)
        self._points = pg.ScatterPlotItem(symbol="t", size=7, pen=None, **AS_PATHS)
        self._line = pg.InfiniteLine(angle=90)
        self._line.setVisible(False)
        self.addItem(self._marks)
        self._curves: list[Any] = []
        self._drawn_marks: tuple[object, ...] = ()
        for n, curve in enumerate(spec.curves):
            symbol = None if curve.style == "line" else "o"
            item = pg.PlotDataItem(connect="finite", symbol=symbol, symbolSize=5, **AS_PATHS)
            item.setZValue(-n)  # the first is on top
            self._curves.append(item)
            self.addItem(item)
        for item in (self._points, self._line):
            self.addItem(item, ignoreBounds=True)

    def show_look(self) -> None:
        super().show_look()
        colours = self._theme.colours
        for curve, item in zip(self.spec.curves, self._curves, strict=True):
            ink = ink_of(self._theme, curve.ink)
            item.setPen(None if curve.style == "points" else pg.mkPen(ink, width=1.5))
            item.setSymbolBrush(pg.mkBrush(ink))
            item.setSymbolPen(None)
        self._marks.setPen(pg.mkPen(palette.mix(colours.panel, colours.secondary, 0.4), width=1))
        self._line.setPen(pg.mkPen(colours.secondary))
        self._gaps.setPen(pg.mkPen(colours.secondary, width=1, style=Qt.PenStyle.DashLine))

    def show_drawing(self, drawing: Drawing) -> None:
        for item, (seconds, values) in zip(self._curves, drawing.curves, strict=True):
            item.setData(seconds, values)
        top = self.set_top(drawing.highest or 0.0, known=drawing.highest is not None, top=self.spec.top)
        if (top, drawing.marks) != self._drawn_marks:
            self._drawn_marks = top, drawing.marks
            seconds = np.array([second for second, _ in drawing.marks])
            self._marks.setXVals(seconds)
            brushes = [pg.mkBrush(ink) for _, ink in drawing.marks]
            self._points.setData(seconds, np.full(seconds.size, top * 1.06), brush=brushes)
        self._gaps.setXVals([edge for gap in drawing.gaps for edge in gap])
        self.setXRange(*drawing.seconds, padding=0)
        self.getAxis("bottom").setTicks([drawing.ticks if self._has_ticks else []])
        self.scene().prepareForPaint()  # else the first paint finds that another one is needed

    def show_line(self, second: float | None) -> None:
        self._line.setVisible(second is not None)
        if second is not None:
            self._line.setValue(second)
