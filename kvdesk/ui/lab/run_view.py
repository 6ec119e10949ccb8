"""An experiment while it runs: how far it is, what it does now, and its samples as curves."""

import time
from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QWidget

from kvdesk.protocol.experiment import ExperimentEvent, Plot, Progress, Sample, Started
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.quantities import size_text
from kvdesk.translation import plural, tr
from kvdesk.ui.lab.curves import CurvePlot
from kvdesk.ui.map.small_map import SmallMap
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import ElidedLabel, NumberLabel, ThinProgress, label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.ui.widgets.timers import every
from kvdesk.viewmodel.cells.history import spans_of
from kvdesk.viewmodel.cells.readout import duration
from kvdesk.viewmodel.lab import LiveCurves
from kvdesk.viewmodel.palette import N_COLOURS

_DRAW_MS: Final = 250  # at most four drawings a second: it shares the cores with what is measured
_SHARE: Final = 0.05  # of one core
_MAP_PX: Final = 132


def all_in(unit: str) -> str:
    """The choice that shows all series of a unit."""
    return tr("All series in {unit}").format(unit=unit) if unit else tr("All series without a unit")


class RunView(QWidget):
    """Begin it, feed it events, end it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._curves = LiveCurves()
        self._begun_s = 0.0
        self._stages: tuple[str, ...] = ()
        self._started: Started | None = None
        self._what = ElidedLabel()
        self._step = NumberLabel(widest=tr("{done} of {total}").format(done="88", total="88"))
        self._time = NumberLabel(widest="888 s" + tr(" of about {duration}").format(duration="888 s"))
        for number in (self._step, self._time):
            theme.give_font(number, "mono_small")
        self._bar = ThinProgress(tr("Progress of the experiment"))
        self._takes = label("", tone="secondary", scale="small", wrap=True)
        self._series = Choice(scale="small", name=tr("Series that are drawn"))
        self._series.currentIndexChanged.connect(self._draw)
        self._series.activated.connect(self._on_chosen)
        self._is_chosen = False  # by hand; else what came last is shown
        self._plot = CurvePlot(theme)
        self._cells_title = label("", tone="secondary", scale="small")
        self._map = SmallMap(theme, tr("Map of the experiment's own cache"), _MAP_PX)
        self._drawing = Throttle(self, _DRAW_MS, self._draw, share=_SHARE)
        self._clock = every(self, 500, self._tell_time)
        head = boxes.row((self._what, 1), self._step, self._time, spacing=12)
        choice = boxes.row((self._takes, 1), self._series)
        boxes.column(
            head, self._bar, choice, (self._plot, 1), self._cells_title, self._map, on=self, margins=0, spacing=8
        )

    def begin(self, stages: Sequence[str] = ()) -> None:
        """Nothing is known yet. `stages`: names of x 0, 1, … of its samples."""
        self._stages = tuple(stages)
        self._curves = LiveCurves()
        self._started = None
        self._begun_s = time.monotonic()
        self._what.setText(tr("Starting its process…"))
        self._step.setText("")
        self._takes.setText("")
        self._series.clear()
        self._series.setVisible(False)
        self._is_chosen = False
        self._bar.set_busy()
        self._cells_title.setText(tr("The cells of its cache are shown here as they change"))
        self._map.hide()
        self._clock.start()
        self._tell_time()
        self._draw()

    def end(self) -> None:
        self._clock.stop()
        self._bar.set_share(None)

    def show_events(self, events: Iterable[ExperimentEvent]) -> None:
        samples: list[Sample] = []
        cells: CellsSeen | None = None
        for event in events:
            match event:
                case Started():
                    self._started, self._begun_s = event, time.monotonic()
                    about = tr("about {duration} at the speed measured just now").format(
                        duration=duration(event.seconds)
                    )
                    self._takes.setText(
                        tr("At most {memory_bytes} of memory, one core, {about}").format(
                            memory_bytes=size_text(event.memory_bytes), about=about
                        )
                    )
                    self._tell_time()
                case Progress():
                    self._what.setText(f"{event.what[:1].upper()}{event.what[1:]}")
                    self._step.setText(
                        tr("{done} of {total}").format(done=f"{event.done:,}", total=f"{event.total:,}")
                        if event.total > 1
                        else ""
                    )
                    if event.total > 1:
                        self._bar.set_share(event.done / event.total)
                case Sample():
                    samples.append(event)
                case CellsSeen():
                    cells = event
        if cells is not None:
            self._show_cells(cells)
        if samples:
            self._curves.add(samples)
            self._fill_choice(samples[-1].unit)
            self._drawing.request()

    def _show_cells(self, seen: CellsSeen) -> None:
        maps = seen.maps
        streams = [stream for cache in maps for stream in cache.streams]
        said = tr("Cells of its cache: {used} of {size} used, high-water mark {mark}")
        self._cells_title.setText(
            said.format(
                used=f"{sum(s.used for s in streams):,}",
                size=f"{sum(s.size for s in streams):,}",
                mark=f"{max((s.high_water for s in streams), default=0):,}",
            )
        )
        ids = [span.seq_id for span in spans_of(maps[0].streams)] if maps else []
        titles = {int(n): tr("sequence {seq_id}").format(seq_id=n) for n in ids}
        self._map.show()
        self._map.show_maps(maps, seen.operation, {int(n): n % N_COLOURS for n in ids}, titles)

    def _on_chosen(self) -> None:
        self._is_chosen = True

    def _fill_choice(self, newest: str) -> None:
        """All series of each unit, then each alone. Those of the unit `newest` are shown until others are chosen."""
        wanted = [(all_in(unit), unit) for unit in self._curves.units] + [(name, None) for name in self._curves.names]
        was = self._series.currentText() if self._is_chosen else all_in(newest)
        if len(wanted) == self._series.count() and was == self._series.currentText():
            return
        with QSignalBlocker(self._series):
            self._series.clear()
            for text, unit in wanted:
                self._series.addItem(text, unit)
            self._series.setCurrentIndex(max(0, self._series.findText(was)))
        self._series.setVisible(len(self._curves.names) > 1)

    def _tell_time(self) -> None:
        passed = duration(time.monotonic() - self._begun_s)
        about = tr(" of about {duration}").format(duration=duration(self._started.seconds)) if self._started else ""
        self._time.setText(f"{passed}{about}")

    def _draw(self) -> None:
        curves, unit = self._curves, self._series.currentData()
        names = [name for name in curves.names if unit is None or curves.unit_of(name) == unit]
        if unit is None and self._series.count():
            names, unit = [self._series.currentText()], curves.unit_of(self._series.currentText())
        title = (
            plural("1 sample", "%n samples", self._curves.n)
            if self._curves.n
            else tr("Samples are drawn here as they come")
        )
        below = tr("Median of the rounds so far; lines from the lowest to the highest") if self._curves.n else ""
        self._plot.show_plot(
            Plot(title, below, unit or tr("measured value"), curves.series(names), x_names=self._stages)
        )
