"""The data of a drawing of the cell map, made once for each change: strips and the codes of their cells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kvdesk.cache.metrics import n_kv
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.protocol.cache import CacheView
from kvdesk.translation import tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import ColourBy, Scales, Scene, by_attention, groups_of, page_marks, scales_of
from kvdesk.ui.map.layout import StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn. `n_kv`: cells attention walks over in its cache, the maximum over streams."""

    strip: Strip
    stream: StreamMap
    layer: raster.Layer = field(repr=False)
    n_kv: int


@dataclass(frozen=True, slots=True, eq=False)
class MapFrame:
    """All streams of all caches at one operation. `layout`: their strips."""

    layout: tuple[Strip, ...]
    strips: tuple[StripFrame, ...]
    scene: Scene
    scales: Scales
    operation: int

    def is_younger(self, operation: int) -> bool:
        """Whether some cell was written after that operation."""
        return self.operation > operation and any(
            p.stream.written_at_op.max(initial=0) > operation for p in self.strips
        )

    def changed(self, before: MapFrame) -> list[tuple[Strip, int, int]] | None:
        """Where it looks different from one before: strip, first cell, last cell + 1. None: all of it may."""
        if self.layout is not before.layout or self.scene.mode is not before.scene.mode:
            return None
        found = []
        for one, other in zip(before.strips, self.strips, strict=True):
            cells = raster.changed(one.layer, other.layer)
            heads = (one.stream.head, other.stream.head) if one.stream.head != other.stream.head else ()
            for first, end in (*([cells] if cells is not None else ()), *((head, head + 1) for head in heads)):
                found.append((other.strip, first, min(end, other.strip.n_cells)))
        return found

    @property
    def is_shifted(self) -> bool:
        """Whether some K has still to be rotated."""
        return any(part.stream.shifted is not None for part in self.strips)

    @property
    def has_holes(self) -> bool:
        """Whether some cell before the last used one is free."""
        return any((part.layer.code == raster.HOLE).any() for part in self.strips)

    @property
    def n_cells(self) -> int:
        return sum(part.strip.n_cells for part in self.strips)

    def nearest_used(self, x: float, y: float) -> tuple[int, int] | None:
        """Strip and cell of the used cell nearest to a point; None where every cell is free."""
        best, nearest = None, float("inf")
        for i, part in enumerate(self.strips):
            used = np.flatnonzero(part.layer.code >= raster.FIRST_GROUP)
            if not used.size:
                continue
            strip, half = part.strip, part.strip.cell / 2
            across = strip.x + used % strip.columns * strip.cell + half - x
            down = strip.y + used // strip.columns * strip.cell + half - y
            distance = across**2 + down**2
            at = int(distance.argmin())
            if distance[at] < nearest:
                best, nearest = (i, int(used[at])), float(distance[at])
        return best

    def find(self, cache: int, stream: int) -> int | None:
        """Number of the strip that shows a stream."""
        for i, part in enumerate(self.strips):
            if (part.strip.map_index, part.strip.stream_index) == (cache, stream):
                return i
        return None


def strips_of(view: CacheView, width: float, ratio: float, *, wide: bool = False) -> tuple[Strip, ...]:
    """A strip for every stream of every cache; names only where there are several."""
    maps = view.snapshot.maps
    sizes = [
        StreamSize(m, s, strip_name(maps, m, s), stream.size)
        for m, cache in enumerate(maps)
        for s, stream in enumerate(cache.streams)
    ]
    return lay_out(sizes, width, ratio, wide=wide)


def strip_name(maps: tuple[CacheMap, ...], cache: int, stream: int) -> str:
    """ "base, stream 2"; each part only if there are several."""
    name = maps[cache].name if len(maps) > 1 else ""
    where = tr("stream {stream}").format(stream=stream) if len(maps[cache].streams) > 1 else ""
    return ", ".join(part for part in (name, where) if part)


Limits = tuple[int, int]
"""Operations after which a written cell is fading, and just written."""


def make_frame(view: CacheView, strips: tuple[Strip, ...], scene: Scene, limits: Limits) -> MapFrame:
    """Codes of all strips."""
    snapshot = view.snapshot
    scales = scales_of(snapshot, scene.mode)
    spans = [max([n_kv(stream) for stream in cache.streams], default=0) for cache in snapshot.maps]
    done: list[StripFrame] = []
    for strip in strips:
        cache = snapshot.maps[strip.map_index]
        stream = cache.streams[strip.stream_index]
        span = min(spans[strip.map_index], stream.size)
        layer = _layer(stream, cache, strip, scene, scales, snapshot.operation, span, limits)
        done.append(StripFrame(strip, stream, layer, span))
    return MapFrame(strips, tuple(done), scene, scales, snapshot.operation)


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
    elif scene.mode is ColourBy.ATTENTION:
        marks &= np.uint8(~(raster.FRESH | raster.FADING) & 255)  # lightness is the scale
    group, second = groups_of(stream, runs, scene, scales, operation, page)
    if scene.mode is ColourBy.ATTENTION and scene.attention is not None:
        by_attention(stream, (strip.map_index, strip.stream_index), scene.attention, group, marks)
    return raster.layer(stream, runs, span, group, second, marks)
