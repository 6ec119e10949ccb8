"""The cell map: every cell of every stream as a square. A frame is made when something changed, then only drawn.

`frame_clock.FrameClock` decides how often a new frame is made.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import QMarginsF, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QRegion, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy

from kvdesk.protocol.cache import CacheView, MessageSpans
from kvdesk.session import Changed, Store
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.map.cell_descriptions import cell_words, selection_words
from kvdesk.ui.map.colours import ColourBy, Scene
from kvdesk.ui.map.frame import MapFrame, make_frame, strips_of
from kvdesk.ui.map.frame_clock import FrameClock
from kvdesk.ui.map.layout import total_height
from kvdesk.ui.map.legend_entries import MapLegend, grounds_of, key_of
from kvdesk.ui.map.pages import PageCache
from kvdesk.ui.map.painter import Edges, MapPainter, Masks
from kvdesk.ui.map.pointed_map import PointedMap
from kvdesk.ui.map.selection import outlines
from kvdesk.ui.map.sight import Sight, look_at
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import once
from kvdesk.values import replace
from kvdesk.viewmodel.cells.attention import Shown
from kvdesk.viewmodel.cells.links import CellRun
from kvdesk.viewmodel.cells.recency import Recency

_SHOWN: Final = Changed.VIEW | Changed.CONVERSATIONS | Changed.ATTENTION
_FADE_STEP_MS: Final = 120
_AROUND: Final = QMarginsF(5, 5, 5, 5)  # of a cell, where its frame may be
_NOTHING: Final = ("", "")


class CellMapView(PointedMap):
    """Draws a `CacheView`."""

    described = Signal(str, str)
    """Two lines about the cell under the mouse or the cursor, else about the selection; empty when there is neither."""
    view_shown = Signal()
    """Cells may have moved since the view before."""
    key_changed = Signal(MapLegend)
    """A `MapLegend`: what colours and marks mean now."""
    _due = Signal()
    pages_told = Signal(str)
    """The memory that paging would hold and waste, in words; empty when the map is not coloured by page."""

    def __init__(self, theme: Theme, *, wide: bool = False) -> None:
        """`wide`: rows of 128 cells for a small cache too."""
        super().__init__()
        self._theme = theme
        self._is_wide = wide
        self._painter = MapPainter(theme)
        self.clock = FrameClock()
        """Times of the map's own frames."""
        self._pages = PageCache()
        self._edges: Edges = {}
        self._lit_runs: tuple[CellRun, ...] = ()
        self._lit: Masks = {}
        self._view: CacheView | None = None
        self._frame: MapFrame | None = None
        self._sight: Sight | None = None
        self._laid_out: tuple[object, int, int, float, QFont] | None = None  # what they are laid out for
        self._key: MapLegend | None = None
        self._grounds: tuple[object, ...] = ()  # of `_key`
        self._scene = Scene()
        self._texts: Mapping[int, str] = {}
        self._recency = Recency()
        self._overlay = self._is_due = False
        self._said = _NOTHING
        self._room = 240
        self._refreshed_at = 0.0
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setObjectName("cellMap")
        self.setAccessibleName(tr("Cell map of the KV cache"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.setMinimumWidth(160)
        self._least: int | None = None
        self._height = 0
        self._take(self._room)
        self._timer = once(self, 0, self.refresh)
        self._due.connect(self._on_due, Qt.ConnectionType.QueuedConnection)  # it comes before what is to be painted
        theme.changed.connect(self._invalidate)
        theme.changed.connect(self.update)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show_view(self, view: CacheView, colours: Mapping[int, int], titles: Mapping[int, str]) -> None:
        """Draw `view`; `colours` and `titles` are those of the conversations, by seq_id."""
        if self._view is None or view.snapshot.operation != self._view.snapshot.operation:
            self._recency.note(time.monotonic(), view.snapshot.operation)
        if view is self._view and self._scene.colours == colours and self._scene.titles == titles:
            return
        is_new, self._view = view is not self._view, view
        if self._scene.colours != colours or self._scene.titles != titles:
            self._scene = replace(self._scene, colours=dict(colours), titles=dict(titles))
        if self._wait_ms() <= 0:
            self.refresh()  # now: it is then painted together with what else the same events have changed
        else:
            self._invalidate()
        if is_new:
            self.view_shown.emit()

    def follow(self, store: Store) -> None:
        """Show the cells that are there now, from now on."""
        self._store = store
        self.show_token_texts(store.texts)
        self.destroyed.connect(store.listen(self._on_changed, _SHOWN))
        self._on_changed(_SHOWN)

    def _on_changed(self, changed: Changed, _update: Update | None = None) -> None:
        store = self._store
        if changed & (Changed.VIEW | Changed.CONVERSATIONS) and store.view is not None:
            self.show_spans({spans.seq_id: spans for spans in store.spans.values()})
            self.show_tools(store.tool_spans())
            self.show_view(store.view, *store.looks(store.leases))
        if changed & Changed.ATTENTION:
            self.show_attention(store.attention.shown)

    def show_token_texts(self, texts: Mapping[int, str]) -> None:
        """The texts of token ids, by reference: the owner goes on adding to it."""
        self._texts = texts

    def show_spans(self, spans: Mapping[int, MessageSpans]) -> None:
        """Where the messages of each sequence lie, by seq_id."""
        if self._scene.spans != spans:
            self._change_scene(spans=dict(spans))

    def show_tools(self, tools: Mapping[int, tuple[tuple[str, int, int], ...]]) -> None:
        """Where the schemas of servers lie in each sequence, by seq_id."""
        if self._scene.tools != tools:
            self._change_scene(tools=dict(tools))

    def show_attention(self, shown: Shown | None) -> None:
        """What a token looked at; None: nothing is known."""
        if self._scene.attention is not shown:
            self._change_scene(attention=shown)

    def show_selection(self, runs: Sequence[CellRun]) -> None:
        """Select cells from outside, such as those of a text; nothing is sent. None of them lets go."""
        self._selection.set_runs(runs)
        self._on_selection_changed()
        if self._frame is not None and runs:
            number = self._frame.find(runs[0].cache, runs[0].stream)
            if number is not None and len(runs[0].cells):
                self._bring_into_view(number, int(runs[0].cells[0]))

    def light(self, runs: Sequence[CellRun]) -> None:
        """Light these cells up, and no others; nothing scrolls."""
        same = len(runs) == len(self._lit_runs) and all(map(_same_cells, runs, self._lit_runs))
        if not same:
            self._lit_runs = tuple(runs)
            self._outline()
            self.update()

    def set_colour_by(self, mode: ColourBy) -> None:
        self._change_scene(mode=mode)
        self._come_back(0)

    def set_page_size(self, page_size: int) -> None:
        """Slots of a page of the paged overlay."""
        self._pages.set_page_size(page_size)
        self._come_back(0)

    def set_overlay(self, shown: bool) -> None:
        """The developer overlay: what the map's own frames take."""
        self._overlay = shown
        self.update()

    def toggle_overlay(self) -> None:
        self.set_overlay(not self._overlay)

    def set_room(self, height: int) -> None:
        """The height the map should keep to; it takes what its cells need of it."""
        if height != self._room:
            self._room = height
            self._come_back(0)

    def give_way(self, least: int) -> None:
        """It may be less high than its cells need, but not less than that: nothing else around it gives way."""
        self._least = least
        self._take(self._height)

    def _take(self, height: int) -> None:
        """Be so high."""
        self._height = height
        self.setMinimumHeight(height if self._least is None else min(height, self._least))
        self.setMaximumHeight(height)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(self.minimumWidth(), self._height)

    def zoom_in(self) -> None:
        self._zoom_to_target(1.25)

    def zoom_out(self) -> None:
        self._zoom_to_target(0.8)

    def _zoom_to_target(self, factor: float) -> None:
        """Zoom without a pointer: the cursor stays in sight, else the selection, else the used cell nearest to the
        middle.
        """
        middle, target = QPointF(self.rect().center()), None
        if self._frame is not None:
            target = self._selection.at
            if target is None and self._selection.runs:
                run = self._selection.runs[0]
                number = self._frame.find(run.cache, run.stream)
                target = None if number is None else (number, int(run.cells[len(run.cells) // 2]))
            if target is None:
                centre = self._viewport.to_map(middle)
                target = self._frame.nearest_used(centre.x(), centre.y())
        if target is None or target[0] >= len(self.strips):
            self.zoom_at(middle, factor)
            return
        strip = self.strips[target[0]]
        x, y = strip.corner(target[1])
        self.zoom_at(self._viewport.to_widget(x + strip.cell / 2, y + strip.cell / 2), factor)
        self._bring_into_view(*target)

    # --- frames -------------------------------------------------------------------------------------------------------

    def _change_scene(self, **fields: object) -> None:
        self._scene = replace(self._scene, **fields)  # type: ignore[arg-type]
        self._invalidate()

    def _invalidate(self) -> None:
        """A new frame is due, as soon as the clock's rule allows."""
        if self.isVisible():
            self._come_back(round(max(0.0, self._wait_ms())))

    def _wait_ms(self) -> float:
        """Until the clock's rule allows a new frame."""
        return self.clock.interval_ms - (time.monotonic() - self._refreshed_at) * 1e3

    def _come_back(self, ms: int) -> None:
        """Make a frame in `ms`; 0 is at once, but together with all else that is shown now, in one painting."""
        if ms <= 0 and not self._is_due:
            self._is_due = True
            self._due.emit()
        elif ms > 0 and (not self._timer.isActive() or self._timer.remainingTime() > ms):
            self._timer.start(ms)

    def _on_due(self) -> None:
        if self._is_due:
            self.refresh()

    def refresh(self) -> None:
        """Make a new frame now, whatever the clock says."""
        self._is_due = False
        self._timer.stop()
        if self._view is None or not self.isVisible():
            return
        begun = time.perf_counter()
        self._refreshed_at = time.monotonic()
        before = self._sight
        self._make_frame(self._view)
        self._describe()
        where = self._where_changed(before)
        self.clock.refreshed((time.perf_counter() - begun) * 1e3)
        if where.isEmpty():
            self.clock.painted(0.0)
        else:
            self.update(where)

    def _look_at(self, frame: MapFrame) -> Sight:
        """What is seen of the frame now."""
        sight = self._sight
        if sight is None or sight.frame is not frame or sight.viewport is not self._viewport:
            self._sight = sight = look_at(frame, self._viewport)
        return sight

    def _where_changed(self, before: Sight | None) -> QRegion:
        """Where what is seen looks different: of most, a few rows."""
        if self._frame is None:
            return QRegion(self.rect())
        sight = self._look_at(self._frame)
        boxes = None if before is None or self._overlay else sight.changed(before)
        if boxes is None or self._painter.shows_texts(self.strips, self._viewport):
            return QRegion(self.rect())
        where = QRegion()
        for box in boxes:
            where += box.marginsAdded(_AROUND).toAlignedRect()
        return where & self.rect()

    def _make_frame(self, view: CacheView) -> None:
        limits = self._recency.limits(time.monotonic())
        before = self.strips
        self._lay_out(view)
        scene = self._scene
        if scene.mode is ColourBy.PAGE:
            scene = replace(scene, pages=self._pages.overlays(view.snapshot))
        self._frame = frame = make_frame(view, self.strips, scene, limits)
        if self.strips is not before:
            self._on_layout_changed()
        grounds = grounds_of(frame, view.snapshot)
        if grounds != self._grounds:
            self._grounds, key = grounds, key_of(frame, view.snapshot)
            if self._key is None or key.pages != self._key.pages:
                self.pages_told.emit(key.pages)
            self._key = key
            self.key_changed.emit(key)
        if frame.is_younger(limits[0]):  # let the just-written cells fade
            self._come_back(max(_FADE_STEP_MS, self.clock.interval_ms))
        if scene.pages and self._pages.is_behind(view.snapshot):
            self._come_back(round(self._pages.wait_s * 1e3) + 1)

    def _lay_out(self, view: CacheView) -> None:
        """Strips for the cells there are, and the height they take."""
        maps = view.snapshot.maps
        sizes = [stream.size for cache in maps for stream in cache.streams]
        font = self._theme.mono_small  # of the row numbers
        laid_out = (len(maps), *sizes), self.width(), self._room, self.devicePixelRatioF(), font
        if laid_out == self._laid_out:
            return
        self._laid_out = laid_out
        digit_px = QFontMetricsF(font).horizontalAdvance("0")
        width = self.width() - self._bar.sizeHint().width()  # the same with and without a bar
        strips = strips_of(view, width, self.devicePixelRatioF(), wide=self._is_wide, digit_px=digit_px)
        self.strips = self.strips if strips == self.strips else strips
        height = min(max(total_height(strips), 64), self._room) if strips else self._room
        if height != self._height:
            self._take(height)

    def _on_layout_changed(self) -> None:
        """The same zoom with cells of another size, the same selection in other rows."""
        self._look(self._fitted(self._viewport))
        if self.strips and self._viewport.zoom > 1:
            self._look(self._viewport.zoomed(QPointF(), 1.0, self.strips[0].cell))
        if self._selection.at is not None and self._selection.at[0] >= len(self.strips):
            self._selection.at = None
        self._outline()

    def _outline(self) -> None:
        """What is selected, and what is lit."""
        self._edges, self._lit = outlines(self.strips, self._lit_runs, self._selection.runs)

    def paintEvent(self, event: QPaintEvent) -> None:
        begun = time.perf_counter()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(self._theme.colours.panel))
        if self._frame is not None and self._frame.strips:
            at = self._selection.at if self._at_mouse or self.hasFocus() else None
            parts = self._texts, self._edges, at, self._lit
            self._painter.paint(painter, event.rect(), self._look_at(self._frame), *parts)
            if self._overlay:
                self._painter.paint_words(painter, self.clock.words(self._painter.n_drawn), self.width())
            self.clock.painted((time.perf_counter() - begun) * 1e3)
            return
        painter.setPen(QColor(self._theme.colours.secondary))
        painter.setFont(self._theme.small)
        if self._view is None:
            text = tr("The cells of the cache appear here as soon as a model is open.")
        else:
            text = tr("This model keeps no attention cache: there are no cells.")
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap.value, text)

    # --- what is said -------------------------------------------------------------------------------------------------

    def _describe(self) -> None:
        lines = _NOTHING
        at = self._selection.at
        if self._frame is not None:
            if at is not None and at[0] < len(self._frame.strips) and at[1] < self._frame.strips[at[0]].strip.n_cells:
                lines = cell_words(self._frame, at[0], at[1], self._texts)
            elif self._selection.runs and self._view is not None:
                lines = selection_words(self._view.snapshot, self._selection.runs, self._scene.titles)
        if lines != self._said:
            self._said = lines
            self.setAccessibleDescription("; ".join(line for line in lines if line))
            self.described.emit(*lines)

    def _on_selection_changed(self) -> None:
        self._outline()
        self._describe()
        self.update()

    # --- size ---------------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._come_back(0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._come_back(0)


def _same_cells(one: CellRun, other: CellRun) -> bool:
    return (one.cache, one.stream) == (other.cache, other.stream) and np.array_equal(one.cells, other.cells)
