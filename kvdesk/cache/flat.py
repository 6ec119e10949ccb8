"""Every cell of every cache and stream as one row of flat arrays, and patches that change some of them.

Owns the numbering the journal uses: the streams one after another, base before window. Must never know operations,
files, or how the mirror works: cells come in as `StreamCells` or patches and go out as `CacheMap` values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import SwaType
from kvdesk.cache.memories.cells import Patch, StreamCells
from kvdesk.cache.snapshot import CacheMap, CacheName, StreamMap
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class CacheShape:
    """One attention cache: its streams have `size` cells each; `n_swa` and `swa_type` as in `CacheMap`."""

    name: CacheName
    n_streams: int
    size: int
    n_swa: int = 0
    swa_type: SwaType = "standard"


@dataclass(frozen=True, slots=True)
class Shape:
    """All attention caches of a context. `words`: 64-bit words of sequence bits per cell, ceil(n_seq_max / 64)."""

    caches: tuple[CacheShape, ...]
    words: int = 1

    @property
    def n_cells(self) -> int:
        return sum(cache.n_streams * cache.size for cache in self.caches)

    @property
    def offsets(self) -> tuple[int, ...]:
        """First flat cell of every stream, and the number of cells at the end."""
        offsets = [0]
        for cache in self.caches:
            for _ in range(cache.n_streams):
                offsets.append(offsets[-1] + cache.size)
        return tuple(offsets)

    @property
    def places(self) -> tuple[tuple[CacheName, int], ...]:
        """(cache, stream of that cache) of every stream."""
        return tuple((cache.name, s) for cache in self.caches for s in range(cache.n_streams))


class Flat:
    """The state of all cells at one moment; changed in place by `apply`."""

    def __init__(self, shape: Shape) -> None:
        n = shape.n_cells
        self.shape = shape
        self.offsets = shape.offsets
        self.pos = np.full(n, -1, dtype=np.int32)
        self.bits = np.zeros((n, shape.words), dtype=np.uint64)
        self.token = np.full(n, -1, dtype=np.int32)
        self.written_at_op = np.zeros(n, dtype=np.int64)
        self.heads = [0] * (len(self.offsets) - 1)

    @property
    def n_bytes(self) -> int:
        return self.pos.nbytes + self.bits.nbytes + self.token.nbytes + self.written_at_op.nbytes

    def apply(self, patch: Patch) -> None:
        """Write the cells of a patch. Changes this value."""
        index = patch.index
        self.pos[index] = patch.pos
        self.bits[index] = patch.bits
        self.token[index] = patch.token
        self.written_at_op[index] = patch.written_at_op
        for stream, head in patch.heads:
            self.heads[stream] = head

    def used(self) -> Patch:
        """All cells that are not empty: with it an empty `Flat` becomes this one. Read-only."""
        filled = (self.pos != -1) | self.bits.any(axis=1) if len(self.pos) else self.pos != -1
        index = np.flatnonzero(filled)
        heads = tuple((stream, head) for stream, head in enumerate(self.heads) if head)
        return Patch(index, self.pos[index], self.bits[index], self.token[index], self.written_at_op[index], heads)

    def in_use(self, start: int, end: int) -> bool:
        """Whether none of the flat cells [start, end) is as an empty one. Read-only."""
        used = (self.pos[start:end] != -1) | (self.written_at_op[start:end] != 0)
        return bool((used | self.bits[start:end].any(axis=1) | (self.token[start:end] != -1)).all())

    def difference(self, streams: Sequence[StreamCells]) -> Patch:
        """The change from this value to those streams: all cells are compared, 0.2 ms for 131,072. Read-only."""
        heads = tuple((s, cells.head) for s, cells in enumerate(streams) if cells.head != self.heads[s])
        return self.taken(streams, [(s, self.changed(streams, s)) for s in range(len(streams))], heads)

    def changed(self, streams: Sequence[StreamCells], stream: int) -> NDArray[np.int64]:
        """The cells of one stream that differ from this value. Read-only."""
        cells, part = streams[stream], slice(self.offsets[stream], self.offsets[stream + 1])
        changed = cells.pos != self.pos[part]
        changed |= cells.token != self.token[part]
        changed |= cells.written_at_op != self.written_at_op[part]
        for w in range(self.shape.words):
            changed |= cells.bits[:, w] != self.bits[part, w]
        return np.flatnonzero(changed)

    def taken(
        self,
        streams: Sequence[StreamCells],
        touched: Sequence[tuple[int, NDArray[np.int64]]],
        heads: tuple[tuple[int, int], ...],
    ) -> Patch:
        """A patch with the content that cells of `streams` have now. `touched`: (stream, its cells). Read-only."""
        parts = []
        for stream, index in touched:
            saved = streams[stream].save(index)
            parts.append(replace(saved, index=index + self.offsets[stream] if stream else index, heads=heads))
        if len(parts) == 1:
            return parts[0]
        return join_patches(parts, self.shape.words, heads)

    def maps(self) -> tuple[CacheMap, ...]:
        """Frozen copies, as `Mirror.snapshot` makes them. Read-only."""
        maps = []
        stream = 0
        for cache in self.shape.caches:
            n = cache.n_streams
            streams = tuple(self._stream(s) for s in range(stream, stream + n))
            maps.append(CacheMap(cache.name, streams, cache.n_swa, cache.swa_type))
            stream += n
        return tuple(maps)

    def copy(self) -> Flat:
        """An independent copy. Read-only."""
        other = Flat(Shape((), self.shape.words))
        other.shape, other.offsets, other.heads = self.shape, self.offsets, list(self.heads)
        other.pos, other.bits = self.pos.copy(), self.bits.copy()
        other.token, other.written_at_op = self.token.copy(), self.written_at_op.copy()
        return other

    def _stream(self, stream: int) -> StreamMap:
        first, end = self.offsets[stream], self.offsets[stream + 1]
        filled = np.flatnonzero(self.pos[first:end] != -1)
        high_water = int(filled[-1]) + 1 if len(filled) else 0
        part = slice(first, first + high_water)
        columns = (
            self.pos[part].copy(),
            self.bits[part].copy(),
            self.token[part].copy(),
            self.written_at_op[part].copy(),
        )
        return StreamMap.frozen(*columns, end - first, self.heads[stream], len(filled))


def join_patches(parts: Sequence[Patch], words: int, heads: tuple[tuple[int, int], ...] | None = None) -> Patch:
    """One patch of several, in order; `heads` in place of theirs. A cell in two of them keeps both entries.

    Applied, the later entry wins, as numpy's assignment to an index array does.
    """
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        bits = np.empty((0, words), dtype=np.uint64)
        return Patch(empty, empty.astype(np.int32), bits, empty.astype(np.int32), empty, heads or ())
    return Patch(
        np.concatenate([p.index for p in parts]),
        np.concatenate([p.pos for p in parts]),
        np.concatenate([p.bits for p in parts]),
        np.concatenate([p.token for p in parts]),
        np.concatenate([p.written_at_op for p in parts]),
        tuple(h for p in parts for h in p.heads) if heads is None else heads,
    )


def split_patch(patch: Patch, offsets: Sequence[int]) -> list[tuple[int, NDArray[np.int64]]]:
    """(stream, entries of the patch in it) for every stream with a changed cell, in order."""
    stream_of = np.searchsorted(np.asarray(offsets), patch.index, side="right") - 1
    found = []
    for stream, _ in enumerate(pairwise(offsets)):
        entries = np.flatnonzero(stream_of == stream)
        if len(entries):
            found.append((stream, entries))
    return found
