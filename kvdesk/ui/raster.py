"""Snapshot -> index image: which tint each cell has. numpy only; no Qt, no colours.

An index is `slot * N_STATES + state`, `slot` 0 for free cells and 1 + the owner's colour otherwise, so that one table
of at most 256 colours draws every map. A cell of several sequences has the slot of the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.snapshot import StreamMap

N_STATES: Final = 4
PLAIN, FADING, FRESH, SHARED = range(N_STATES)
FREE, FREE_IN_SPAN, PAD = 0, 1, 2  # the states of slot 0
UNKNOWN_SLOT: Final = 1  # a sequence that no conversation leases
FIRST_COLOUR_SLOT: Final = 2
NO_SEQUENCE: Final = 255


def slot_table(colour_of_seq: Mapping[int, int], n_seq: int) -> NDArray[np.uint8]:
    """Slot of each seq_id: `FIRST_COLOUR_SLOT + colour` of the conversation that leases it, else `UNKNOWN_SLOT`."""
    table = np.full(max(n_seq, 1), UNKNOWN_SLOT, np.uint8)
    for seq, colour in colour_of_seq.items():
        if 0 <= seq < n_seq:
            table[seq] = FIRST_COLOUR_SLOT + colour
    return table


class Runs(NamedTuple):
    """Maximal runs of cells that the same sequences hold, up to the high-water mark. One entry per run."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bits: NDArray[np.uint64]  # (n_runs, words)


def runs_of(stream: StreamMap) -> Runs:
    """The runs of a stream. Everything else is computed per run: there are few of them in a large cache."""
    bits = stream.seq_bits[: stream.high_water]
    if bits.shape[0] == 0:
        none = np.zeros(0, np.int64)
        return Runs(none, none, bits)
    changes = bits[1:, 0] != bits[:-1, 0]
    for word in range(1, bits.shape[1]):
        changes |= bits[1:, word] != bits[:-1, word]
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    lengths = np.diff(starts, append=bits.shape[0])
    return Runs(starts, lengths, bits[starts])


def lowest_sequence(bits: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Lowest sequence of each row of bits, 255 where there is none."""
    lowest = np.full(bits.shape[0], NO_SEQUENCE, np.uint8)
    for word in range(min(bits.shape[1], 3)):
        one = bits[:, word]
        index = np.bitwise_count(~one & (one - np.uint64(1))).astype(np.uint8) + np.uint8(64 * word)
        np.copyto(lowest, index, where=(one != 0) & (lowest == NO_SEQUENCE))
    return lowest


def index_image(
    stream: StreamMap, runs: Runs, slots: NDArray[np.uint8], n_kv: int, fading_after: int, fresh_after: int
) -> NDArray[np.uint8]:
    """One index per cell. Cells born after operation `fresh_after` are fresh, after `fading_after` fading.

    Cells below `n_kv` that are free are told apart from those beyond: attention walks over the first.
    """
    out = np.full(stream.size, FREE, np.uint8)
    out[:n_kv] = FREE_IN_SPAN
    high = stream.high_water
    if high == 0:
        return out
    owner = lowest_sequence(runs.bits)
    lookup = np.full(256, UNKNOWN_SLOT * N_STATES, np.uint8)
    lookup[: slots.size] = slots * N_STATES
    value = lookup[owner]
    value[np.bitwise_count(runs.bits).sum(axis=1) > 1] += SHARED
    value[owner == NO_SEQUENCE] = FREE_IN_SPAN
    out[:high] = np.repeat(value, runs.lengths)
    born = stream.born[:high]
    if int(born.max()) > fading_after:
        new = np.flatnonzero(born > fading_after)
        state = np.where(born[new] > fresh_after, FRESH, FADING).astype(np.uint8)
        old = out[new]
        used = old >= N_STATES
        out[new[used]] = old[used] // N_STATES * N_STATES + state[used]
    return out


def second_owner_runs(runs: Runs) -> list[tuple[int, int, int]]:
    """Shared cells as (first cell, number of cells, second lowest sequence)."""
    shared = np.flatnonzero(np.bitwise_count(runs.bits).sum(axis=1) > 1)
    if shared.size == 0:
        return []
    rest = runs.bits[shared].copy()
    first = lowest_sequence(rest)
    rest[np.arange(shared.size), first // 64] &= ~(np.uint64(1) << (first % 64).astype(np.uint64))
    second = lowest_sequence(rest)
    return list(
        zip(runs.starts[shared].tolist(), runs.lengths[shared].tolist(), second.tolist(), strict=True),
    )


def row_boxes(first: int, length: int, columns: int) -> list[tuple[int, int, int, int]]:
    """A run of cells as at most three boxes (column, row, width, height), in cells."""
    row, column = divmod(first, columns)
    boxes: list[tuple[int, int, int, int]] = []
    if column or length < columns:
        head = min(length, columns - column)
        boxes.append((column, row, head, 1))
        length -= head
        row += 1
    if full := length // columns:
        boxes.append((0, row, columns, full))
    if rest := length % columns:
        boxes.append((0, row + full, rest, 1))
    return boxes


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
