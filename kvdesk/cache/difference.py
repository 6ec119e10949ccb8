"""The differences between two states of the map, cell by cell.

Pure functions on frozen views. Must never know which operation lies between the two.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.snapshot import CacheMap, Columns, StreamMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StreamDifference:
    """The cells of one stream that changed: their indices, ascending, and their content on both sides."""

    cache: str
    stream: int
    index: NDArray[np.int64]
    before: Columns
    after: Columns
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
    n = max(old.high_water, new.high_water)
    was, now = old.columns(n), new.columns(n)
    changed = (was.pos != now.pos) | (was.token != now.token) | (was.written_at_op != now.written_at_op)
    return np.flatnonzero(changed | (was.seq_bits != now.seq_bits).any(axis=1))


def cells_at(stream: StreamMap, index: NDArray[np.int64]) -> Columns:
    """The content of these cells, a copy."""
    c = stream.columns(max(stream.high_water, int(index.max(initial=-1)) + 1))
    return Columns(c.pos[index], c.seq_bits[index], c.token[index], c.written_at_op[index])
