"""Frozen, read-only views of the cache, which cross threads and which the inspector draws."""

from __future__ import annotations

from typing import Literal, NewType

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import SwaType
from kvdesk.values import dataclass

SeqId = NewType("SeqId", int)
CacheName = Literal["kv", "indexer", "base", "window"]
"""An attention cache: "kv" of a plain model, with "indexer" if attention chooses cells; "base" and "window"."""

VerificationState = Literal["verified", "mirrored", "mismatch"]


@dataclass(frozen=True, slots=True)
class Verification:
    """How far the map can be trusted.

    verified   the engine's own numbers agreed at operation `operation`
    mirrored   operations have happened since the engine last confirmed it (`operation` is the last proof, 0 never)
    mismatch   the engine contradicted the map at `operation`; `detail` explains it: "map not verified"

    `detail` also explains what could not be proved if the state is not "mismatch". `rebuilt_at`: the operation at which
    the map was last rebuilt from the engine's own state after a mismatch; 0 never.
    """

    state: VerificationState
    operation: int
    detail: str = ""
    rebuilt_at: int = 0
    by: str = ""  # the other kvdesk that says so; "": this one


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The content of some cells, as `StreamMap` has it: one entry per cell, pos -1 is an empty one."""

    pos: NDArray[np.int32]
    seq_bits: NDArray[np.uint64]  # shape (cells, words)
    token: NDArray[np.int32]
    written_at_op: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StreamMap:
    """The cells of one stream of one attention cache. Arrays have one entry per cell up to the high-water mark, and
    must not be modified. Later cells are empty; copying them would cost 1.5 ms per view at 131,072 cells.

    pos       int32, -1 if the cell is empty
    seq_bits  uint64 of shape (size, words): bit s%64 of word s//64 set when sequence s holds the cell
    token     int32, the token id that was placed there, -1 if unknown (kvdesk's own record, not the engine's)
    written_at_op  int64, number of the operation that wrote the cell, 0 if empty
    size      cells of the stream
    head      where the next slot search starts; used: non-empty cells; high_water: last non-empty index + 1
    shifted   bool, moved cells whose K is rotated before the next decode; None if there are none
    """

    pos: NDArray[np.int32]
    seq_bits: NDArray[np.uint64]
    token: NDArray[np.int32]
    written_at_op: NDArray[np.int64]
    size: int
    head: int
    used: int
    high_water: int
    shifted: NDArray[np.bool_] | None = None

    @classmethod
    def frozen(
        cls,
        pos: NDArray[np.int32],
        seq_bits: NDArray[np.uint64],
        token: NDArray[np.int32],
        written_at_op: NDArray[np.int64],
        size: int,
        head: int,
        used: int,
        shifted: NDArray[np.bool_] | None = None,
    ) -> StreamMap:
        """A map of arrays that belong to nobody else, and end at the high-water mark. Makes them read-only."""
        for array in (pos, seq_bits, token, written_at_op, shifted):
            if array is not None:
                array.flags.writeable = False
        return cls(pos, seq_bits, token, written_at_op, size, head, used, len(pos), shifted)

    def columns(self, n_cells: int) -> Columns:
        """The first `n_cells` cells, high-water mark or more: a copy of the arrays with the empty ones behind it."""
        n = n_cells - len(self.pos)
        if not n:
            return Columns(self.pos, self.seq_bits, self.token, self.written_at_op)
        return Columns(
            np.pad(self.pos, (0, n), constant_values=-1),
            np.pad(self.seq_bits, ((0, n), (0, 0))),
            np.pad(self.token, (0, n), constant_values=-1),
            np.pad(self.written_at_op, (0, n)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CacheMap:
    """One attention cache."""

    name: CacheName
    streams: tuple[StreamMap, ...]
    n_swa: int  # window in positions, 0 for none
    swa_type: SwaType = "standard"  # its shape, if there is a window


@dataclass(frozen=True, slots=True)
class SequenceSpan:
    """One sequence. Positions as the engine reports them (seq_pos_min/max), -1 for an empty sequence."""

    seq_id: SeqId
    pos_min: int
    pos_max: int
    n_cells: int
    n_shared: int  # of those, cells another sequence holds too


@dataclass(frozen=True, slots=True, eq=False)
class CacheSnapshot:
    """The whole memory of a context at one operation."""

    operation: int
    maps: tuple[CacheMap, ...]  # empty for a purely recurrent model
    recurrent: tuple[SequenceSpan, ...]  # one state per sequence, empty without a recurrent part
    sequences: tuple[SequenceSpan, ...]
    n_kv: int  # cells attention walks over at the next decode, maximum over streams and caches
    n_ctx: int
    verification: Verification
