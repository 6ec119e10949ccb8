"""Taking the cells of a stream from the engine's dump, when our own rules have proved wrong.

Owns joining the two halves: a dump has cell indices, a state blob has every sequence id. Must never know how either was
obtained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.blob import StreamBlob
from kvdesk.cache.cells import StreamCells
from kvdesk.cache.dump import DumpError, SlotDump, read_positions, read_sequences


@dataclass(frozen=True, slots=True, eq=False)
class StoredStream:
    """Used cells of one stream with their indices, and its head."""

    index: NDArray[np.int64]
    pos: NDArray[np.int32]
    seq_ids: tuple[tuple[int, ...], ...]
    head: int


def read_stream(dump: SlotDump, blob: StreamBlob | None) -> StoredStream:
    """Join a level 3 dump with the same stream of a state blob. Raises DumpError if they do not fit. Read-only."""
    if dump.position_map is None or dump.sequence_map is None:
        raise DumpError("The engine did not print its map.", "LLAMA_KV_CACHE_DEBUG must be 3 when a context is created")
    pos = _positions(dump, blob)
    index = np.flatnonzero(pos != -1)
    if blob is not None and blob.n_cells != len(index):
        raise DumpError("The engine's map and its saved state differ.", f"{len(index)} and {blob.n_cells} used cells")
    if blob is not None:
        seq_ids = blob.seq_ids
    else:
        owners = read_sequences(dump.sequence_map, pos)
        if None in owners:
            raise DumpError("The engine's map has shared cells; only a saved state says whose they are.")
        seq_ids = tuple((s,) for s in owners if s is not None)
    if len(index) != dump.line.used:
        raise DumpError("The engine's map contradicts its own count.", f"{len(index)} and {dump.line.used} used cells")
    return StoredStream(index, pos[index], seq_ids, dump.line.head)


def rebuild_stream(cells: StreamCells, stored: StoredStream, written_at_op: int) -> None:
    """Make `cells` what the engine says. A cell keeps its token where its position was right. Changes the cache."""
    same = cells.pos[stored.index] == stored.pos
    token = np.where(same, cells.token[stored.index], np.int32(-1))
    ages = np.where(same, cells.written_at_op[stored.index], np.int64(written_at_op))
    cells.reset()
    if len(stored.index):
        cells.place(stored.index, stored.pos, stored.seq_ids, token, ages)
    cells.head = stored.head


def _positions(dump: SlotDump, blob: StreamBlob | None) -> NDArray[np.int32]:
    """Position per cell; where columns have run into each other, used cells from one map, positions from the blob."""
    assert dump.position_map is not None
    assert dump.sequence_map is not None
    try:
        return read_positions(dump.position_map, dump.line.size)
    except DumpError:
        marks = dump.sequence_map.replace(" *", "").replace("\n", "")
        if blob is None or len(marks) != dump.line.size or blob.n_cells != len(marks) - marks.count("."):
            raise
    pos = np.full(dump.line.size, -1, dtype=np.int32)
    pos[[i for i, mark in enumerate(marks) if mark != "."]] = blob.pos
    return pos
