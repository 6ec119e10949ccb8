"""What a drawing of the cell map needs, made once when something changed: strips, images, runs of shared cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from kvdesk.cache.snapshot import StreamMap
from kvdesk.messages import CacheView
from kvdesk.ui import raster
from kvdesk.ui.map_layout import StreamSize, Strip, lay_out


@dataclass(frozen=True, slots=True, eq=False)
class StripFrame:
    """One stream, ready to be drawn."""

    strip: Strip
    stream: StreamMap
    image: QImage  # one pixel per cell; reads the memory of `pixels`
    pixels: NDArray[np.uint8] = field(repr=False)
    shared: list[tuple[int, int, int]] = field(repr=False)  # first cell, number of cells, second sequence


@dataclass(frozen=True, slots=True, eq=False)
class MapFrame:
    """All streams of all caches at one operation."""

    strips: tuple[StripFrame, ...]
    n_kv: int
    colours: Mapping[int, int]  # palette index of the conversation that leases a sequence
    titles: Mapping[int, str]
    youngest: int  # the last operation that wrote a cell


@dataclass(frozen=True, slots=True)
class Viewport:
    """The part of the map that is looked at: widget = map * zoom + offset."""

    width: float
    height: float
    ratio: float = 1.0
    zoom: float = 1.0
    offset: QPointF = field(default_factory=QPointF)

    def to_map(self, point: QPointF) -> QPointF:
        return (point - self.offset) / self.zoom

    def zoomed(self, point: QPointF, factor: float, limit: float) -> Viewport:
        """Larger or smaller, the point staying where it is."""
        zoom = min(max(self.zoom * factor, 1.0), limit)
        return _inside(self, zoom, point - (point - self.offset) * (zoom / self.zoom))

    def moved(self, by: QPointF) -> Viewport:
        return _inside(self, self.zoom, self.offset + by)

    def resized(self, width: float, height: float, ratio: float) -> Viewport:
        return _inside(Viewport(width, height, ratio), self.zoom, self.offset)

    def visible(self, strip: Strip) -> tuple[range, range]:
        """Columns and rows of a strip that can be seen."""
        left, top = -self.offset.x() / self.zoom - strip.x, -self.offset.y() / self.zoom - strip.y
        right, bottom = left + self.width / self.zoom, top + self.height / self.zoom
        columns = range(max(0, int(left / strip.cell)), min(strip.columns, int(right / strip.cell) + 1))
        rows = range(max(0, int(top / strip.cell)), min(strip.rows, int(bottom / strip.cell) + 1))
        return columns, rows


def strips_of(view: CacheView, width: float, height: float, ratio: float) -> tuple[Strip, ...]:
    """A strip for every stream of every cache; names only where there are several."""
    maps = view.snapshot.maps
    sizes = []
    for m, cache in enumerate(maps):
        for s, stream in enumerate(cache.streams):
            name = cache.name if len(maps) > 1 else ""
            where = f"stream {s}" if len(cache.streams) > 1 else ""
            sizes.append(StreamSize(m, s, ", ".join(part for part in (name, where) if part), stream.size))
    return lay_out(sizes, width, height, ratio)


def make_frame(
    view: CacheView,
    strips: tuple[Strip, ...],
    tints: list[int],
    colours: Mapping[int, int],
    titles: Mapping[int, str],
    limits: tuple[int, int],
) -> MapFrame:
    """Index images of all strips. `limits` are the operations after which a cell is fading, and fresh."""
    snapshot = view.snapshot
    done = []
    youngest = 0
    for strip in strips:
        stream = snapshot.maps[strip.map_index].streams[strip.stream_index]
        runs = raster.runs_of(stream)
        slots = raster.slot_table(colours, stream.seq_bits.shape[1] * 64)
        index = raster.index_image(stream, runs, slots, min(snapshot.n_kv, stream.size), *limits)
        pixels = raster.as_picture(index, strip.columns)
        image = QImage(pixels.data, strip.columns, strip.rows, pixels.shape[1], QImage.Format.Format_Indexed8)
        image.setColorTable(tints)
        done.append(StripFrame(strip, stream, image, pixels, raster.second_owner_runs(runs)))
        youngest = max(youngest, int(stream.born[: stream.high_water].max(initial=0)))
    return MapFrame(tuple(done), snapshot.n_kv, colours, titles, youngest)


def _inside(viewport: Viewport, zoom: float, offset: QPointF) -> Viewport:
    """At this zoom, moved so that no space appears beside the map."""
    x, y = viewport.width * (1 - zoom), viewport.height * (1 - zoom)
    inside = QPointF(min(0.0, max(offset.x(), x)), min(0.0, max(offset.y(), y)))
    return Viewport(viewport.width, viewport.height, viewport.ratio, zoom, inside)
