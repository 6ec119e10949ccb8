"""From a snapshot to the code (an index of colours) and the marks (bits) of each cell. numpy only; no Qt.

A code is `FIRST_GROUP + group * N_SHADES + shade`: the group comes from what the map is coloured by (`colours`),
the shade from the marks, so that one table of 256 colours draws every map. Codes below `FIRST_GROUP` are no used cells.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.seq_bits import seq_count, seq_has
from kvdesk.cache.snapshot import CacheMap, StreamMap

FREE, FREE_IN_SPAN, PAD, INK, EDGE, HOLE = range(6)
FIRST_GROUP: Final = 8
N_SHADES: Final = 4
PLAIN, FADING_SHADE, FRESH_SHADE, DIM = range(N_SHADES)
NO_SEQUENCE: Final = 255

N_MARKS: Final = 7
FADING, FRESH, HIDDEN, SHIFTED, SHARED, PARTIAL, SINK = (1 << bit for bit in range(N_MARKS))
"""Marks of a cell, as bits: written a while ago, just written, no longer seen by the sliding window (it is overwritten
next), K-shift pending, held by several sequences, on a page that is not full, an attention sink."""

_FEW: Final = 16  # runs: fewer are counted faster one by one than by numpy

SHADES: Final = np.array(
    [
        FRESH_SHADE if marks & FRESH else FADING_SHADE if marks & FADING else DIM if marks & HIDDEN else PLAIN
        for marks in range(1 << N_MARKS)
    ],
    dtype=np.uint8,
)


class Runs(NamedTuple):
    """Maximal runs of cells that the same sequences hold, up to the high-water mark. One entry per run.

    owner      lowest sequence, `NO_SEQUENCE` without one; n_holders: how many there are
    shared     some cells are held by several sequences; free: some by none
    """

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bits: NDArray[np.uint64]  # (n_runs, words)
    owner: NDArray[np.uint8]
    n_holders: NDArray[np.int64]
    shared: bool
    free: bool

    def hold(self, seq: int) -> NDArray[np.bool_]:
        """Which runs the sequence holds."""
        if seq // 64 >= self.bits.shape[1]:
            return np.zeros(self.starts.size, np.bool_)
        return seq_has(self.bits, seq)


class Layer(NamedTuple):
    """One stream: an entry per cell. `second`: code of the lower half where it differs somewhere, else None.

    n_free  number of `FREE` cells that follow without an entry: most cells of a large cache
    """

    code: NDArray[np.uint8]
    second: NDArray[np.uint8] | None
    marks: NDArray[np.uint8]
    n_free: int = 0


def runs_of(stream: StreamMap) -> Runs:
    """The runs of a stream. Most else is computed per run: there are few of them in a large cache."""
    bits = stream.seq_bits[: stream.high_water]
    if bits.shape[0] == 0:
        none = np.zeros(0, np.int64)
        return Runs(none, none, bits, none.astype(np.uint8), none, shared=False, free=False)
    changes = bits[1:, 0] != bits[:-1, 0]
    for word in range(1, bits.shape[1]):
        changes |= bits[1:, word] != bits[:-1, word]
    at = np.flatnonzero(changes) + 1
    if at.size < _FEW and bits.shape[1] == 1:
        edges = [0, *at.tolist(), bits.shape[0]]
        starts = tuple(edges[:-1])
        known = _few_runs(starts, tuple(int(bits[start, 0]) for start in starts))
        return known._replace(lengths=np.array([b - a for a, b in pairwise(edges)], np.int64))
    first = np.concatenate(([0], at))
    held = bits[first]
    return _runs(first, np.diff(first, append=bits.shape[0]), held)


def _runs(starts: NDArray[np.int64], lengths: NDArray[np.int64], held: NDArray[np.uint64]) -> Runs:
    n_holders = seq_count(held)
    shared, free = bool(n_holders.max() > 1), bool(n_holders.min() == 0)
    return Runs(starts, lengths, held, lowest_sequence(held), n_holders, shared, free)


@lru_cache(maxsize=64)
def _few_runs(starts: tuple[int, ...], words: tuple[int, ...]) -> Runs:
    """Runs, but for their lengths: of a cache that is written to only those change, and mostly the last."""
    first = np.array(starts, np.int64)
    return _runs(first, np.zeros_like(first), np.array(words, np.uint64)[:, None])


def lowest_sequence(bits: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Lowest sequence of each row of bits, 255 without one."""
    lowest = np.full(bits.shape[0], NO_SEQUENCE, np.uint8)
    for word in range(min(bits.shape[1], 3)):
        one = bits[:, word]
        index = np.bitwise_count(~one & (one - np.uint64(1))).astype(np.uint8) + np.uint8(64 * word)
        np.copyto(lowest, index, where=(one != 0) & (lowest == NO_SEQUENCE))
    return lowest


