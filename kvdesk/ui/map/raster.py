"""From a snapshot to the look of each cell: a code (an index of colours), and marks (bits) above it. numpy only; no Qt.

A code is `FIRST_GROUP + group * N_SHADES + shade`: the group comes from what the map is coloured by (`colours`),
the shade from the marks, so that one table of 256 colours draws every map. Codes below `FIRST_GROUP` are no used cells.
Only the cells in sight are read, at each drawing.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.seq_bits import seq_count
from kvdesk.cache.snapshot import CacheMap, SequenceSpan, StreamMap

FREE, FREE_IN_SPAN, PAD, INK, EDGE, HOLE = range(6)
FIRST_GROUP: Final = 8
N_SHADES: Final = 4
PLAIN, FADING_SHADE, FRESH_SHADE, DIM = range(N_SHADES)
NO_SEQUENCE: Final = 255

N_MARKS: Final = 7
FADING, FRESH, HIDDEN, SHIFTED, SHARED, PARTIAL, SINK = (1 << bit for bit in range(N_MARKS))
"""Marks of a cell, as bits: written a while ago, just written, no longer seen by the sliding window (it is overwritten
next), K-shift pending, held by several sequences, on a page that is not full, an attention sink."""

CODE: Final = np.uint16(0xFF)  # of a look
MARK_SHIFT: Final = np.uint16(8)

_LOOKS: Final = np.array(
    [
        (marks << MARK_SHIFT)
        + FIRST_GROUP
        + (FRESH_SHADE if marks & FRESH else FADING_SHADE if marks & FADING else DIM if marks & HIDDEN else PLAIN)
        for marks in range(1 << N_MARKS)
    ],
    dtype=np.uint16,
)
"""Of the first group, by marks."""

Limits = tuple[int, int]
"""Operations after which a written cell is fading, and just written."""


class Cells(NamedTuple):
    """Neighbouring cells of a stream, up to its high-water mark. An entry each; `n_holders`: sequences."""

    first: int
    pos: NDArray[np.int32]
    bits: NDArray[np.uint64]  # (n_cells, words)
    written_at_op: NDArray[np.int64]
    n_holders: NDArray[np.int64]
    marks: NDArray[np.uint8]

    @property
    def where(self) -> slice:
        """Their place in what has an entry for each cell of the stream."""
        return slice(self.first, self.first + self.pos.size)


class Coloured(NamedTuple):
    """Groups of cells, of their lower halves if the two differ somewhere, and the marks that are shown beside them."""

    group: NDArray[np.uint8]
    second: NDArray[np.uint8] | None
    marks: NDArray[np.uint8]


class Layer(NamedTuple):
    """Looks of neighbouring cells, an entry each. `lower`: of the lower half if it differs somewhere, else None."""

    upper: NDArray[np.uint16]
    lower: NDArray[np.uint16] | None = None

    @property
    def code(self) -> NDArray[np.uint16]:
        """Of the upper halves."""
        return self.upper & CODE

    @property
    def marks(self) -> NDArray[np.uint16]:
        return self.upper >> MARK_SHIFT


def cells_of(
    stream: StreamMap, first: int, end: int, limits: Limits, hidden_below: NDArray[np.int64] | None = None
) -> Cells:
    """The cells from `first` to before `end`; fewer if the high-water mark is lower."""
    part = slice(first, min(end, stream.high_water))
    pos, bits, written_at_op = stream.pos[part], stream.seq_bits[part], stream.written_at_op[part]
    n_holders = seq_count(bits)
    marks = _marked(n_holders > 1, SHARED)
    for mark, after in zip((FADING, FRESH), limits, strict=True):
        if written_at_op.max(initial=0) > after:
            marks |= _marked(written_at_op > after, mark)
    if hidden_below is not None:
        marks |= _marked((n_holders == 1) & (pos < hidden_below.take(lowest_sequence(bits))), HIDDEN)
    if stream.shifted is not None:
        marks |= _marked(stream.shifted[part], SHIFTED)
    return Cells(first, pos, bits, written_at_op, n_holders, marks)


def _marked(cells: NDArray[np.bool_], mark: int) -> NDArray[np.uint8]:
    return cells.view(np.uint8) * np.uint8(mark)


def lowest_sequence(bits: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Lowest sequence of each row of bits, 255 without one."""
    lowest = np.full(bits.shape[0], NO_SEQUENCE, np.uint8)
    for word in reversed(range(bits.shape[1])):
        one = bits[:, word]
        index = np.bitwise_count(~one & (one - np.uint64(1))) + np.uint8(64 * word)
        np.copyto(lowest, index, where=one != 0)
    return lowest


def without_lowest(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The rows of bits without the lowest of each."""
    rest = bits & (bits - np.uint64(1))
    for word in range(1, bits.shape[1]):
        np.copyto(rest[:, word], bits[:, word], where=bits[:, :word].any(axis=1))
    return rest


def hidden_below(cache: CacheMap, sequences: tuple[SequenceSpan, ...]) -> NDArray[np.int64] | None:
    """Per sequence the position below which a cell is overwritten next, None in a cache without a sliding window.

    The engine's rule (`is_masked_swa`, llama-hparams.h:475) at the next position of the cell's only sequence.
    """
    if cache.name != "window" or cache.n_swa < 1 or cache.swa_type == "none":
        return None
    following = np.zeros(NO_SEQUENCE + 1, np.int64)
    for span in sequences:
        following[span.seq_id] = span.pos_max + 1
    if cache.swa_type == "standard":
        return following - cache.n_swa + 1
    if cache.swa_type == "chunked":
        return following // cache.n_swa * cache.n_swa
    return following - cache.n_swa // 2


def layer(cells: Cells, coloured: Coloured, end: int, n_kv: int, size: int) -> Layer:
    """Looks of the cells up to before `end`, which are more than `cells` behind the high-water mark.

    Free cells below `n_kv`, which attention reads, differ from those beyond. Those before the last used cell are holes.
    Behind the last of all, `size`, is nothing.
    """
    free, used_look = cells.n_holders == 0, _LOOKS.take(coloured.marks)
    upper = np.full(end - cells.first, FREE, np.uint16)
    upper[: max(0, n_kv - cells.first)] = FREE_IN_SPAN
    upper[max(0, size - cells.first) :] = PAD
    lower = None if coloured.second is None else upper.copy()
    for half, groups in ((upper, coloured.group), (lower, coloured.second)):
        if half is not None and groups is not None:
            look = groups * np.uint16(N_SHADES) + used_look
            look[free] = HOLE
            half[: look.size] = look
    return Layer(upper, lower)


def differ(before: Layer, after: Layer) -> NDArray[np.bool_]:
    """The cells that look different."""
    different: NDArray[np.bool_] = before.upper != after.upper
    if before.lower is not None or after.lower is not None:
        one, other = (layer.upper if layer.lower is None else layer.lower for layer in (before, after))
        different |= one != other
    return different


def lit(layer: Layer, mask: NDArray[np.bool_]) -> Layer:
    """The layer with these of its used cells in the colour of what was just written. The mask may be shorter."""
    return Layer(_lit(layer.upper, mask), None if layer.lower is None else _lit(layer.lower, mask))


def _lit(look: NDArray[np.uint16], mask: NDArray[np.bool_]) -> NDArray[np.uint16]:
    bright = look.copy()
    shade = (look - np.uint16(FIRST_GROUP)) % np.uint16(N_SHADES)
    wanted = np.flatnonzero(mask & (look[: mask.size] & CODE >= FIRST_GROUP))
    bright[wanted] += np.uint16(FRESH_SHADE) - shade[wanted]
    return bright
