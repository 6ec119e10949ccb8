"""The data of a drawing of the cell map, made once for each change: strips and the codes of their cells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kvdesk.cache.metrics import n_kv
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.protocol.cache import CacheView
from kvdesk.translation import tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import ColourBy, Scales, Scene, groups_of, page_marks, scales_of
from kvdesk.ui.map.growth import Limits, grown
from kvdesk.ui.map.layout import StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn. `n_kv`: cells attention walks over in its cache, the maximum over streams.

    since, first   what `layer` has in common with the layer of the frame before: every cell before `first`
    """

    strip: Strip
    stream: StreamMap
    layer: raster.Layer = field(repr=False)
    n_kv: int
    since: raster.Layer | None = field(default=None, repr=False)
    first: int = 0


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

    @property
    def is_shifted(self) -> bool:
        """Whether some K has still to be rotated."""
        return any(part.stream.shifted is not None for part in self.strips)

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
            short = name if len(cache.streams) == 1 else _short_name(cache, s, len(maps))
            sizes.append(StreamSize(m, s, name, stream.size, short))
    return lay_out(sizes, width, height, ratio)


def _short_name(cache: CacheMap, stream: int, n_caches: int) -> str:
    return f"{cache.name} {stream}" if n_caches > 1 else tr("stream {stream}").format(stream=stream)


def strip_name(maps: tuple[CacheMap, ...], cache: int, stream: int) -> str:
    """ "base, stream 2"; nothing of it where there is no other."""
    name = maps[cache].name if len(maps) > 1 else ""
    where = tr("stream {stream}").format(stream=stream) if len(maps[cache].streams) > 1 else ""
    return ", ".join(part for part in (name, where) if part)


def make_frame(
    view: CacheView, strips: tuple[Strip, ...], scene: Scene, limits: Limits, before: MapFrame | None = None
) -> MapFrame:
    """Codes of all strips. `before`: the frame that was shown until now; where only tokens were appended it helps."""
    snapshot = view.snapshot
    scales = scales_of(snapshot, scene.mode)
    spans = [max([n_kv(stream) for stream in cache.streams], default=0) for cache in snapshot.maps]
    done: list[StripFrame] = []
    known = before.strips if before is not None and _is_comparable(before, strips, scene) else (None,) * len(strips)
    for strip, part in zip(strips, known, strict=True):
        cache = snapshot.maps[strip.map_index]
        stream = cache.streams[strip.stream_index]
        span = min(spans[strip.map_index], stream.size)
        found = None
        if part is not None and part.n_kv == span:
            found = grown(part.stream, part.layer, stream, cache, limits)
        layer, since, first = found or (
            _layer(stream, cache, strip, scene, scales, snapshot.operation, span, limits),
            None,
            0,
        )
        done.append(StripFrame(strip, stream, layer, span, since, first))
    return MapFrame(strips, tuple(done), scene, scales, snapshot.operation)


def _is_comparable(before: MapFrame, strips: tuple[Strip, ...], scene: Scene) -> bool:
    """Whether a frame is of the same strips in the same colours, in a mode in which each cell has its own."""
    return (
        scene.mode is ColourBy.CONVERSATION
        and before.scene.mode is scene.mode
        and before.scene.colours == scene.colours
        and before.layout == strips
    )


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