def second_sequence(runs: Runs) -> NDArray[np.uint8]:
    """Second lowest sequence of each run; the lowest if it has only one."""
    shared = np.flatnonzero(runs.n_holders > 1)
    second = runs.owner.copy()
    rest = runs.bits[shared].copy()
    first = runs.owner[shared]
    rest[np.arange(shared.size), first // 64] &= ~(np.uint64(1) << (first % 64).astype(np.uint64))
    second[shared] = lowest_sequence(rest)
    return second


def hidden_below(stream: StreamMap, runs: Runs, cache: CacheMap) -> NDArray[np.int64] | None:
    """Per run the position below which a cell is overwritten next, None in a cache without a sliding window.

    The engine's rule (`is_masked_swa`, llama-hparams.h:475) at the next position of the cell's only sequence.
    """
    if cache.name != "window" or cache.n_swa < 1 or cache.swa_type == "none" or runs.starts.size == 0:
        return None
    last = np.maximum.reduceat(stream.pos[: stream.high_water], runs.starts).astype(np.int64)
    below = np.full(runs.starts.size, -1, np.int64)
    for seq in np.unique(runs.owner[runs.n_holders == 1]).tolist():
        following = int(last[runs.hold(seq)].max()) + 1
        if cache.swa_type == "standard":
            limit = following - cache.n_swa + 1
        elif cache.swa_type == "chunked":
            limit = following // cache.n_swa * cache.n_swa
        else:
            limit = following - cache.n_swa // 2
        below[(runs.owner == seq) & (runs.n_holders == 1)] = limit
    return below


def marks_of(stream: StreamMap, runs: Runs, cache: CacheMap, fading_after: int, fresh_after: int) -> NDArray[np.uint8]:
    """Marks of the cells up to the high-water mark. Cells written after operation `fresh_after` are shown as new."""
    high = stream.high_water
    if runs.shared:
        marks = np.repeat(np.where(runs.n_holders > 1, np.uint8(SHARED), np.uint8(0)), runs.lengths)
    else:
        marks = np.zeros(high, np.uint8)
    if high == 0:
        return marks
    written_at_op = stream.written_at_op[:high]
    if int(written_at_op.max()) > fading_after:
        marks |= np.where(written_at_op > fading_after, np.uint8(FADING), np.uint8(0))
        marks |= np.where(written_at_op > fresh_after, np.uint8(FRESH), np.uint8(0))
    below = hidden_below(stream, runs, cache)
    if below is not None:
        hidden = stream.pos[:high] < np.repeat(below, runs.lengths)
        marks |= np.where(hidden, np.uint8(HIDDEN), np.uint8(0))
    if stream.shifted is not None:
        marks |= np.where(stream.shifted[:high], np.uint8(SHIFTED), np.uint8(0))
    return marks


def layer(
    stream: StreamMap,
    runs: Runs,
    n_kv: int,
    group: NDArray[np.uint8],
    second: NDArray[np.uint8] | None,
    marks: NDArray[np.uint8],
) -> Layer:
    """Codes from groups and marks, which have one entry per cell up to the high-water mark.

    Free cells below `n_kv`, which attention reads, differ from those beyond, which have no entry. Those
    before the last used cell are holes.
    """
    high = stream.high_water
    n = max(n_kv, high)
    code = np.full(n, FREE_IN_SPAN, np.uint8)
    every = np.zeros(n, np.uint8)
    if high == 0:
        return Layer(code, None, every, stream.size - n)
    shade = SHADES[marks]
    shade += np.uint8(FIRST_GROUP)
    free = np.repeat(runs.owner == NO_SEQUENCE, runs.lengths) if runs.free else None
    if free is not None:
        code[:high][free] = HOLE
    lower = None
    if second is not None:
        lower = code.copy()
        _fill(lower[:high], second, shade, free)
    _fill(code[:high], group, shade, free)
    every[:high] = marks
    if free is not None:
        every[:high][free] = 0
    return Layer(code, lower, every, stream.size - n)


def _fill(
    out: NDArray[np.uint8], group: NDArray[np.uint8], shade: NDArray[np.uint8], free: NDArray[np.bool_] | None
) -> None:
    codes = group * np.uint8(N_SHADES)
    codes += shade
    if free is None:
        out[:] = codes
    else:
        np.copyto(out, codes, where=~free)


def changed(before: Layer, after: Layer) -> tuple[int, int] | None:
    """First cell that looks different, and the last one + 1; None where all look the same."""
    sizes = before.code.size, after.code.size
    n, end = min(sizes), max(sizes)
    differ = (before.code[:n] != after.code[:n]) | (before.marks[:n] != after.marks[:n])
    if before.second is not None or after.second is not None:
        one, other = (layer.code if layer.second is None else layer.second for layer in (before, after))
        differ |= one[:n] != other[:n]
    at = np.flatnonzero(differ)
    if not at.size:
        return (n, end) if n < end else None
    return int(at[0]), end if n < end else int(at[-1]) + 1


def lit(layer: Layer, mask: NDArray[np.bool_]) -> Layer:
    """The layer with these of its used cells in the colour of what was just written."""
    return layer._replace(
        code=_lit(layer.code, mask), second=None if layer.second is None else _lit(layer.second, mask)
    )


def _lit(code: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    wanted = mask[: code.size] & (code >= FIRST_GROUP)
    bright = code - (code - np.uint8(FIRST_GROUP)) % np.uint8(N_SHADES) + np.uint8(FRESH_SHADE)
    lit_code: NDArray[np.uint8] = np.where(wanted, bright, code)
    return lit_code
