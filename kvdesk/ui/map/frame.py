"""The data of a drawing of the cell map, made once for each change: strips, and what gives their cells a code."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.metrics import n_kv
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.protocol.cache import CacheView
from kvdesk.translation import tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import Colouring, Scales, Scene, colouring, scales_of
from kvdesk.ui.map.layout import DIGIT_PX, StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn. `n_kv`: cells attention walks over in its cache, the maximum over streams."""

    strip: Strip
    stream: StreamMap
    n_kv: int
    colouring: Colouring = field(repr=False)
    limits: raster.Limits
    hidden_below: NDArray[np.int64] | None = field(repr=False)

    def layer(self, first: int, end: int) -> raster.Layer:
        """The cells from `first` to before `end`, which may be behind the last one."""
        cells = raster.cells_of(self.stream, first, end, self.limits, self.hidden_below)
        return raster.layer(cells, self.colouring(cells), end, self.n_kv, self.stream.size)

    def rows(self, first: int, end: int) -> raster.Layer:
        """The cells of the rows from `first` to before `end`."""
        return self.layer(first * self.strip.columns, end * self.strip.columns)


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
            part.stream.written_at_op.max(initial=0) > operation for part in self.strips
        )

    @property
    def is_shifted(self) -> bool:
        """Whether some K has still to be rotated."""
        return any(part.stream.shifted is not None for part in self.strips)

    @property
    def has_holes(self) -> bool:
        """Whether some cell before the last used one is free."""
        return any(part.stream.used < part.stream.high_water for part in self.strips)

    @property
    def n_cells(self) -> int:
        return sum(part.strip.n_cells for part in self.strips)

    def nearest_used(self, x: float, y: float) -> tuple[int, int] | None:
        """Strip and cell of the used cell nearest to a point; None if every cell is free."""
        best, nearest = None, float("inf")
        for i, part in enumerate(self.strips):
            used = np.flatnonzero(part.stream.pos[: part.stream.high_water] >= 0)
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


def strips_of(
    view: CacheView, width: float, ratio: float, *, wide: bool = False, digit_px: float = DIGIT_PX
) -> tuple[Strip, ...]:
    """A strip for every stream of every cache; names only if there are several."""
    maps = view.snapshot.maps
    sizes = [
        StreamSize(m, s, strip_name(maps, m, s), stream.size)
        for m, cache in enumerate(maps)
        for s, stream in enumerate(cache.streams)
    ]
    return lay_out(sizes, width, ratio, wide=wide, digit_px=digit_px)


def strip_name(maps: tuple[CacheMap, ...], cache: int, stream: int) -> str:
    """ "base, stream 2"; each part only if there are several."""
    name = maps[cache].name if len(maps) > 1 else ""
    where = tr("stream {stream}").format(stream=stream) if len(maps[cache].streams) > 1 else ""
    return ", ".join(part for part in (name, where) if part)


def make_frame(view: CacheView, strips: tuple[Strip, ...], scene: Scene, limits: raster.Limits) -> MapFrame:
    """What gives the cells of all strips their codes."""
    snapshot = view.snapshot
    scales = scales_of(snapshot, scene.mode)
    spans = [max([n_kv(stream) for stream in cache.streams], default=0) for cache in snapshot.maps]
    hidden_below = [raster.hidden_below(cache, snapshot.sequences) for cache in snapshot.maps]
    done: list[StripFrame] = []
    for strip in strips:
        m, s = strip.map_index, strip.stream_index
        stream = snapshot.maps[m].streams[s]
        colours = colouring(scene, scales, snapshot.operation, stream, (m, s))
        done.append(StripFrame(strip, stream, min(spans[m], stream.size), colours, limits, hidden_below[m]))
    return MapFrame(strips, tuple(done), scene, scales, snapshot.operation)
