"""A state blob whose cells return to their former indices, although llama.cpp puts the cells of a state to the front.

Fillers take the place of holes, at positions that no sequence has, and must be removed after restoring the blob. Owns
the fillers and the moving of bytes. Must never know the engine.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.memories.cells import Index
from kvdesk.cache.seq_bits import seq_bit
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.cache.state.blob import Blob, BlobError, Section, StateBlob, StreamBlob, parse_state, row_words
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A blob for llama_state_set_data, and the maps that result. `fillers`: (sequence, first position) of those to be
    removed.
    """

    blob: Blob
    maps: tuple[CacheMap, ...]
    fillers: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Filler:
    """The cells that fill the holes of one stream: of one sequence, at `first` and the positions after it."""

    holes: Index
    seq_id: int
    first: int


def spread_size(blob: Blob, maps: Sequence[CacheMap], geometry: Geometry) -> int:
    """Bytes of the blob with fillers in all holes of the maps."""
    return _size(blob, maps, parse_state(blob, geometry), geometry)


def spread_blob(
    blob: Blob, maps: Sequence[CacheMap], geometry: Geometry, *, make_room: Callable[[int], Blob] = bytearray
) -> Spread:
    """The state of `blob` with every cell where it is in `maps`, which belong to the moment when the blob was taken.

    Written to memory from `make_room`, which gets its size. Raises BlobError if the two do not belong together.
    """
    state = parse_state(blob, geometry)
    if [len(streams) for streams in state.caches] != [len(cache.streams) for cache in maps]:
        raise BlobError(tr("The saved state is not of the cache that was planned."))
    first = 1 + max((int(stream.pos.max(initial=-1)) for cache in maps for stream in cache.streams), default=-1)
    room = make_room(_size(blob, maps, state, geometry))
    writer = _Writer(np.frombuffer(blob, dtype=np.uint8), np.frombuffer(room, dtype=np.uint8))
    filled: list[CacheMap] = []
    fillers: set[int] = set()
    for cache, streams in zip(maps, state.caches, strict=True):
        made = []
        for s, (cells, stored) in enumerate(zip(cache.streams, streams, strict=True)):
            _check(cells, stored)
            filler = _Filler(np.flatnonzero(cells.pos == -1), s if geometry.n_stream > 1 else 0, first)
            if len(filler.holes):
                fillers.add(filler.seq_id)
                writer.copy_to(stored.table.start - 4)  # its number of cells
                _write_stream(writer, stored, cells, filler, geometry)
            made.append(_filled(cells, filler) if len(filler.holes) else cells)
        filled.append(replace(cache, streams=tuple(made)))
    writer.copy_to(len(blob))
    return Spread(room, tuple(filled), tuple((seq_id, first) for seq_id in sorted(fillers)))


class _Writer:
    """Copies `source` to `target`, except for replaced parts."""

    def __init__(self, source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
        self.source, self._target = source, target
        self._written = 0
        self.at = 0  # in the source

    def copy_to(self, end: int) -> None:
        """Copy the source from its current position up to `end`."""
        self.room(end - self.at)[:] = self.source[self.at : end]
        self.at = end

    def skip_to(self, end: int) -> None:
        """Skip the source up to `end`, because something else is written instead."""
        self.at = end

    def room(self, n_bytes: int) -> NDArray[np.uint8]:
        """The next bytes of the target, to be written."""
        self._written += n_bytes
        return self._target[self._written - n_bytes : self._written]


def _write_stream(writer: _Writer, stored: StreamBlob, cells: StreamMap, filler: _Filler, geometry: Geometry) -> None:
    """One stream; the writer is at its number of cells."""
    used, n = np.flatnonzero(cells.pos != -1), len(cells.pos)
    writer.room(4)[:] = np.frombuffer(np.uint32(n).tobytes(), dtype=np.uint8)
    table = writer.source[stored.table].view("<i4")
    _write_table(writer, table, stored.row_words(geometry), used, filler, geometry)
    writer.skip_to(stored.table.stop)
    for section in stored.sections:
        writer.copy_to(section.offset)
        _write_section(writer, section, used, n)
        writer.skip_to(section.offset + section.n_bytes)


def _write_table(
    writer: _Writer,
    table: NDArray[np.int32],
    words: NDArray[np.int64],
    used: Index,
    filler: _Filler,
    geometry: Geometry,
) -> None:
    """Rows of different lengths: position, number of sequences, 2D position, sequences."""
    width = row_words(geometry.facts.cell_ext) + 1
    all_words = np.full(len(used) + len(filler.holes), width, dtype=np.int64)
    all_words[used] = words
    start = np.cumsum(all_words) - all_words
    target = np.zeros(int(all_words.sum()), dtype="<i4")
    from_start = np.cumsum(words) - words
    target[np.repeat(start[used] - from_start, words) + np.arange(len(table))] = table
    target[start[filler.holes]] = filler.first + np.arange(len(filler.holes))
    target[start[filler.holes] + 1] = 1
    target[start[filler.holes] + width - 1] = filler.seq_id
    writer.room(4 * len(target))[:] = target.view(np.uint8)


def _write_section(writer: _Writer, section: Section, used: Index, n: int) -> None:
    """K or V, with zeros in fillers."""
    if not section.row_bytes:
        return
    source = writer.source[section.offset : section.offset + section.n_bytes]
    target = writer.room(n * section.row_bytes)
    target[:] = 0
    section.items(target, n)[:, used] = section.items(source, len(used))


def _filled(cells: StreamMap, filler: _Filler) -> StreamMap:
    """The map with its fillers."""
    pos, bits = cells.pos.copy(), cells.seq_bits.copy()
    pos[filler.holes] = filler.first + np.arange(len(filler.holes))
    word, bit = seq_bit(filler.seq_id)
    bits[filler.holes, word] = bit
    return replace(cells, pos=pos, seq_bits=bits, used=len(pos))


def _size(blob: Blob, maps: Sequence[CacheMap], state: StateBlob, geometry: Geometry) -> int:
    more = 0
    for cache, streams in zip(maps, state.caches, strict=True):
        for cells, stored in zip(cache.streams, streams, strict=True):
            row = 4 * (row_words(geometry.facts.cell_ext) + 1) + sum(section.row_bytes for section in stored.sections)
            more += (len(cells.pos) - stored.n_cells) * row
    return len(blob) + more


def _check(cells: StreamMap, stored: StreamBlob) -> None:
    if not np.array_equal(cells.pos[cells.pos != -1], stored.pos):
        raise BlobError(tr("The saved state is not of the cells that were planned."))
