"""What a drawing of the cell map needs, made once when something changed: strips and the codes of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvdesk.cache.metrics import n_kv
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.messages import CacheView
from kvdesk.ui import raster
from kvdesk.ui.map_colours import ColourBy, Scales, Scene, groups_of, page_marks, scales_of
from kvdesk.ui.map_growth import Limits, grown
from kvdesk.ui.map_layout import StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn. `n_kv`: cells attention walks over in its cache, the maximum over streams.

    limits         the operations after which a cell is fading, and just written
    since, first   what `layer` has in common with the layer of the frame before: every cell before `first`
    """

    strip: Strip
    stream: StreamMap
    layer: raster.Layer = field(repr=False)
    n_kv: int
    limits: Limits
    since: raster.Layer | None = field(default=None, repr=False)
    first: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class MapFrame:
    """All streams of all caches at one operation.

    youngest   the last operation that wrote a cell
    present    all marks that any cell has, as bits
    """

    strips: tuple[StripFrame, ...]
    scene: Scene
    scales: Scales
    operation: int
    youngest: int
    present: int

    @property
    def n_cells(self) -> int:
        return sum(part.strip.n_cells for part in self.strips)

    def find(self, cache: int, stream: int) -> int | None:
        """Number of the strip that shows a stream."""
        for i, part in enumerate(self.strips):
            if (part.strip.map_index, part.strip.stream_index) == (cache, stream):
                return i
        return None


def strips_of(view: CacheView, width: float, height: float, ratio: float) -> tuple[Strip, ...]:
    """A strip for every stream of every cache; names only where there are several."""
    maps = view.snapshot.maps
    sizes = []
    for m, cache in enumerate(maps):
        for s, stream in enumerate(cache.streams):
            name = strip_name(maps, m, s)
            short = name if len(cache.streams) == 1 else f"{cache.name if len(maps) > 1 else 'stream'} {s}"
            sizes.append(StreamSize(m, s, name, stream.size, short))
    return lay_out(tuple(sizes), width, height, ratio)


def strip_name(maps: tuple[CacheMap, ...], cache: int, stream: int) -> str:
    """ "base, stream 2"; nothing of it where there is no other."""
    name = maps[cache].name if len(maps) > 1 else ""
    where = f"stream {stream}" if len(maps[cache].streams) > 1 else ""
    return ", ".join(part for part in (name, where) if part)


def make_frame(
    view: CacheView, strips: tuple[Strip, ...], scene: Scene, limits: Limits, before: MapFrame | None = None
) -> MapFrame:
    """Codes of all strips. `before`: the frame that was shown until now; where only tokens were appended it helps."""
    snapshot = view.snapshot
    scales = scales_of(snapshot)
    spans = [max((n_kv(stream) for stream in cache.streams), default=0) for cache in snapshot.maps]
    done: list[StripFrame] = []
    parts = _comparable(before, strips, scene)
    youngest = present = 0
    for strip, part in zip(strips, parts, strict=True):
        cache = snapshot.maps[strip.map_index]
        stream = cache.streams[strip.stream_index]
        span = min(spans[strip.map_index], stream.size)
        found = None
        if part is not None and part.n_kv == span:
            found = grown(part.stream, part.layer, part.limits, stream, cache, limits)
        layer, since, first = found or (
            _layer(stream, cache, strip, scene, scales, snapshot.operation, span, limits),
            None,
            0,
        )
        done.append(StripFrame(strip, stream, layer, span, limits, since, first))
        youngest = max(youngest, int(stream.born[: stream.high_water].max(initial=0)))
        present |= int(np.bitwise_or.reduce(layer.marks))
    return MapFrame(tuple(done), scene, scales, snapshot.operation, youngest, present)


def _comparable(before: MapFrame | None, strips: tuple[Strip, ...], scene: Scene) -> Sequence[StripFrame | None]:
    """The parts of the frame before, where they are of the same strips in the same colours; each cell has its own."""
    if (
        before is None
        or scene.mode is not ColourBy.CONVERSATION
        or before.scene.mode is not scene.mode
        or before.scene.colours != scene.colours
        or [part.strip for part in before.strips] != list(strips)
    ):
        return (None,) * len(strips)
    return before.strips


def _layer(
    stream: StreamMap,
    cache: CacheMap,
    strip: Strip,
    scene: Scene,
    scales: Scales,
    operation: int,
    span: int,
    limits: Limits,
) -> raster.Layer:
    runs = raster.runs_of(stream)
    marks = raster.marks_of(stream, runs, cache, *limits)
    page = None
    if scene.mode is ColourBy.PAGE and strip.map_index < len(scene.pages):
        overlay = scene.pages[strip.map_index]
        if strip.stream_index < len(overlay.page_of):
            page = overlay.page_of[strip.stream_index]
            page_marks(overlay, page, stream.high_water, marks)
    elif scene.mode is ColourBy.SEQUENCES:
        marks &= np.uint8(~raster.SHARED & 255)  # the colour says it
    group, second = groups_of(stream, runs, scene, scales, operation, page)
    return raster.layer(stream, runs, span, group, second, marks)
