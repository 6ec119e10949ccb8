"""A recording made from views of a cache with unknown operations: the difference between two views is one change.

Belongs to one thread; its recordings may go to any. Must never know where views come from.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from kvdesk.cache.difference import map_difference
from kvdesk.cache.flat import CacheShape, Flat, Shape, join_patches
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.journal.recording import Recorder, Recording
from kvdesk.cache.memories.cells import Patch
from kvdesk.cache.snapshot import CacheMap
from kvdesk.values import replace


class ViewRecorder:
    """Begins again if the cache is another one or the numbers of operations decrease. Continues if the cache shows more
    streams than before, or a window cache for the first time.
    """

    def __init__(self) -> None:
        self._maps: tuple[CacheMap, ...] = ()
        self._shape: Shape | None = None
        self._recorder: Recorder | None = None

    def take(self, number: int, maps: tuple[CacheMap, ...], operation: Callable[[int, int], Operation]) -> None:
        """Record a view. `operation`: describes what happened between two numbers, if the view is new."""
        shape = shape_of(maps)
        if self._recorder is not None and shape != self._shape and number > self._recorder.last:
            self._grow(self._recorder.recording(), shape)
        if self._recorder is None or shape != self._shape or number < self._recorder.last:
            self._recorder, self._shape = Recorder(shape, number, patch(Flat(shape).maps(), maps, shape)), shape
        elif number > self._recorder.last:
            self._recorder.append(operation(self._recorder.last, number), patch(self._maps, maps, shape))
        self._maps = maps

    def note(self, operation: Operation) -> None:
        """Record something that changed no cell, also before the first view."""
        if self._recorder is None:
            self._shape = Shape(())
            self._recorder = Recorder(self._shape, operation.number - 1)
        self._recorder.append(operation, join_patches([], self._recorder.shape.words, ()))

    def _grow(self, recording: Recording, shape: Shape) -> None:
        """Continue the recording in a shape that has all of its streams; without them, nothing happens."""
        before = recording.shape
        is_same = all(
            (old.size, old.n_swa) == (new.size, new.n_swa) and old.n_streams <= new.n_streams
            for old, new in zip(before.caches, shape.caches, strict=False)
        )
        if not is_same or len(before.caches) > len(shape.caches) or (before.caches and before.words != shape.words):
            return
        starts = np.cumsum([0] + [cache.n_streams for cache in shape.caches])
        streams = [int(starts[i]) + s for i, cache in enumerate(before.caches) for s in range(cache.n_streams)]
        move = partial(_moved, before=before, shape=shape, streams=streams)
        self._recorder = Recorder(shape, recording.start, move(recording.base()))
        for operation, change in recording.patches():
            self._recorder.append(operation, move(change))
        self._shape, self._maps = shape, self._recorder.flat.maps()

    def recording(self) -> Recording | None:
        """What was recorded so far; None before the first view."""
        return None if self._recorder is None else self._recorder.recording()


def _moved(change: Patch, before: Shape, shape: Shape, streams: Sequence[int]) -> Patch:
    """The change in another shape. streams: the number there of each stream that was before."""
    heads = tuple((streams[stream], head) for stream, head in change.heads)
    if not change.n_cells:
        return join_patches([], shape.words, heads)
    offsets = np.array(before.offsets)
    stream = np.searchsorted(offsets, change.index, "right") - 1
    there = np.array(shape.offsets)[np.array(streams)[stream]]
    return replace(change, index=change.index - offsets[stream] + there, heads=heads)


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
