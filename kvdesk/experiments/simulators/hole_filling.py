"""llama.cpp's former defragmentation, simulated: holes are filled with what lies at the end.

The rule of llama_kv_cache's `defrag_prepare`, from the first version (2024) to its removal (#15473, 2025): every run of
free cells among the first `used` ones takes as many used cells from the end of the cache, those that have not been
moved yet, in their order. Neighbours that stay neighbours are one move, and the nodes of a graph limit the number of
moves: (8192 - 2 layers) / (6 layers). It happened before a decode if the share of free cells below the high-water mark,
without padding, was over a threshold (0.1) and that mark was at 2,048 cells or more.
Issue #12253 is about its copying on the CPU; the copying is not simulated, only which cells go where.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.memories.cells import StreamCells
from kvdesk.values import replace

MAX_NODES = 8192
THRESHOLD = 0.1
LEAST_SPAN = 2048
"""High-water mark below which nothing was moved."""


class Move(NamedTuple):
    """`n` neighbouring cells from `source` on go to `target` and behind it."""

    source: int
    target: int
    n: int


def max_moves(n_layers: int) -> int:
    """The most moves of one time: three nodes of the graph for K and three for V, in each layer."""
    return (MAX_NODES - 2 * n_layers) // (6 * n_layers)


def over_threshold(cells: StreamCells, padding: int) -> bool:
    """Whether llama.cpp would have defragmented before the next decode. padding: 256 with flash attention, else 32."""
    top = cells.high_water
    return top >= LEAST_SPAN and 1 - (cells.used + padding) / top > THRESHOLD


def plan_moves(is_free: NDArray[np.bool_], most: int) -> list[Move]:
    """`is_free`: of the cells up to the high-water mark. No two moves overlap, and no source is a target."""
    n_used = int((~is_free).sum())
    holes = np.flatnonzero(is_free[:n_used])
    if not len(holes):
        return []
    sources = np.flatnonzero(~is_free[n_used:]) + n_used
    moves: list[Move] = []
    end = len(sources)
    for hole in np.split(holes, np.flatnonzero(np.diff(holes) != 1) + 1):
        taken = sources[end - len(hole) : end]
        end -= len(hole)
        breaks = [0, *(np.flatnonzero(np.diff(taken) != 1) + 1).tolist(), len(taken)]
        for a, b in pairwise(breaks):
            if len(moves) == most:
                return moves
            moves.append(Move(int(taken[a]), int(hole[a]), b - a))
    return moves


def move_cells(cells: StreamCells, moves: list[Move]) -> int:
    """Do it: how many cells were moved. The head is behind the used cells afterwards. Changes the cells."""
    if not moves:
        return 0
    source = np.concatenate([np.arange(move.source, move.source + move.n) for move in moves])
    target = np.concatenate([np.arange(move.target, move.target + move.n) for move in moves])
    saved = cells.save(source)
    cells.free(source)
    cells.restore_cells(replace(saved, index=target))
    cells.head = cells.used
    return len(source)
