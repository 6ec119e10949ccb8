"""Speeds and cells over time on one shared axis, every operation a mark. The only user of pyqtgraph."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QTimer, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from kvdesk.messages import OperationDone, SpeedSample
from kvdesk.ui import palette
from kvdesk.ui.controls import ElidedLabel, label
from kvdesk.ui.series import Rate, Series, round_up, with_gaps
from kvdesk.ui.theme import Look

_INTERVAL_MS: Final = 250
_WINDOW_S: Final = 120.0
_MAX_MARKS: Final = 400
_PER_TOKEN: Final = ("decode", "prefill")  # operations that are no marks: they are the curve itself


@dataclass(slots=True)
class _Curve:
    name: str
    unit: str
    dark: str
    light: str
    series: Series
    item: Any = None
    value: QLabel | None = None
    gap_s: float = 1.5
    dots: bool = False  # a reading of the prompt may be a single point


class Graphs(QWidget):
    """Prefill tok/s, decode tok/s, and used and high-water cells."""

    def __init__(self, look: Look, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._look, self._clock = look, clock
        self._prefill, self._decode = Rate(), Rate()
        p = palette
        self._rows = (
            (_Curve("prefill", "tok/s", p.DARK_PREFILL, p.LIGHT_PREFILL, self._prefill.series, dots=True),),
            (_Curve("decode", "tok/s", p.DARK_DECODE, p.LIGHT_DECODE, self._decode.series),),
            (
                _Curve("used", "cells", p.DARK_USED, p.LIGHT_USED, Series(), gap_s=1e12),
                _Curve("high water", "cells", p.DARK_HIGH_WATER, p.LIGHT_HIGH_WATER, Series(), gap_s=1e12),
            ),
        )
        self._marks: list[OperationDone] = []
        self._mark_colours: list[int | None] = []
        self._start_s: float | None = None
        self._cells_s = 0.0  # when the cells were last counted; what comes after that is not known
        self._hover_s: float | None = None
        self._changed = True
        self._plots: list[Any] = []
        self._ticks: list[Any] = []
        self._lines: list[Any] = []
        self._note = ElidedLabel()
        self._note.setProperty("tone", "secondary")
        self._note.setProperty("scale", "small")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for number, curves in enumerate(self._rows):
            column.addLayout(self._make_captions(curves))
            column.addWidget(self._make_plot(curves, last=number == len(self._rows) - 1), 1)
        self._points = pg.ScatterPlotItem(symbol="t", size=8, pen=None)
        self._plots[-1].addItem(self._points, ignoreBounds=True)
        column.addWidget(self._note)
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self._on_timer)
        self._timer.start()
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    @property
    def marks(self) -> tuple[OperationDone, ...]:
        return tuple(self._marks)

    def add_speed(self, sample: SpeedSample) -> None:
        if sample.kind == "decode":
            self._prefill.finish()
        rate = self._prefill if sample.kind == "prefill" else self._decode
        rate.add(sample.at_s, sample.n_tokens, sample.ms)
        self._touch(sample.at_s)

    def end_prefill(self) -> None:
        """A prompt has been read: its speed is a reading of its own."""
        self._prefill.finish()
        self._changed = True

    def add_cells(self, at_s: float, used: int, high_water: int) -> None:
        self._cells_s = at_s
        for curve, value in zip(self._rows[2], (used, high_water), strict=True):
            if curve.series.last != value:
                if curve.series.last is not None:
                    curve.series.append(at_s, curve.series.last)
                curve.series.append(at_s, value)
        self._touch(at_s)

    def add_mark(self, operation: OperationDone, colour: int | None = None) -> None:
        """A line on every axis, and a point in the conversation's colour on the last."""
        if operation.name in _PER_TOKEN:
            return
        self._marks.append(operation)
        self._mark_colours.append(colour)
        del self._marks[:-_MAX_MARKS]
        del self._mark_colours[:-_MAX_MARKS]
        self._touch(operation.at_s)

    @Slot()
    def _on_timer(self) -> None:
        if self._changed and self.isVisible():
            self._changed = False
            self._draw()

    @Slot()
    def _on_look_changed(self) -> None:
        colours = self._look.colours
        for plot, curves, ticks, line in zip(self._plots, self._rows, self._ticks, self._lines, strict=True):
            plot.setBackground(colours.panel)
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(pg.mkPen(colours.line))
                axis.setTextPen(pg.mkPen(colours.secondary))
                axis.setTickFont(self._look.mono_small)
            for curve in curves:
                ink = curve.dark if colours.dark else curve.light
                curve.item.setPen(pg.mkPen(ink, width=1.5))
                curve.item.setSymbolBrush(pg.mkBrush(ink))
                curve.item.setSymbolPen(None)
            ticks.setPen(pg.mkPen(palette.mix(colours.panel, colours.secondary, 0.4), width=1))
            line.setPen(pg.mkPen(colours.secondary))
        for curves in self._rows:
            for curve in curves:
                if curve.value is not None:
                    curve.value.setStyleSheet(f"color: {self._text_ink(curve)}")
        self._changed = True
        self._on_timer()

    @Slot(object)
    def _on_mouse_moved(self, plot: Any, point: QPointF) -> None:
        inside = plot.sceneBoundingRect().contains(point)
        self._hover_s = float(plot.getViewBox().mapSceneToView(point).x()) if inside else None
        self._show_values()

    def _make_captions(self, curves: tuple[_Curve, ...]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.setContentsMargins(0, 4, 0, 0)
        for curve in curves:
            row.addWidget(label(curve.name, tone="secondary", scale="small"))
            curve.value = label("–")
            curve.value.setFont(self._look.mono_small)
            curve.value.setMinimumWidth(curve.value.fontMetrics().horizontalAdvance("88,888"))
            row.addWidget(curve.value)
        row.addStretch(1)
        row.addWidget(label(curves[0].unit, tone="secondary", scale="small"))
        return row

    def _make_plot(self, curves: tuple[_Curve, ...], last: bool) -> Any:
        plot = pg.PlotWidget()
        plot.setAccessibleName(" and ".join(f"{curve.name} over time" for curve in curves))
        plot.setMinimumHeight(40 + (20 if last else 0))
        plot.setMenuEnabled(False)
        plot.setMouseEnabled(False, False)
        plot.hideButtons()
        left = plot.getAxis("left")
        left.setWidth(44)
        left.enableAutoSIPrefix(False)
        left.setStyle(tickLength=-4, tickTextOffset=4, hideOverlappingLabels=False)
        bottom = plot.getAxis("bottom")
        bottom.enableAutoSIPrefix(False)
        bottom.setStyle(showValues=last, tickLength=-4, maxTickLevel=0)
        bottom.setHeight(20 if last else 4)
        plot.getViewBox().setDefaultPadding(0)
        ticks = pg.VTickGroup(yrange=[0, 1])
        plot.addItem(ticks)
        for curve in curves:
            curve.item = pg.PlotDataItem(connect="finite", symbol="o" if curve.dots else None, symbolSize=4)
            curve.item.setZValue(-len(plot.listDataItems()))  # the first is on top
            plot.addItem(curve.item)
        line = pg.InfiniteLine(angle=90)
        line.setVisible(False)
        plot.addItem(line, ignoreBounds=True)
        if self._plots:
            plot.setXLink(self._plots[0])
        item = plot.getPlotItem()
        plot.scene().sigMouseMoved.connect(lambda point, item=item: self._on_mouse_moved(item, point))
        self._plots.append(plot)
        self._ticks.append(ticks)
        self._lines.append(line)
        return plot

    def _touch(self, at_s: float) -> None:
        if self._start_s is None:
            self._start_s = at_s
        self._changed = True

    def _draw(self) -> None:
        start = self._start_s if self._start_s is not None else self._clock()
        end = max(
            [
                start + 10.0,
                self._cells_s,
                *(c.series.times[-1] for curves in self._rows for c in curves if len(c.series)),
            ]
        )
        begin = max(start, end - _WINDOW_S)
        marks = np.array([mark.at_s - start for mark in self._marks])
        for plot, curves, ticks in zip(self._plots, self._rows, self._ticks, strict=True):
            top = 1.0
            for curve in curves:
                times, values = with_gaps(curve.series.times - start, curve.series.values, curve.gap_s)
                if curve.gap_s > 1e9 and times.size:  # cells stay as they are until they are counted again
                    times, values = np.append(times, self._cells_s - start), np.append(values, values[-1])
                curve.item.setData(times, values)
                top = max(top, float(np.nan_to_num(values[times >= begin - start]).max(initial=0.0)))
            top = round_up(top)
            plot.setYRange(0, top * 1.12, padding=0)
            known = any(len(curve.series) for curve in curves)
            ticks_y = [(0.0, "0"), (top / 2, f"{top / 2:,.0f}"), (top, f"{top:,.0f}")] if known else []
            plot.getAxis("left").setTicks([ticks_y])
            ticks.setXVals(marks)
        self._points.setData(marks, np.full(marks.size, top * 1.06), brush=self._mark_brushes())
        if self._start_s is None:
            self._plots[-1].getAxis("bottom").setTicks([[]])
        else:
            self._plots[-1].getAxis("bottom").setTicks(None)
        self._plots[0].setXRange(begin - start, end - start, padding=0)
        self._show_values()

    def _mark_brushes(self) -> list[Any]:
        plain = self._look.colours.secondary
        dark = self._look.colours.dark
        inks = [plain if c is None else palette.conversation_colour(c, dark) for c in self._mark_colours]
        return [pg.mkBrush(ink) for ink in inks]

    def _show_values(self) -> None:
        start = self._start_s or 0.0
        for line in self._lines:
            line.setVisible(self._hover_s is not None)
            if self._hover_s is not None:
                line.setValue(self._hover_s)
        for curves in self._rows:
            for curve in curves:
                at = curve.series.last if self._hover_s is None else curve.series.at(self._hover_s + start)
                if curve.value is not None:
                    curve.value.setText("–" if at is None else f"{at:,.0f}")
        self._note.setText(self._note_text(start))

    def _note_text(self, start: float) -> str:
        if self._start_s is None:
            return "Speeds and cells are drawn here while the model works."
        if not self._marks:
            return "Seconds since the first reading"
        if self._hover_s is None:
            mark = self._marks[-1]
        else:
            hover = self._hover_s + start
            mark = min(self._marks, key=lambda mark: abs(mark.at_s - hover))
        return f"{mark.at_s - start:.1f} s  {mark.name}: {mark.call}"

    def _text_ink(self, curve: _Curve) -> str:
        """The curve's colour, mixed with text until it can be read."""
        colours = self._look.colours
        ink = curve.dark if colours.dark else curve.light
        while palette.contrast(ink, colours.panel) < 4.5:
            ink = palette.mix(ink, colours.text, 0.15)
        return ink
