"""Snapshot -> index image: which tint each cell has. numpy only; no Qt, no colours.

An index is `slot * N_STATES + state`, `slot` 0 for free cells and 1 + the owner's colour otherwise, so that one table
of at most 256 colours draws every map. A cell of several sequences has the slot of the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.snapshot import StreamMap

N_STATES: Final = 4
PLAIN, FADING, FRESH, SHARED = range(N_STATES)
FREE, FREE_IN_SPAN, PAD = 0, 1, 2  # the states of slot 0
UNKNOWN_SLOT: Final = 1  # a sequence that no conversation leases
FIRST_COLOUR_SLOT: Final = 2
_NO_OWNER: Final = 255


def slot_table(colour_of_seq: Mapping[int, int], n_seq: int) -> NDArray[np.uint8]:
    """Slot of each seq_id: `FIRST_COLOUR_SLOT + colour` of the conversation that leases it, else `UNKNOWN_SLOT`."""
    table = np.full(max(n_seq, 1), UNKNOWN_SLOT, np.uint8)
    for seq, colour in colour_of_seq.items():
        if 0 <= seq < n_seq:
            table[seq] = FIRST_COLOUR_SLOT + colour
    return table


def owners(seq_bits: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Lowest sequence of each cell (255 where empty), and whether more than one holds it."""
    n_cells, words = seq_bits.shape
    owner = np.full(n_cells, _NO_OWNER, np.uint8)
    shared = np.zeros(n_cells, np.bool_)
    one = np.uint64(1)
    for word in range(min(words, 3)):
        bits = np.ascontiguousarray(seq_bits[:, word])
        below = bits - one  # wraps to all ones for an empty cell
        held = bits != 0
        lowest = np.bitwise_count(~bits & below).astype(np.uint8) + np.uint8(64 * word)
        shared |= ((bits & below) != 0) & held
        if word == 0:
            np.copyto(owner, lowest, where=held)
        else:
            shared |= held & (owner != _NO_OWNER)
            np.copyto(owner, lowest, where=held & (owner == _NO_OWNER))
    return owner, shared


def index_image(
    stream: StreamMap, slots: NDArray[np.uint8], n_kv: int, fading_after: int, fresh_after: int
) -> NDArray[np.uint8]:
    """One index per cell. Cells born after operation `fresh_after` are fresh, after `fading_after` fading.

    Cells below `n_kv` that are free are told apart from those beyond: attention walks over the first.
    """
    out = np.full(stream.size, FREE, np.uint8)
    out[:n_kv] = FREE_IN_SPAN
    high = stream.high_water
    if high == 0:
        return out
    owner, shared = owners(stream.seq_bits[:high])
    used = owner != _NO_OWNER
    lookup = np.full(256, UNKNOWN_SLOT * N_STATES, np.uint8)
    lookup[: slots.size] = slots * N_STATES
    state = shared.astype(np.uint8) * np.uint8(SHARED)
    born = stream.born[:high]
    if int(born.max()) > fading_after:
        state[(born > fading_after) & ~shared] = FADING
        state[born > fresh_after] = FRESH
    np.copyto(out[:high], lookup[owner] + state, where=used)
    return out


def second_owner_runs(stream: StreamMap, columns: int) -> list[tuple[int, int, int]]:
    """Shared cells as runs (first cell, length, second lowest sequence), none longer than the rest of its row."""
    bits = stream.seq_bits[: stream.high_water]
    shared = np.flatnonzero(np.bitwise_count(bits).sum(axis=1) > 1)
    if shared.size == 0:
        return []
    rest = bits[shared].copy()
    first, _ = owners(rest)
    rows = np.arange(shared.size)
    rest[rows, first // 64] &= ~(np.uint64(1) << (first % 64).astype(np.uint64))
    second, _ = owners(rest)
    new = (np.diff(shared) != 1) | (np.diff(second) != 0) | (shared[1:] % columns == 0)
    starts = np.concatenate(([0], np.flatnonzero(new) + 1))
    ends = np.concatenate((starts[1:], [shared.size]))
    return [(int(shared[a]), int(b - a), int(second[a])) for a, b in zip(starts, ends, strict=True)]


def as_picture(index: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """The cells in rows of `columns`, the rest of the last row padded. Rows are 4-byte aligned for QImage."""
    rows = -(-index.size // columns)
    stride = -(-columns // 4) * 4
    picture = np.full((rows, stride), PAD, np.uint8)
    full = index.size // columns
    picture[:full, :columns] = index[: full * columns].reshape(full, columns)
    if full < rows:
        rest = index[full * columns :]
        picture[full, : rest.size] = rest
    return picture
