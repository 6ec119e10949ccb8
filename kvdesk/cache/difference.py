"""What differs between two states of the map, cell by cell.

Pure functions on frozen views. Must never know which operation lies between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.snapshot import CacheMap, StreamMap


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The content of some cells: the columns of `StreamMap`, one entry per cell; pos -1 is an empty cell."""

    pos: NDArray[np.int32]
    seq_bits: NDArray[np.uint64]  # shape (cells, words)
    token: NDArray[np.int32]
    born: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StreamDifference:
    """The cells of one stream that changed: their indices, ascending, and their content on both sides."""

    cache: str
    stream: int
    index: NDArray[np.int64]
    before: Cells
    after: Cells
    head_before: int
    head_after: int

    @property
    def n_placed(self) -> int:
        """Cells that were empty and are not."""
        return int(((self.before.pos == -1) & (self.after.pos != -1)).sum())

    @property
    def n_freed(self) -> int:
        """Cells that are empty and were not."""
        return int(((self.before.pos != -1) & (self.after.pos == -1)).sum())


def map_difference(before: Sequence[CacheMap], after: Sequence[CacheMap]) -> tuple[StreamDifference, ...]:
    """Streams with a cell or a head that changed. Both sides must be of one context. Read-only."""
    found = []
    for old_map, new_map in zip(before, after, strict=True):
        for s, (old, new) in enumerate(zip(old_map.streams, new_map.streams, strict=True)):
            index = changed_cells(old, new)
            if len(index) or old.head != new.head:
                sides = cells_at(old, index), cells_at(new, index)
                found.append(StreamDifference(old_map.name, s, index, *sides, old.head, new.head))
    return tuple(found)


def changed_cells(old: StreamMap, new: StreamMap) -> NDArray[np.int64]:
    """Indices of the cells of which anything differs, ascending."""
    changed = (old.pos != new.pos) | (old.token != new.token) | (old.born != new.born)
    return np.flatnonzero(changed | (old.seq_bits != new.seq_bits).any(axis=1))


def cells_at(stream: StreamMap, index: NDArray[np.int64]) -> Cells:
    """The content of these cells, a copy."""
    return Cells(stream.pos[index], stream.seq_bits[index], stream.token[index], stream.born[index])
