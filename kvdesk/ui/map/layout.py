"""The rectangles of the strips of the cell map, and the cell under a point. Geometry in logical pixels, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

LABEL_PX: Final = 18  # height of a strip's name, drawn only when there are several
GAP_PX: Final = 8
BESIDE_FROM: Final = 4  # so many strips have their names beside them, not above
GUTTER_PX: Final = 64
BESIDE_GAP_PX: Final = 3
ROW_PX: Final = 13  # least height of a strip that has its name beside it
GROWTH: Final = 1.6  # a map of small cells may be so much higher than its room, for one more pixel to a cell


@dataclass(frozen=True, slots=True)
class Strip:
    """The cells of one stream: `columns` to a row, square cells of `cell` pixels, top left at (x, y).

    `label` is the name; `short`, where it is not empty, is written beside the strip instead of above it.
    """

    map_index: int
    stream_index: int
    label: str
    n_cells: int
    columns: int
    cell: float
    x: float
    y: float
    short: str = ""

    @property
    def rows(self) -> int:
        return ceil(self.n_cells / self.columns)

    @property
    def room(self) -> float:
        """Height it takes, its name beside it included."""
        return max(self.height, ROW_PX) if self.short else self.height

    @property
    def width(self) -> float:
        return self.columns * self.cell

    @property
    def height(self) -> float:
        return self.rows * self.cell

    def cell_at(self, x: float, y: float) -> int | None:
        """Index of the cell under the point, None outside."""
        column, row = (x - self.x) // self.cell, (y - self.y) // self.cell
        if not (0 <= column < self.columns and row >= 0):
            return None
        index = int(row * self.columns + column)
        return index if index < self.n_cells else None

    def corner(self, index: int) -> tuple[float, float]:
        """Top left corner of a cell."""
        return self.x + index % self.columns * self.cell, self.y + index // self.columns * self.cell


@dataclass(frozen=True, slots=True)
class StreamSize:
    """The input of a layout."""

    map_index: int
    stream_index: int
    label: str
    n_cells: int
    short: str = ""


def total_height(strips: Sequence[Strip]) -> int:
    """Height in pixels that the strips take."""
    return ceil(max((strip.y + strip.room for strip in strips), default=0.0))


def lay_out(sizes: Sequence[StreamSize], width: float, height: float, device_ratio: float = 1.0) -> tuple[Strip, ...]:
    """Strips one below the other, cells as large as all of them allow, on whole device pixels where possible.

    The height is kept to, unless that would blur the cells of a large cache or leave many streams no height at all.
    """
    sizes = [size for size in sizes if size.n_cells > 0]
    if not sizes or width < 1 or height < 1:
        return ()
    beside = len(sizes) >= BESIDE_FROM and width > 3 * GUTTER_PX
    label = LABEL_PX if len(sizes) > 1 and not beside else 0
    gap, left = (BESIDE_GAP_PX, float(GUTTER_PX)) if beside else (GAP_PX, 0.0)
    free = height - len(sizes) * label - (len(sizes) - 1) * gap
    if beside:
        free = max(free, float(len(sizes) * ROW_PX))
    counts = [size.n_cells for size in sizes]
    cell = _cell_size(counts, width - left, max(free, 1.0), device_ratio)
    strips: list[Strip] = []
    y = 0.0
    for size in sizes:
        columns = _columns(size.n_cells, width - left, cell)
        short = size.short if beside else ""
        strip = Strip(
            size.map_index, size.stream_index, size.label, size.n_cells, columns, cell, left, y + label, short
        )
        strips.append(strip)
        y += label + strip.room + gap
    return tuple(strips)


def _cell_size(counts: Sequence[int], width: float, height: float, device_ratio: float) -> float:
    """Largest cell with which the rows of all strips fit into the height, which is let out for small cells."""
    cell = min(sqrt(width * height / sum(counts)), 16.0)
    step = 1.0 / device_ratio
    if cell >= step:
        cell = int(cell / step) * step
        while cell > step and _rows(counts, width, cell) * cell > height:
            cell -= step
        larger = cell + step
        fits = cell < 3 * step and _rows(counts, width, larger) * larger <= height * GROWTH
        return larger if fits else cell
    if _rows(counts, width, step) * step <= height * GROWTH:
        return step
    while _rows(counts, width, cell) * cell > height:
        cell *= 0.98
    return cell


def _rows(counts: Sequence[int], width: float, cell: float) -> int:
    return sum(ceil(n / _columns(n, width, cell)) for n in counts)


def _columns(n_cells: int, width: float, cell: float) -> int:
    """Whole columns that fit."""
    return min(max(1, int(width / cell + 1e-6)), n_cells)
