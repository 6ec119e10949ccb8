"""What a drawing of the cell map needs, made once when something changed: strips and the codes of their cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kvdesk.cache.metrics import n_kv
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.messages import CacheView
from kvdesk.ui import raster
from kvdesk.ui.map_colours import ColourBy, Scales, Scene, groups_of, page_marks, scales_of
from kvdesk.ui.map_layout import StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn. `n_kv`: cells attention walks over in its cache, the maximum over streams."""

    strip: Strip
    stream: StreamMap
    layer: raster.Layer = field(repr=False)
    n_kv: int


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
    return _laid_out(tuple(sizes), width, height, ratio)


_laid_out = lru_cache(maxsize=8)(lay_out)  # the same for every frame, as a rule


def strip_name(maps: tuple[CacheMap, ...], cache: int, stream: int) -> str:
    """ "base, stream 2"; nothing of it where there is no other."""
    name = maps[cache].name if len(maps) > 1 else ""
    where = f"stream {stream}" if len(maps[cache].streams) > 1 else ""
    return ", ".join(part for part in (name, where) if part)


def make_frame(view: CacheView, strips: tuple[Strip, ...], scene: Scene, limits: tuple[int, int]) -> MapFrame:
    """Codes of all strips. `limits` are the operations after which a cell is fading, and just written."""
    snapshot = view.snapshot
    scales = scales_of(snapshot)
    spans = [max((n_kv(stream) for stream in cache.streams), default=0) for cache in snapshot.maps]
    done = []
    youngest = present = 0
    for strip in strips:
        cache = snapshot.maps[strip.map_index]
        stream = cache.streams[strip.stream_index]
        layer = _layer(stream, cache, strip, scene, scales, snapshot.operation, spans[strip.map_index], limits)
        done.append(StripFrame(strip, stream, layer, min(spans[strip.map_index], stream.size)))
        youngest = max(youngest, int(stream.born[: stream.high_water].max(initial=0)))
        present |= int(np.bitwise_or.reduce(layer.marks))
    return MapFrame(tuple(done), scene, scales, snapshot.operation, youngest, present)


def _layer(
    stream: StreamMap,
    cache: CacheMap,
    strip: Strip,
    scene: Scene,
    scales: Scales,
    operation: int,
    span: int,
    limits: tuple[int, int],
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
    return raster.layer(stream, runs, min(span, stream.size), group, second, marks)
