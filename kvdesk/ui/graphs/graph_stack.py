"""Graphs over one shared time axis, one under the other, read out together at one time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from kvdesk.ui.graphs.graph import WORD_PX, Captions, Drawing, readings
from kvdesk.ui.graphs.time_axis import TimeAxis, clock_text
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.key_tips import is_by_tab
from kvdesk.ui.widgets.pace import Pace
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.measurements import Mark, Measurements

if TYPE_CHECKING:
    from kvdesk.ui.graphs.time_graph import TimePlot

INTERVAL_MS: Final = 500
_RUNNING_MS: Final = 1200
_SELDOM_S: Final = 3.0
_SHARE: Final = 0.001  # of one core
_NEXT_MS: Final = 20  # between one graph and the next: all at once would hold up the window
_NEAR: Final = 0.02  # of the width: an operation so near is the one that is meant


class Graph(QWidget):
    """One graph of a `GraphStack`: its captions over its plot."""

    def __init__(self, theme: Theme, plot: TimePlot, axis: TimeAxis) -> None:
        super().__init__()
        self.plot = plot
        self._theme, self._axis = theme, axis
        self._drawn: tuple[object, ...] = ()  # all that the curves were drawn of
        self.captions = Captions(theme, plot.spec)
        boxes.column(self.captions, (plot, 1), on=self, margins=0, spacing=0)

    def set_colours(self) -> None:
        """The look has changed."""
        self._drawn = ()
        self.captions.set_colours()
        self.plot.show_look()

    def draw(self, start_s: float, marks: list[tuple[float, str]]) -> None:
        """The curves as they are now. `start_s`: second 0 of the axis; `marks`: as in `Drawing`."""
        spec, inside = self.plot.spec, self.plot.inside
        begin, end = self._axis.range
        series = tuple((len(curve.series), curve.series.last, curve.series.held_s) for curve in spec.curves)
        fold = self._axis.fold
        drawn = begin, end, start_s, inside, series, marks, fold.gaps
        if drawn == self._drawn:
            return
        self._drawn = drawn
        width = int(inside.width())
        curves, highest = readings(spec, start_s, begin, end, max(width, 100), fold)
        ticks = [] if highest is None else self._axis.ticks(width // self._theme.px(WORD_PX))
        gaps = tuple(gap for gap in fold.gaps if gap[1] > begin and gap[0] < end)
        self.plot.show_drawing(Drawing((begin, end), curves, highest, marks, ticks, gaps))

    def show_at(self, second: float | None, start_s: float) -> None:
        """Write every curve's value at a second of the axis, of which 0 is `start_s`; None: the last one."""
        at = None if second is None else self._axis.fold.time(second)
        series = (curve.series for curve in self.plot.spec.curves)
        self.captions.show_values([s.last if at is None else s.at(at + start_s) for s in series])
        self.plot.show_line(second)


