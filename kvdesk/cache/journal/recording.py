"""A recording of operations, packed into segments while it grows. Any earlier map can be rebuilt from it.

Owns segments, keyframes and the limit on bytes. A segment is a keyframe (all used cells before its first operation) and
up to 8 chunks; only whole segments are dropped. Must never know the mirror or files: operations come as patches.
`Recorder` belongs to one thread; a `Recording` is frozen and may go to any.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kvdesk.cache.difference import StreamDifference, map_difference
from kvdesk.cache.flat import Flat, Shape
from kvdesk.cache.journal import packing
from kvdesk.cache.memories.cells import Patch
from kvdesk.cache.snapshot import CacheMap
from kvdesk.errors import UserError
from kvdesk.translation import tr
from kvdesk.values import dataclass

MAX_BYTES = 64_000_000  # everything that a recorder keeps, including the current cells
_CHUNK_OPERATIONS = 1024
_CHUNK_CELLS = 16_384
_SEGMENT_CHUNKS = 8
_OPEN_BYTES = 1300, 32  # of an operation that is not packed yet, and of each of its cells; measured


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Operations after number `start`. `keyframe`: the cells at that moment, as one chunk of one operation."""

    start: int
    keyframe: packing.Chunk
    chunks: tuple[packing.Chunk, ...]

    @property
    def n(self) -> int:
        return sum(chunk.n for chunk in self.chunks)

    @property
    def n_bytes(self) -> int:
        return self.keyframe.n_bytes + sum(chunk.n_bytes for chunk in self.chunks)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """All that is remembered at one moment. `open`: operations after the last segment's chunks, not packed yet."""

    shape: Shape
    segments: tuple[Segment, ...]
    open: tuple[packing.Group, ...] = ()

    def __len__(self) -> int:
        """Operations that are remembered."""
        return sum(segment.n for segment in self.segments) + sum(len(operations) for operations, _ in self.open)

    @property
    def start(self) -> int:
        """The earliest moment with a map: after operation `start`, which itself is not remembered."""
        return self.segments[0].start

    @property
    def first(self) -> int:
        """Number of the first remembered operation; 0 without any."""
        chunks = self._chunks()
        return chunks[0].first if chunks else self.open[0][0][0].number if self.open else 0

    @property
    def last(self) -> int:
        """Number of the last remembered operation; 0 without any."""
        if self.open:
            return self.open[-1][0][-1].number
        chunks = self._chunks()
        return chunks[-1].last if chunks else 0

    def operations(self, first: int, last: int) -> list[packing.Entry]:
        """The remembered operations numbered `first` to `last`, both included, ascending. Read-only."""
        entries: list[packing.Entry] = []
        for chunk in self._chunks():
            if chunk.first <= last and chunk.last >= first:
                entries += packing.unpack_operations(chunk)
        for operations, patches in self.open:
            counts = (patches.starts[1:] - patches.starts[:-1]).tolist()
            entries += [packing.Entry(operation, n) for operation, n in zip(operations, counts, strict=True)]
        return [entry for entry in entries if first <= entry.operation.number <= last]

    def state_at(self, number: int) -> tuple[CacheMap, ...]:
        """The map after operation `number`, equal to `Mirror.snapshot(...).maps` at that time. Read-only.

        For a number that was never recorded it is the map after the previous one. Raises UserError for moments that are
        not remembered (before `start` or after `last`).
        """
        return self._flat_at(number).maps()

    def difference(self, number: int) -> tuple[StreamDifference, ...]:
        """The cells changed by operation `number`, before and after. Read-only. Raises UserError as `state_at` does."""
        return map_difference(self.state_at(number - 1), self.state_at(number))

    def patches(self, after: int = -1) -> Iterator[tuple[packing.Operation, Patch]]:
        """Every remembered operation numbered above `after` with what it changed, ascending. Read-only."""
        for chunk in self._chunks():
            if chunk.last > after:
                patches = packing.unpack_cells(chunk, self.shape.words)
                for i, entry in enumerate(packing.unpack_operations(chunk)):
                    if entry.operation.number > after:
                        yield entry.operation, patches.of(i)
        for fresh, patches in self.open:
            if fresh[-1].number > after:
                yield from ((one, patches.of(i)) for i, one in enumerate(fresh) if one.number > after)

    def base(self) -> Patch:
        """All used cells at `start`. Read-only."""
        return packing.unpack_cells(self.segments[0].keyframe, self.shape.words).all

    def _chunks(self) -> list[packing.Chunk]:
        return [chunk for segment in self.segments for chunk in segment.chunks]

    def _flat_at(self, number: int) -> Flat:
        if not self.start <= number <= max(self.last, self.start):
            raise UserError(
                tr(
                    "The journal shows states from operation {start:,} to {last:,}. Older ones were dropped to stay "
                    "within its memory."
                ).format(start=self.start, last=max(self.last, self.start))
            )
        flat = Flat(self.shape)
        segment = self.segments[bisect_right([s.start for s in self.segments], number) - 1]
        flat.apply(packing.unpack_cells(segment.keyframe, self.shape.words).all)
        for chunk in segment.chunks:
            if chunk.first <= number:
                patches = packing.unpack_cells(chunk, self.shape.words)
                flat.apply(patches.before(number))
        if segment is self.segments[-1]:
            for operations, patches in self.open:
                if operations[0].number <= number:
                    flat.apply(patches.before(number))
        return flat


