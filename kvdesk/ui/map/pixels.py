"""Looks of cells -> picture: every visible cell as a square of whole device pixels, with its marks. numpy only, no Qt.

The last row and column of every cell are the gap to the next. From 5 pixels on each mark has a pattern, and a hole is
hollow; below, a shared cell is still split into two colours, and the others differ by lightness alone.
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.ui.map import raster
from kvdesk.ui.map.raster import CODE, EDGE, HOLE, INK, MARK_SHIFT, N_MARKS, SHARED, Layer

MARKS_FROM_PX: Final = 5
_SPLIT_AT: Final = 0.55
_HOLLOW: Final = 1 << N_MARKS  # of holes, beside the marks
_DRAWN: Final = (raster.FRESH, raster.HIDDEN, raster.SHIFTED, SHARED, raster.PARTIAL, raster.SINK, _HOLLOW)
PATTERNED: Final = sum(_DRAWN)
"""Marks that have a pattern."""
TOP, BOTTOM, LEFT, RIGHT = (1 << bit for bit in range(4))


class Part(NamedTuple):
    """Rows and columns of cells that are drawn, end excluded."""

    row: int
    rows: int
    column: int
    columns: int


def picture(
    layer: Layer,
    columns: int,
    part: Part,
    pixels: int,
    colour_of: NDArray[np.uint32],
    edges: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint32]:
    """Colour of every pixel of the part: `pixels` by `pixels` for a cell, `columns` cells to a row of the map.

    layer   the rows of the part, in their whole width
    pixels  of a cell with its gap, 3 at least
    edges   of each cell in rows, where the outline of the selection runs (`edges_of`)

    Cells that look the same are drawn once.
    """
    halves = [look.reshape(-1, columns)[:, part.column : part.columns] for look in layer if look is not None]
    split = pixels
    if len(halves) > 1:  # the colours say what is shared
        halves = [half & np.uint16(~(SHARED << MARK_SHIFT) & 0xFFFF) for half in halves]
        split = max(1, int((pixels - 1) * _SPLIT_AT))
    looks, numbers = _numbered(halves)
    drawn = _drawn(looks, pixels, colour_of)
    rows, width = halves[0].shape
    out = np.empty((rows, pixels, width, pixels), np.uint32)
    for y in range(pixels):
        out[:, y] = drawn[y].take(numbers[0 if y < split else -1], axis=0)
    if edges is not None:
        _draw_edges(out, edges[part.row : part.rows, part.column : part.columns], pixels, colour_of[EDGE])
    return out.reshape(rows * pixels, width * pixels)


def edges_of(selected: NDArray[np.bool_], columns: int) -> NDArray[np.uint8]:
    """Which sides of each cell, in rows of `columns`, divide a selected cell from one that is not."""
    rows = -(-selected.size // columns)
    grid = np.zeros((rows + 2, columns + 2), np.bool_)
    inner = np.zeros(rows * columns, np.bool_)
    inner[: selected.size] = selected
    grid[1:-1, 1:-1] = inner.reshape(rows, columns)
    mine = grid[1:-1, 1:-1]
    edges = np.zeros((rows, columns), np.uint8)
    for side, beyond in (
        (TOP, grid[:-2, 1:-1]),
        (BOTTOM, grid[2:, 1:-1]),
        (LEFT, grid[1:-1, :-2]),
        (RIGHT, grid[1:-1, 2:]),
    ):
        edges |= np.where(mine & ~beyond, np.uint8(side), np.uint8(0))
    return edges


def _numbered(halves: list[NDArray[np.uint16]]) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
    """The looks there are, rising, and for each half the number among them of each of its looks."""
    exists = np.zeros(1 << int(MARK_SHIFT) + N_MARKS, np.bool_)
    for half in halves:
        exists[half] = True
    looks = np.flatnonzero(exists)
    number = np.empty(exists.size, np.intp)
    number[looks] = np.arange(looks.size)
    return looks, [number.take(half) for half in halves]


def _drawn(looks: NDArray[np.intp], pixels: int, colour_of: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A cell of each look: colours of shape (pixels, looks, pixels), from the upper row of all of them on."""
    code, marks = looks & CODE, looks >> MARK_SHIFT
    marks[code == HOLE] = _HOLLOW
    ink = np.zeros((pixels, looks.size, pixels), np.bool_)
    if pixels >= MARKS_FROM_PX:
        some = int(np.bitwise_or.reduce(marks))
        for mark in (mark for mark in _DRAWN if some & mark):
            ink |= _pattern(mark, pixels)[:, None] & (marks & mark > 0)[:, None]
    ink[-1], ink[:, :, -1] = True, True
    drawn: NDArray[np.uint32] = np.where(ink, colour_of[INK], colour_of[code][:, None])
    return drawn


def _draw_edges(cells: NDArray[np.uint32], edges: NDArray[np.uint8], pixels: int, colour: np.uint32) -> None:
    """Lines along the inner sides of selected cells. `cells`: (rows, pixels, columns, pixels)."""
    thick = 1 if pixels < 8 else 2 if pixels < 24 else 3
    for k in range(thick):
        for side, line in ((TOP, k), (BOTTOM, pixels - 1 - k)):
            np.copyto(cells[:, line], colour, where=_has(edges, side)[:, :, None])
        for side, line in ((LEFT, k), (RIGHT, pixels - 1 - k)):
            np.copyto(cells[:, :, :, line], colour, where=_has(edges, side)[:, None, :])


def _has(values: NDArray[np.uint8], bit: int) -> NDArray[np.bool_]:
    having: NDArray[np.bool_] = (values & np.uint8(bit)).astype(np.bool_)
    return having


@lru_cache(maxsize=128)
def _pattern(mark: int, pixels: int) -> NDArray[np.bool_]:
    """Ink of a mark in a cell, by row and column. The last ones of both are the gap."""
    y, x = np.indices((pixels, pixels))
    inner = pixels - 1
    step = min(max(3, inner // 3), 8)
    line, corner = max(1, step // 4), min(inner / 2, 10)
    middle, bar = (inner - 1) / 2, max(1, inner // 6)
    dot = max(0.5, inner / 6)
    rim = 1 if pixels < 12 else 2
    ink: NDArray[np.bool_]
    match mark:
        case raster.FRESH:
            ink = (abs(x - middle) <= dot) & (abs(y - middle) <= dot)
        case raster.HIDDEN:
            ink = (x + y) % step >= step - line
        case raster.SHIFTED:
            ink = (x % max(3, inner // 2) < bar) & (x > 0)
        case raster.SHARED:
            ink = x + y >= 2 * (inner - 1) - corner
        case raster.PARTIAL:
            ink = (x % step // line == 1) & (y % step // line == 1)
        case raster.SINK:
            ink = abs(x - y) < bar
        case _:
            ink = (rim <= x) & (x < inner - rim) & (rim <= y) & (y < inner - rim)
    return ink