class GraphStack(QWidget):
    """Looks twice a second, and whenever `draw_due` is called, what is to be drawn; at once when a person moves the
    axis. Draws nothing while hidden.

    Numbers are written that often; curves when they can have moved by a pixel. While an answer is written numbers come
    about once a second, and curves wait until drawing is cheap enough (`Pace`), at most `_SELDOM_S`: drawing takes its
    time from the decoding threads. They are drawn one after the other.

    Keys, where `movable`: Left and Right move the line that is read, with Ctrl the axis; + and - zoom; End follows;
    Escape takes the line away.
    """

    read = Signal(str)
    """One sentence about the operation at the time under the line, or about the last one."""
    moved = Signal()
    """The axis follows, is held or has another width."""

    def __init__(
        self,
        theme: Theme,
        measured: Measurements,
        plots: Sequence[TimePlot],
        *,
        movable: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._theme, self._measured = theme, measured
        self.axis = TimeAxis()
        self._at: float | None = None  # the second that is read out
        self._drawn, self._drawn_s = -1, 0.0  # revision, and when
        self._clock = clock
        self._pace = Pace(_SHARE, INTERVAL_MS, round(_SELDOM_S * 1e3))
        self._draw_ms = 0.0  # of the last drawing, its painting included
        self._left: list[Graph] = []  # that are still to be drawn
        self._next = every(self, _NEXT_MS, self._draw_next)
        self.note = ""
        column = boxes.column(on=self, margins=0, spacing=0)
        self.graphs = [Graph(theme, plot, self.axis) for plot in plots]
        for graph in self.graphs:
            graph.plot.hovered.connect(self.read_at)
            graph.plot.painted.connect(self._on_painted)
            column.addWidget(graph, 1)
        self._movable = movable
        if movable:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Graphs over time"))
        self._timer = every(self, INTERVAL_MS, self.draw_due)
        theme.follow(self._on_look_changed)

    def draw(self) -> None:
        """Draw every graph at once, even when hidden: when the axis is moved, and for pictures."""
        self._begin()
        while self._left:
            self._draw_next()

    def zoom(self, factor: float, at_s: float | None = None) -> None:
        self.axis.zoom(factor, at_s)
        self._on_moved()

    def pan(self, share: float) -> None:
        self.axis.pan(share)
        self._on_moved()

    def follow(self, window_s: float | None) -> None:
        self.axis.follow(window_s)
        self._on_moved()

    def set_following(self, following: bool) -> None:
        if following:
            self.axis.resume()
        else:
            self.axis.set_range(*self.axis.range)
        self._on_moved()

    def read_at(self, second: float | None) -> None:
        """Show all values at this second of the axis; None: the last ones."""
        self._at = second
        self._read_out()

    # --- private ------------------------------------------------------------------------------------------------------

    def draw_due(self) -> None:
        """Draw what is due. Whoever writes other numbers once a second calls this, so that all are painted together;
        nobody has to: a timer does it, a little later.
        """
        if not self.isVisible():
            return
        self._timer.start(_RUNNING_MS if self._measured.is_running else INTERVAL_MS)
        if self._drawn == self._measured.revision:
            return
        begin, end = self.axis.range
        pixel_s = (end - begin) / max(self.graphs[0].plot.inside.width(), 1.0)
        rest_s = max(min(pixel_s, _SELDOM_S), self._pace.rest_ms / 1e3 if self._measured.is_running else 0.0)
        if self._drawn < 0 or (not self._left and self._clock() - self._drawn_s >= rest_s):
            if self._drawn < 0:
                self.draw()
            else:
                self._begin()
                self._next.start()
        else:
            self._read_out()

    def _begin(self) -> None:
        """All graphs are to be drawn, over the same time."""
        if self._draw_ms:
            self._pace.spent(self._draw_ms)
        measured, self._draw_ms = self._measured, 0.0
        self._drawn, self._drawn_s = measured.revision, self._clock()
        start = measured.start_s or 0.0
        self.axis.fold = fold = measured.active.fold(start)
        latest = measured.latest_s - start if measured.start_s is not None else 0.0
        self.axis.latest_s = float(fold.shown[-1]) if fold.gaps else latest
        self._left = list(self.graphs)
        self._read_out()

    def _draw_next(self) -> None:
        if not self._left:
            self._next.stop()
            return
        begun = time.perf_counter()
        start = self._measured.start_s or 0.0
        place = self.axis.fold.place
        marks = [(place(mark.operation.at_s - start), self._mark_ink(mark)) for mark in self._measured.marks]
        self._left.pop(0).draw(start, marks)
        self._draw_ms += (time.perf_counter() - begun) * 1e3

    def _on_look_changed(self) -> None:
        for graph in self.graphs:
            graph.set_colours()
        self._drawn = -1
        self.draw_due()

    def _on_moved(self) -> None:
        self.draw()
        self.moved.emit()

    def _on_painted(self, ms: float) -> None:
        self._draw_ms += ms

    def _read_out(self) -> None:
        start = self._measured.start_s or 0.0
        for graph in self.graphs:
            graph.show_at(self._at, start)
        note = self._note_text(start)
        values = [graph.captions.words for graph in self.graphs] if self._at is not None else []
        self.setAccessibleDescription(tr("; ").join(filter(None, (note, *values))))
        if note != self.note:
            self.note = note
            self.read.emit(note)

    def _note_text(self, start: float) -> str:
        if self._measured.start_s is None:
            return tr("Speeds and cells are drawn here while the model works.")
        marks = self._measured.marks
        if self._at is None:
            if marks:
                return _mark_text(marks[-1], start)
            if self.axis.fold.gaps:
                return tr("Time since the first reading; pauses are folded at the dashed lines")
            return tr("Time since the first reading")
        begin, end = self.axis.range
        place = self.axis.fold.place
        at = tr("at {time}").format(time=clock_text(self.axis.fold.time(self._at), 0.1))
        if marks:
            mark = min(marks, key=lambda mark: abs(place(mark.operation.at_s - start) - (self._at or 0.0)))
            if abs(place(mark.operation.at_s - start) - self._at) <= _NEAR * (end - begin):
                return f"{at}  ·  {_mark_text(mark, start)}"
        return at

    def _mark_ink(self, mark: Mark) -> str:
        colours = self._theme.colours
        return colours.secondary if mark.colour is None else palette.conversation_colour(mark.colour, colours.dark)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._movable or not self._heed_key(Qt.Key(event.key()), event.modifiers()):
            super().keyPressEvent(event)

    def _heed_key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier) -> bool:
        """Whether the key meant something here."""
        begin, end = self.axis.range
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(key)
        zoom = {Qt.Key.Key_Plus: 0.5, Qt.Key.Key_Equal: 0.5, Qt.Key.Key_Minus: 2.0}.get(key)
        if step and modifiers & Qt.KeyboardModifier.ControlModifier:
            self.pan(step * 0.1)
        elif step:
            at = end if self._at is None else self._at + step * (end - begin) / 100
            self.read_at(min(max(at, begin), end))
        elif zoom:
            self.zoom(zoom)
        elif key == Qt.Key.Key_End:
            self.set_following(True)
        elif key == Qt.Key.Key_Escape and self._at is not None:
            self.read_at(None)
        else:
            return False
        return True

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Reached by key, the line that is read shows where one is."""
        super().focusInEvent(event)
        if is_by_tab(event):
            self.read_at(self.axis.range[1])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._drawn = -1  # another width has other ticks

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.read_at(None)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._drawn = -1
        QTimer.singleShot(0, self, self.draw_due)  # once it is laid out

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()


def _mark_text(mark: Mark, start: float) -> str:
    operation = mark.operation
    return f"{clock_text(operation.at_s - start, 0.1)}  {operation.name}: {operation.call}"
