"""The rectangles of the strips of the cell map, and the cell under a point. Geometry in logical pixels, no Qt.

A row always has the same number of cells, whatever the size of the window, so that a cell stays where one has seen it;
and a cell is never too small for the gap beside it. A map that is higher than its room scrolls.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

from kvdesk.values import dataclass

LABEL_PX: Final = 18  # height of a strip's name, drawn only when there are several
GAP_PX: Final = 8
TOP_PX: Final = 6  # above a strip without a name, for the upper half of its first row number
COLUMNS: Final = (64, 128)
WIDE_FROM: Final = 8192  # cells of the largest strip from which a row has 128 of them
LEAST_PIXELS: Final = 3  # device pixels of a cell: two and the gap
LARGEST_PX: Final = 16.0
DIGIT_PX: Final = 8.0  # of a row number, at least
NUMBER_GAP_PX: Final = 6


@dataclass(frozen=True, slots=True)
class Strip:
    """The cells of one stream: `columns` to a row, square cells of `cell` pixels, top left at (x, y).

    `label` is the name, empty if it is the only strip.
    """

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
    """The input of a layout."""

    map_index: int
    stream_index: int
    label: str
    n_cells: int


def total_height(strips: Sequence[Strip]) -> int:
    """Height in pixels that the strips take."""
    return ceil(max((strip.y + strip.height for strip in strips), default=0.0))


def lay_out(
    sizes: Sequence[StreamSize],
    width: float,
    device_ratio: float = 1.0,
    *,
    wide: bool = False,
    digit_px: float = DIGIT_PX,
) -> tuple[Strip, ...]:
    """Strips one below the other, row numbers on their left, cells as large as the width allows on whole device pixels.

    wide      rows of 128 cells for a small cache too, where the height is scarce
    digit_px  width of a digit of the row numbers
    """
    sizes = [size for size in sizes if size.n_cells > 0]
    if not sizes or width < 1:
        return ()
    largest = max(size.n_cells for size in sizes)
    left = ceil(len(f"{largest:,}") * max(digit_px, DIGIT_PX)) + NUMBER_GAP_PX
    few, many = COLUMNS
    room = (width - left) * device_ratio
    columns = many if (wide or largest > WIDE_FROM) and room >= many * LEAST_PIXELS else few
    pixels = max(LEAST_PIXELS, int(min(room / columns, LARGEST_PX * device_ratio)))
    strips: list[Strip] = []
    y = 0.0
    for size in sizes:
        y += LABEL_PX if len(sizes) > 1 else TOP_PX
        cell = pixels / device_ratio
        strips.append(Strip(size.map_index, size.stream_index, size.label, size.n_cells, columns, cell, left, y))
        y += strips[-1].height + GAP_PX
    return tuple(strips)


def row_step(strip: Strip, cell: float, spacing: float) -> int:
    """Rows from one number to the next: a power of two, at least `spacing` pixels with cells of `cell` pixels."""
    step = 1
    while step * cell < spacing and step < strip.rows:
        step *= 2
    return step