class Recorder:
    """A recording that grows. `start`: number of the operation after which it begins; `cells`: the map at that moment.

    `flat` is the map after the last operation.
    """

    def __init__(self, shape: Shape, start: int = 0, cells: Patch | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.shape = shape
        self.flat = Flat(shape)
        if cells is not None:
            self.flat.apply(cells)
        self.last = start
        per_operation, per_cell = _OPEN_BYTES
        room = min(_CHUNK_OPERATIONS * per_operation + _CHUNK_CELLS * per_cell, max_bytes // 4)
        self._max_packed_bytes = max_bytes - room  # the rest is for what is not packed yet
        self._closed: list[Segment] = []
        self._closed_bytes = 0
        self._open: list[packing.Group] = []
        self._open_operations = self._open_cells = 0
        self._begin_segment()

    @property
    def n_bytes(self) -> int:
        """Memory in use, in bytes, estimated for what is not packed yet."""
        per_operation, per_cell = _OPEN_BYTES
        unpacked = self._open_operations * per_operation + self._open_cells * per_cell
        return self.flat.n_bytes + self._closed_bytes + self._current_bytes + unpacked

    def append(self, operation: packing.Operation, patch: Patch) -> None:
        """Remember an operation with the cells as it left them. Its number must be above the last one."""
        self.extend((operation,), packing.alone(operation.number, patch))

    def extend(self, operations: Sequence[packing.Operation], patches: packing.Patches) -> None:
        """Remember several operations, ascending, with what each of them changed."""
        assert operations[0].number > self.last, "operations are recorded in order"
        self.flat.apply(patches.all)
        self.last = operations[-1].number
        self._open.append((operations, patches))
        self._open_operations += len(operations)
        self._open_cells += patches.all.n_cells
        if self._open_operations >= _CHUNK_OPERATIONS or self._open_cells >= _CHUNK_CELLS:
            self._pack()

    def recording(self) -> Recording:
        """All that is remembered now, frozen; packed parts are shared, not copied."""
        current = Segment(self._start, self._keyframe, tuple(self._chunks))
        return Recording(self.shape, (*self._closed, current), tuple(self._open))

    def _pack(self) -> None:
        chunk = packing.pack(self._open, self.shape.words)
        self._chunks.append(chunk)
        self._current_bytes += chunk.n_bytes
        self._open.clear()
        self._open_operations = self._open_cells = 0
        large = self._current_bytes > self._max_packed_bytes // 8 and len(self._chunks) > 1
        if large or len(self._chunks) >= _SEGMENT_CHUNKS:
            segment = Segment(self._start, self._keyframe, tuple(self._chunks))
            self._closed.append(segment)
            self._closed_bytes += segment.n_bytes
            self._begin_segment()
        while self._closed and self.n_bytes > self._max_packed_bytes:
            self._closed_bytes -= self._closed.pop(0).n_bytes

    def _begin_segment(self) -> None:
        self._start = self.last
        keyframe = packing.alone(self.last, self.flat.used())
        self._keyframe = packing.pack([((packing.Operation(self.last, 0.0, "keyframe"),), keyframe)], self.shape.words)
        self._chunks: list[packing.Chunk] = []
        self._current_bytes = self._keyframe.n_bytes
