"""Where each strip of the cell map lies, and which cell is under a point. Pure geometry in logical pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

LABEL_PX: Final = 18  # height of a strip's name, drawn only when there are several
GAP_PX: Final = 8


@dataclass(frozen=True, slots=True)
class Strip:
    """The cells of one stream: `columns` to a row, square cells of `cell` pixels, top left at (x, y)."""

    map_index: int
    stream_index: int
    label: str
    n_cells: int
    columns: int
    cell: float
    x: float
    y: float

    @property
    def rows(self) -> int:
        return ceil(self.n_cells / self.columns)

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
    """What a layout is made from."""

    map_index: int
    stream_index: int
    label: str
    n_cells: int


def total_height(strips: Sequence[Strip]) -> int:
    """Height in pixels that the strips take."""
    return ceil(max((strip.y + strip.height for strip in strips), default=0.0))


def lay_out(sizes: Sequence[StreamSize], width: float, height: float, device_ratio: float = 1.0) -> tuple[Strip, ...]:
    """Strips one below the other, cells as large as all of them allow, on whole device pixels where possible."""
    sizes = [size for size in sizes if size.n_cells > 0]
    if not sizes or width < 1 or height < 1:
        return ()
    label = LABEL_PX if len(sizes) > 1 else 0
    free = height - len(sizes) * label - (len(sizes) - 1) * GAP_PX
    cell = _cell_size([size.n_cells for size in sizes], width, max(free, 1.0), device_ratio)
    strips: list[Strip] = []
    y = 0.0
    for size in sizes:
        columns = _columns(size.n_cells, width, cell)
        strip = Strip(size.map_index, size.stream_index, size.label, size.n_cells, columns, cell, 0.0, y + label)
        strips.append(strip)
        y += label + strip.height + GAP_PX
    return tuple(strips)


def _cell_size(counts: Sequence[int], width: float, height: float, device_ratio: float) -> float:
    """Largest cell with which the rows of all strips fit into the height."""
    cell = min(sqrt(width * height / sum(counts)), 16.0)
    step = 1.0 / device_ratio
    if cell >= step:
        cell = int(cell / step) * step
        while cell > step and sum(ceil(n / _columns(n, width, cell)) for n in counts) * cell > height:
            cell -= step
        return cell
    while sum(ceil(n / _columns(n, width, cell)) for n in counts) * cell > height:
        cell *= 0.98
    return cell


def _columns(n_cells: int, width: float, cell: float) -> int:
    """Whole columns that fit."""
    return min(max(1, int(width / cell + 1e-6)), n_cells)
