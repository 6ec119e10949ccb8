"""Codes of cells -> picture: every visible cell as a square of whole device pixels, with its marks. numpy only, no Qt.

The last row and column of every cell are the gap to the next. From 5 pixels on each mark has a pattern, and a hole is
hollow; below, a shared cell is still split into two colours, and the others differ by lightness alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.ui.map.raster import (
    EDGE,
    FREE,
    FRESH,
    HIDDEN,
    HOLE,
    INK,
    N_MARKS,
    PAD,
    PARTIAL,
    SHARED,
    SHIFTED,
    SINK,
    Layer,
)

MARKS_FROM_PX: Final = 5
_SPLIT_AT: Final = 0.55
TOP, BOTTOM, LEFT, RIGHT = (1 << bit for bit in range(4))


class Part(NamedTuple):
    """Rows and columns of cells that are drawn, end excluded."""

    row: int
    rows: int
    column: int
    columns: int


def picture(
    layer: Layer, columns: int, part: Part, pixels: int, edges: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Code of every pixel of the part: `pixels` by `pixels` for a cell, `columns` cells to a row of the map.

    pixels  of a cell with its gap, 3 at least
    edges  of each cell in rows, where the outline of the selection runs (`edges_of`)
    """
    code = _codes_of(layer.code, layer, columns, part)
    marks = _grid_of(layer.marks, columns, part, 0)
    second = _codes_of(layer.second, layer, columns, part) if layer.second is not None else None
    rows, width = code.shape
    out = code.repeat(pixels, axis=1).repeat(pixels, axis=0)
    cells = out.reshape(rows, pixels, width, pixels)
    if second is not None:
        upper = max(1, int((pixels - 1) * _SPLIT_AT))
        lower = second.repeat(pixels, axis=1).reshape(rows, 1, width, pixels)
        cells[:, upper:] = lower
        marks = marks & np.uint8(~SHARED & 255)
    if pixels >= MARKS_FROM_PX:
        _draw_marks(out, marks, pixels)
        rim = 1 if pixels < 12 else 2
        if (holes := code == HOLE).any():
            inner = cells[:, rim : pixels - 1 - rim, :, rim : pixels - 1 - rim]
            np.copyto(inner, np.uint8(INK), where=holes[:, None, :, None])
    out[pixels - 1 :: pixels] = INK
    out[:, pixels - 1 :: pixels] = INK
    if edges is not None:
        _draw_edges(cells, edges[part.row : part.rows, part.column : part.columns], pixels)
    return out


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


def _codes_of(codes: NDArray[np.uint8], layer: Layer, columns: int, part: Part) -> NDArray[np.uint8]:
    """Codes of the part as a grid: behind those of the layer come its free cells, then nothing."""
    grid = _grid_of(codes, columns, part, FREE)
    n_cells = codes.size + layer.n_free
    if part.rows * columns > n_cells:  # the last row is not full
        grid = grid.copy()
        grid[-1, max(n_cells - (part.rows - 1) * columns - part.column, 0) :] = PAD
    return grid


def _grid_of(values: NDArray[np.uint8], columns: int, part: Part, pad: int) -> NDArray[np.uint8]:
    """The part as a grid, what is missing at its end filled up."""
    flat = values[part.row * columns : part.rows * columns]
    n = (part.rows - part.row) * columns
    if flat.size < n:
        flat = np.concatenate((flat, np.full(n - flat.size, pad, np.uint8)))
    return flat.reshape(part.rows - part.row, columns)[:, part.column : part.columns]


def _draw_marks(out: NDArray[np.uint8], marks: NDArray[np.uint8], pixels: int) -> None:
    wanted = FRESH | HIDDEN | SHIFTED | SHARED | PARTIAL | SINK
    marks = marks & np.uint8(wanted)
    rows, columns = np.flatnonzero(marks.any(axis=1)), np.flatnonzero(marks.any(axis=0))
    if not rows.size:
        return
    r0, r1, c0, c1 = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    stamps = _stamps(pixels)[marks[r0:r1, c0:c1]]  # (rows, columns, pixels, pixels)
    ink = stamps.transpose(0, 2, 1, 3).reshape((r1 - r0) * pixels, (c1 - c0) * pixels)
    np.copyto(out[r0 * pixels : r1 * pixels, c0 * pixels : c1 * pixels], np.uint8(INK), where=ink)


def _draw_edges(cells: NDArray[np.uint8], edges: NDArray[np.uint8], pixels: int) -> None:
    """Lines along the inner sides of selected cells. `cells`: (rows, pixels, columns, pixels)."""
    thick = 1 if pixels < 8 else 2 if pixels < 24 else 3
    for k in range(thick):
        across = np.broadcast_to(np.uint8(EDGE), (edges.shape[0], edges.shape[1], pixels))
        for side, line in ((TOP, k), (BOTTOM, pixels - 1 - k)):
            np.copyto(cells[:, line], across, where=_has(edges, side)[:, :, None])
        down = np.broadcast_to(np.uint8(EDGE), (edges.shape[0], pixels, edges.shape[1]))
        for side, line in ((LEFT, k), (RIGHT, pixels - 1 - k)):
            np.copyto(cells[:, :, :, line], down, where=_has(edges, side)[:, None, :])


def _has(values: NDArray[np.uint8], bit: int) -> NDArray[np.bool_]:
    having: NDArray[np.bool_] = (values & np.uint8(bit)).astype(np.bool_)
    return having


@lru_cache(maxsize=8)
def _stamps(pixels: int) -> NDArray[np.bool_]:
    """Ink of each combination of marks: (128, pixels, pixels)."""
    x = np.arange(pixels)[None, :].repeat(pixels, axis=0)
    y = x.T
    inner = pixels - 1  # the last row and column are the grid
    step = min(max(3, inner // 3), 8)
    line, corner = max(1, step // 4), min(inner / 2, 10)
    middle, bar = (inner - 1) / 2, max(1, inner // 6)
    dot = max(0.5, inner / 6)
    patterns: dict[int, NDArray[np.bool_]] = {
        FRESH: (abs(x - middle) <= dot) & (abs(y - middle) <= dot),
        HIDDEN: (x + y) % step >= step - line,
        SHIFTED: (x % max(3, inner // 2) < bar) & (x > 0),
        SHARED: (x + y >= 2 * (inner - 1) - corner) & (x < inner) & (y < inner),
        PARTIAL: (x % step // line == 1) & (y % step // line == 1),
        SINK: (abs(x - y) < bar) & (x < inner) & (y < inner),
    }
    stamps = np.zeros((1 << N_MARKS, pixels, pixels), np.bool_)
    for marks in range(1 << N_MARKS):
        for mark, pattern in patterns.items():
            if marks & mark:
                stamps[marks] |= pattern
    return stamps
