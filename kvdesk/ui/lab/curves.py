"""A plot of the laboratory: curves over any x, with intervals, linear or logarithmic, and their names under it."""

import math
from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QWidget

from kvdesk.protocol import experiment as values
from kvdesk.translation import tr
from kvdesk.ui.graphs.graph import TICKS_PX, text_ink
from kvdesk.ui.graphs.plot import AS_PATHS, Plot
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.ticks import log_ticks

HEIGHT_PX: Final = 136  # the room fits into a window 600 px high
LEFT_PX: Final = 60  # for the numbers of the vertical axis
MOST: Final = 1e100
"""What is drawn is smaller: axes are computed with sums and differences."""
SYMBOLS: Final = ("o", "s", "t", "d")  # after all colours, the next symbol
_NAME_CHARS: Final = 12  # of a name on the axis, in a line
_ROOM: Final = 0.05  # of the axes around the points


class CurvePlot(QWidget):
    """Shows `values.Plot`s, one after another: title and unit, the plot, its horizontal axis, the names of curves."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.shown = values.Plot("", "", "", ())
        self._order: list[str] = []
        self._title = label("", weight="strong")
        self._unit = label("", tone="secondary", scale="small")
        self._below = label("", tone="secondary", scale="small", wrap=True)
        self._below.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._names = label("", scale="small", rich=True)
        self._names.setTextFormat(Qt.TextFormat.RichText)
        self._names.setWordWrap(True)
        self.plot = Plot(theme, "", HEIGHT_PX - TICKS_PX, LEFT_PX, movable=False)
        self.plot.getAxis("bottom").setTicks(None)
        head = boxes.row((self._title, 1), self._unit, spacing=8)
        boxes.column(head, (self.plot, 1), self._below, self._names, on=self, margins=0, spacing=4)
        theme.changed.connect(self._draw)

    def show_plot(self, plot: values.Plot, names: Sequence[str] = ()) -> None:
        """`names`: of the series of all plots that belong together, so that one has the same colour in each."""
        self.shown, self._order = plot, list(dict.fromkeys((*names, *(series.name for series in plot.series))))
        self._title.setText(plot.title)
        self._unit.setText(plot.y_label)
        self._below.setText(plot.x_label)
        self.plot.setAccessibleName(
            tr("{title}: {y_label} over {x_label}").format(title=plot.title, y_label=plot.y_label, x_label=plot.x_label)
        )
        self._draw()

    def _draw(self) -> None:
        plot, item = self.shown, self.plot.getPlotItem()
        item.clear()
        self.plot.show_look()
        names = []
        for series in plot.series:
            n = self._order.index(series.name)
            colour = self._theme.conversation_colour(n).name()
            symbol = SYMBOLS[n // palette.N_COLOURS % len(SYMBOLS)]
            self._add(series, colour, symbol)
            ink = text_ink(self._theme, (colour, colour))
            names.append(
                f'<span style="color:{ink}">{"●■▲◆"[SYMBOLS.index(symbol)]}&nbsp;{_joined(series.name)}</span>'
            )
        self._names.setText(" &nbsp; ".join(names) if len(names) > 1 else "")
        self._names.setVisible(len(names) > 1)
        self._below.setVisible(bool(plot.x_label) and not plot.x_names)
        self._set_axes()

    def _add(self, series: values.Series, colour: str, symbol: str) -> None:
        place = self._place
        points = [p for p in series.points if self._can(p.x) and self._can(p.y)]
        x, y = [place(p.x) for p in points], [place(p.y) for p in points]
        pen, brush = pg.mkPen(colour, width=2), pg.mkBrush(colour)
        self.plot.getPlotItem().plot(
            x, y, pen=pen, symbol=symbol, symbolSize=6, symbolBrush=brush, symbolPen=None, antialias=True, **AS_PATHS
        )
        ends = [
            (place(p.x), place(edge))
            for p in points
            if p.low is not None and p.high is not None and self._can(p.low) and self._can(p.high)
            for edge in (p.low, p.high)
        ]
        if ends:
            self.plot.getPlotItem().plot(
                *map(list, zip(*ends, strict=True)), pen=pg.mkPen(colour, width=1), connect="pairs"
            )

    def _set_axes(self) -> None:
        points = [p for series in self.shown.series for p in series.points if self._can(p.x) and self._can(p.y)]
        heights = [e for p in points for e in (p.y, p.low, p.high) if e is not None and self._can(e)]
        log = self.shown.log
        for side, numbers, base in (("bottom", [p.x for p in points], []), ("left", heights, [] if log else [0.0])):
            axis = self.plot.getAxis(side)
            if not numbers:
                axis.setTicks([[]])
                continue
            low, high = min(numbers + base), max(numbers + base)
            first, last = self._place(low), self._place(high)
            room = (last - first) * _ROOM or (0.15 if log else abs(first) * _ROOM or 0.5)
            if side == "bottom" and self.shown.x_names:
                room = 0.5
            begin = first if base and low == 0 else first - room
            (self.plot.setYRange if side == "left" else self.plot.setXRange)(begin, last + room, padding=0)
            if side == "bottom" and (named := self.shown.x_names):
                axis.setTicks([[(i, "\n".join(wrap(name, _NAME_CHARS)[:2])) for i, name in enumerate(named)]])
            elif side == "bottom" and low == high:
                axis.setTicks([[(first, f"{low:,.6g}")]])  # one point makes no scale
            else:
                ticks = log_ticks(low / 1.2, high * 1.2) if log else []
                axis.setTicks([[(self._place(v), f"{v:,.6g}") for v in ticks]] if log else None)
        bottom = self.plot.getAxis("bottom")
        lines = 2 if any(len(name) > _NAME_CHARS for name in self.shown.x_names) else 1
        bottom.setHeight(lines * QFontMetrics(self._theme.small).lineSpacing() + 8)

    def _place(self, value: float) -> float:
        return math.log10(value) if self.shown.log else value

    def _can(self, value: float) -> bool:
        """Whether there is a place for it: a logarithmic axis has none for 0, and none has one for NaN or infinity."""
        return abs(value) < MOST and (not self.shown.log or value > 0)


def _joined(name: str) -> str:
    """A name that is not broken in the middle, unless it is long."""
    return escape(name).replace(" ", "&nbsp;") if len(name) < 40 else escape(name)
