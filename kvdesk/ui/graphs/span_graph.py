"""Time per token against n_kv: what the length of the attention span costs on this machine."""

from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QColor, QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from kvdesk.translation import marked, tr
from kvdesk.ui.graphs.graph import Captions, ink_of
from kvdesk.ui.graphs.graph_stack import INTERVAL_MS
from kvdesk.ui.graphs.plot import AS_PATHS, Plot
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.graph_spec import Curve, GraphSpec
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.graphs.series import FloatArray, Series, round_up

_MOST_POINTS: Final = 500
_LEAST_PX: Final = 96  # height of the plot


class SpanGraph(QWidget):
    """A dot per token, and a line through the median of every n_kv. Draws like `GraphStack`: seldom, never hidden."""

    def __init__(self, theme: Theme, measured: Measurements) -> None:
        super().__init__()
        self._theme, self._measured = theme, measured
        self._drawn = -1
        self.medians: tuple[FloatArray, FloatArray] = (np.zeros(0), np.zeros(0))
        """n_kv, rising, and the median time of a token at each, in ms."""
        self._at: float | None = None
        ink = palette.BLUE
        spec = GraphSpec("ms", (Curve(marked("time per token, median at n_kv"), Series(), ink),))
        self.captions = Captions(theme, spec)
        self.plot = Plot(theme, tr("Time per token against n_kv"), _LEAST_PX, movable=False)
        self.dots = pg.ScatterPlotItem(size=4, pen=None, **AS_PATHS)
        self.line = pg.PlotDataItem(symbol="o", symbolSize=6, **AS_PATHS)
        self.plot.addItem(self.dots)
        self.plot.addItem(self.line)
        self.plot.hovered.connect(self._on_hovered)
        boxes.column(self.captions, (self.plot, 1), on=self, margins=0, spacing=0)
        self._timer = every(self, 2 * INTERVAL_MS, self._on_timer)
        theme.follow(self._on_look_changed)

    def draw(self) -> None:
        """Now, even when hidden."""
        self._drawn = self._measured.revision
        spans, ms = self._measured.token_n_kv.values, self._measured.token_ms.values
        self.medians = medians(spans, ms)
        known = spans.size > 0
        high = float(np.percentile(ms, 98)) if known else 0.0  # a few slow tokens would flatten all the others
        most = round_up(max(float(spans.max(initial=0.0)), 512.0))
        self.plot.set_top(max(high, float(self.medians[1].max(initial=0.0))) * 1.1, known=known)
        self.plot.setXRange(0, most * 1.06, padding=0)
        ticks = [(most * i / 4, f"{most * i / 4:,.0f}") for i in range(5)] if known else []
        self.plot.getAxis("bottom").setTicks([ticks])
        self.dots.setData(spans[-_MOST_POINTS:], ms[-_MOST_POINTS:])
        self.line.setData(*self.medians)
        self._read_out()

    def _read_out(self) -> None:
        spans, ms = self.medians
        if not spans.size:
            self.captions.show_values([None])
            return
        at = float(self._measured.token_n_kv.last or 0.0) if self._at is None else self._at
        i = int(np.abs(spans - at).argmin())
        self.captions.show_values([float(ms[i])])
        self.setAccessibleDescription("; ".join(f"n_kv {s:.0f}: {t:.1f} ms" for s, t in zip(spans, ms, strict=True)))

    def _on_hovered(self, n_kv: float | None) -> None:
        self._at = n_kv
        self._read_out()

    def _on_timer(self) -> None:
        if self.isVisible() and self._drawn != self._measured.revision:
            self.draw()

    def _on_look_changed(self) -> None:
        ink = QColor(ink_of(self._theme, palette.BLUE))
        self.plot.show_look()
        self.captions.set_colours()
        self.line.setPen(pg.mkPen(ink, width=1.5))
        self.line.setSymbolBrush(pg.mkBrush(ink))
        self.line.setSymbolPen(None)
        ink.setAlphaF(0.3)
        self.dots.setBrush(pg.mkBrush(ink))
        self._drawn = -1
        self._on_timer()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._drawn = -1
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()


def medians(spans: FloatArray, ms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every n_kv that occurs, rising, with the median of its times."""
    if not spans.size:
        return np.zeros(0), np.zeros(0)
    order = np.argsort(spans, kind="stable")
    found, starts = np.unique(spans[order], return_index=True)
    return found, np.array([np.median(part) for part in np.split(ms[order], starts[1:])])
