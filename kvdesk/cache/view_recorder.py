"""A recording made of views of a cache whose operations are not known: what changed between two of them is one change.

Belongs to one thread; its recordings may go to any. Must never know where views come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kvdesk.cache.difference import map_difference
from kvdesk.cache.flat import CacheShape, Flat, Patch, Shape, join_patches
from kvdesk.cache.packing import Operation
from kvdesk.cache.recording import Recorder, Recording
from kvdesk.cache.snapshot import CacheMap


class ViewRecorder:
    """Begins again where the shape of the cache changes or the numbers go back."""

    def __init__(self) -> None:
        self._maps: tuple[CacheMap, ...] = ()
        self._shape: Shape | None = None
        self._recorder: Recorder | None = None

    def take(self, number: int, maps: tuple[CacheMap, ...], operation: Callable[[int, int], Operation]) -> None:
        """Record a view. `operation`: what happened after one number up to another, where it is a new one."""
        shape = shape_of(maps)
        if self._recorder is None or shape != self._shape or number < self._recorder.last:
            self._recorder, self._shape = Recorder(shape, number, patch(Flat(shape).maps(), maps, shape)), shape
        elif number > self._recorder.last:
            self._recorder.append(operation(self._recorder.last, number), patch(self._maps, maps, shape))
        self._maps = maps

    def recording(self) -> Recording | None:
        """What was seen so far; None before the first view."""
        return None if self._recorder is None else self._recorder.recording()


def shape_of(maps: Sequence[CacheMap]) -> Shape:
    """The caches of a view."""
    caches = tuple(CacheShape(m.name, len(m.streams), m.streams[0].size, m.n_swa, m.swa_type) for m in maps)
    words = next((stream.seq_bits.shape[1] for cache in maps for stream in cache.streams), 1)
    return Shape(caches, words)


def patch(before: Sequence[CacheMap], after: Sequence[CacheMap], shape: Shape) -> Patch:
    """The cells and heads that changed between two views of this shape."""
    numbers = {place: number for number, place in enumerate(shape.places)}
    parts, heads = [], []
    for change in map_difference(before, after):
        number = numbers[change.cache, change.stream]  # type: ignore[index]  # the name of one of these caches
        cells = change.after
        index = change.index.astype(np.int64) + shape.offsets[number]
        parts.append(Patch(index, cells.pos, cells.seq_bits, cells.token, cells.written_at_op))
        if change.head_before != change.head_after:
            heads.append((number, change.head_after))
    return join_patches(parts, shape.words, tuple(heads))
