"""Sets of sequences as bits, a row per cell: bit s % 64 of word s // 64 is set where sequence s has the cell.

Owns how the sets are packed (`StreamMap.seq_bits`, llama_kv_cells::seq). Rows are uint64 arrays of shape (cells,
words). Pure functions.
"""

from collections.abc import Iterable, Sequence
from typing import SupportsInt

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]


def seq_bit(seq_id: int) -> tuple[int, np.uint64]:
    """The word of a row that has the sequence, and its bit there."""
    word, bit = divmod(seq_id, 64)
    return word, np.uint64(1 << bit)


def seq_has(bits: Bits, seq_id: int) -> NDArray[np.bool_]:
    """Mask of the cells that have the sequence: none if the rows have no word for it."""
    word, bit = seq_bit(seq_id)
    if word >= bits.shape[1]:
        return np.zeros(bits.shape[0], np.bool_)
    mask: NDArray[np.bool_] = (bits[:, word] & bit) != 0
    return mask


def seq_count(bits: Bits) -> NDArray[np.int64]:
    """The number of sequences of each cell."""
    counts: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counts


def seq_members(row: Iterable[SupportsInt]) -> tuple[int, ...]:
    """The sequences of one cell, ascending, from its row."""
    members = []
    for w, word in enumerate(row):
        left = int(word)
        while left:
            low = left & -left
            members.append(64 * w + low.bit_length() - 1)
            left ^= low
    return tuple(members)


def seqs_in(bits: Bits) -> tuple[int, ...]:
    """The sequences that have one of these cells, ascending."""
    return seq_members(np.bitwise_or.reduce(bits, axis=0))


def member_rows(seq_ids: Iterable[tuple[int, ...]], n_words: int) -> Bits:
    """Rows of `n_words` words of these sets of sequences."""
    wanted = list(seq_ids)
    rows = np.zeros((len(wanted), n_words), dtype=np.uint64)
    for row, ids in zip(rows, wanted, strict=True):
        for s in ids:
            word, bit = seq_bit(s)
            row[word] |= bit
    return rows


def rows_of(seq_ids: Sequence[tuple[int, ...]], n_words: int) -> Bits:
    """`member_rows`, where many sets are the same."""
    kinds, which = kinds_of(seq_ids)
    return member_rows(kinds, n_words)[which]


def kinds_of(seq_ids: Sequence[tuple[int, ...]]) -> tuple[dict[tuple[int, ...], int], NDArray[np.intp]]:
    """The different sets in the order of their first, and which of them each is."""
    kinds = {ids: i for i, ids in enumerate(dict.fromkeys(seq_ids))}
    return kinds, np.fromiter(map(kinds.__getitem__, seq_ids), np.intp, len(seq_ids))
