"""The journal of a context: every operation on its cache, with what it changed.

Owns how the change of an operation is found: from the cells that a decode used according to the mirror, else by
comparing every cell with the journal's own copy (0.2 ms for 131,072 cells). Lives beside the mirror, on its thread, and
only reads it. Must never know the engine, clocks or files (`kvdesk.cache.journal.file`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.flat import CacheShape, Shape
from kvdesk.cache.journal.packing import Operation, Patches, alone
from kvdesk.cache.journal.recording import MAX_BYTES, Recorder, Recording
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord
from kvdesk.values import replace

__all__ = ["Journal", "Operation", "mirror_shape"]


class Journal:
    """Remembers the operations on one mirror from now on, oldest dropped beyond `max_bytes`.

    Call `record` after every operation that the mirror has followed; the change of a missing one counts for the next.
    For another thread, pass on `recording()`.
    """

    def __init__(self, mirror: Mirror, max_bytes: int = MAX_BYTES) -> None:
        self._mirror = mirror
        shape = mirror_shape(mirror)
        self._streams_of = {place: stream for stream, place in enumerate(shape.places)}
        windowed = {cache.name for cache in mirror.caches if cache.n_swa}
        self._windowed = [stream for (name, _), stream in self._streams_of.items() if name in windowed]
        empty = Recorder(shape)
        cells = empty.flat.difference(self._streams())
        self._recorder = Recorder(shape, mirror.operation, cells, max_bytes)

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        return self._recorder.n_bytes

    def record(self, operations: Sequence[Operation], decode: DecodeRecord | None = None) -> None:
        """Remember an operation that the mirror has just followed, or the decodes in `decode`.

        `operations`: one, or one for each decode. Their numbers must be the mirror's; their texts are for display.
        """
        recorder = self._recorder
        streams = self._streams()
        patches = None
        if decode is not None and operations[0].number == recorder.last + 1:
            patches = self._placed(decode, streams)
        if patches is None:  # unknown from the placements, or an operation is missing: compare every cell
            recorder.append(operations[-1], recorder.flat.difference(streams))
        else:
            recorder.extend(operations, patches)

    def recording(self) -> Recording:
        """Everything remembered so far, frozen, for other threads and for saving."""
        return self._recorder.recording()

    def _streams(self) -> list[StreamCells]:
        """Looked up each time, because the mirror may replace its caches."""
        return [cells for cache in self._mirror.caches for cells in cache.streams]

    def _placed(self, decode: DecodeRecord, streams: list[StreamCells]) -> Patches | None:
        """The changes of each decode, from its placements; None if these are incomplete because not everything was
        placed.

        If window cells were replaced, the streams of the window (a small cache) are compared instead: another ubatch
        may fill what one purges, a purge also takes a sequence out of shared cells, and a failed attempt may have
        purged before.
        """
        if decode.rc != 0 or decode.mismatch:
            return None
        if len(decode.ubatches) == 1:
            placements = decode.ubatches[0].placements
        else:
            placements = tuple(p for ubatch in decode.ubatches for p in ubatch.placements)
        touched = [(self._streams_of[p.cache, p.stream], p.cells) for p in placements]
        if decode.n_decodes > 1:
            return self._placed_run(decode, streams, touched)
        heads = tuple({s: int(cells[-1]) + 1 for s, cells in touched}.items())  # llama-kv-cache.cpp:1183
        flat = self._recorder.flat
        if self._windowed and (decode.n_ubatches > 1 or any(len(p.overwritten) or len(p.purged) for p in placements)):
            touched = [(s, cells) for s, cells in touched if s not in self._windowed]
            touched += [(s, flat.changed(streams, s)) for s in self._windowed]
        return alone(decode.operation, flat.taken(streams, touched, heads))

    def _placed_run(
        self, decode: DecodeRecord, streams: list[StreamCells], touched: Sequence[tuple[int, NDArray[np.int64]]]
    ) -> Patches:
        """`_placed` of several decodes, each of which put one token into one cell of every stream `touched`."""
        n, width = decode.n_decodes, len(touched)
        whole = self._recorder.flat.taken(streams, touched, ())
        if width > 1:  # change the order from by stream to by decode
            by = np.arange(n * width).reshape(width, n).T.ravel()
            whole = whole.part(by)
        heads = tuple((stream, int(cells[i]) + 1) for i in range(n) for stream, cells in touched)
        starts = np.arange(n + 1) * width
        return Patches(np.arange(n) + decode.operation, starts, replace(whole, heads=heads), starts)


def mirror_shape(mirror: Mirror) -> Shape:
    """The caches of a mirror."""
    caches = tuple(
        CacheShape(cache.name, len(cache.streams), cache.size, cache.n_swa, cache.swa_type) for cache in mirror.caches
    )
    return Shape(caches, -(-mirror.geometry.n_seq_max // 64))
