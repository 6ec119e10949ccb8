"""Changed cells as runs of neighbours, and back: the part of the journal's file format for cells.

Owns the layout of a run (`kvdesk.cache.journal.file` documents it) and the checks of its values. Must never know lines.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from kvdesk.cache.flat import Flat, Shape, join_patches, split_patch
from kvdesk.cache.memories.cells import POS_MAX, Patch
from kvdesk.cache.seq_bits import seq_bit, seq_members

MAX_RUNS = 4096  # in one line
_FREE, _HELD = 3, 7  # values in a run of empty cells, and of cells that hold something


class Invalid(Exception):
    """A value in a file is invalid; callers turn it into a sentence."""


def runs_of(patch: Patch, shape: Shape) -> Iterator[list[Any]]:
    """The cells of a patch as runs, ascending."""
    offsets = shape.offsets
    for stream, entries in split_patch(patch, offsets):
        entries = entries[np.argsort(patch.index[entries], kind="stable")]
        cell = patch.index[entries] - offsets[stream]
        pos, bits = patch.pos[entries].astype(np.int64), patch.bits[entries]
        token, written_at_op = patch.token[entries], patch.written_at_op[entries]
        free = (pos == -1) & ~bits.any(axis=1) & (token == -1) & (written_at_op == 0)
        alike = (
            (bits[1:] == bits[:-1]).all(axis=1) & (written_at_op[1:] == written_at_op[:-1]) & (pos[1:] == pos[:-1] + 1)
        )
        alike = (alike & ~free[1:] & ~free[:-1]) | (free[1:] & free[:-1])
        breaks = np.flatnonzero(~alike | (cell[1:] != cell[:-1] + 1)) + 1
        for a, b in pairwise([0, *breaks.tolist(), len(cell)]):
            run: list[Any] = [stream, int(cell[a]), b - a]
            if not free[a]:
                run += [int(pos[a]), list(seq_members(bits[a])), int(written_at_op[a]), token[a:b].tolist()]
            yield run


def patch_of(runs: object, flat: Flat, number: int) -> Patch:
    """The cells of runs from a file, of operation `number` on the map `flat`.

    Raises Invalid for anything that `runs_of` would not write, so that a short line cannot cause a lot of work: cells
    that a run empties must be in use.
    """
    if type(runs) is not list or len(runs) > MAX_RUNS:
        raise Invalid("cells are not a list, or too long a one")
    shape, offsets = flat.shape, flat.offsets
    parts = []
    n_cells = 0
    for run in runs:
        if type(run) is not list or len(run) not in (_FREE, _HELD):
            raise Invalid("a run of cells has the wrong number of values")
        stream = integer(run[0], 0, len(offsets) - 2)
        size = offsets[stream + 1] - offsets[stream]
        cell = integer(run[1], 0, size - 1)
        n = integer(run[2], 1, size - cell)
        n_cells += n
        if n_cells > shape.n_cells:
            raise Invalid("more cells than there are")
        first = offsets[stream] + cell
        if len(run) == _FREE and not flat.in_use(first, first + n):
            raise Invalid("a cell is emptied that is empty")
        parts.append(_part(run, first, n, shape.words, number))
    patch = join_patches(parts, shape.words)
    if len(parts) > 1 and len(np.unique(patch.index)) != patch.n_cells:
        raise Invalid("a cell comes twice")
    return patch


def integer(value: object, low: int, high: int) -> int:
    """A value from a file that must be an integer of [low, high]. Raises Invalid."""
    if type(value) is not int or not low <= value <= high:
        raise Invalid(f"{str(value)[:40]} is not an integer from {low} to {high}")
    return value


def _part(run: list[Any], first: int, n: int, words: int, number: int) -> Patch:
    index = np.arange(first, first + n, dtype=np.int64)
    bits = np.zeros((n, words), dtype=np.uint64)
    if len(run) == _FREE:
        nothing = np.full(n, -1, dtype=np.int32)
        return Patch(index, nothing, bits, nothing, np.zeros(n, dtype=np.int64))
    pos = integer(run[3], -1, POS_MAX - n)
    seq_ids, tokens = run[4], run[6]
    if type(seq_ids) is not list or len(seq_ids) > 64 * words or type(tokens) is not list or len(tokens) != n:
        raise Invalid("a run of cells without its sequences or tokens")
    for seq_id in seq_ids:
        word, bit = seq_bit(integer(seq_id, 0, 64 * words - 1))
        bits[:, word] |= bit
    written_at_op = integer(run[5], 0, number)
    token = np.array([integer(token, -1, 2**31 - 1) for token in tokens], dtype=np.int32)
    return Patch(index, np.arange(pos, pos + n, dtype=np.int32), bits, token, np.full(n, written_at_op, dtype=np.int64))
