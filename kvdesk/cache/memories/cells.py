"""The cells of one stream: positions, sequences, the head of the slot search, and the rules that move them.

Owns what llama_kv_cells and the per-stream half of llama_kv_cache do (llama-kv-cells.h, llama-kv-cache.cpp). Must never
know batches, other streams or other caches. All `file:line` references are llama.cpp 0c1e57098.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import SwaType, n_kv_of
from kvdesk.cache.seq_bits import kinds_of, member_rows, rows_of, seq_bit, seq_count, seq_has, seq_members, seqs_in
from kvdesk.cache.snapshot import StreamMap
from kvdesk.values import dataclass

POS_MAX = 2**31 - 1  # what a negative p1 means: std::numeric_limits<llama_pos>::max()
_FIRST_CHUNK = 32  # cells looked at in the first step of a slot search; doubles from there

Index = NDArray[np.int64]


def clip_range(p0: int, p1: int) -> tuple[int, int]:
    """Negative ends mean "from the start" and "to the end" (llama-kv-cache.cpp:391-397)."""
    return max(p0, 0), (POS_MAX if p1 < 0 else p1)


def masked_swa(n_swa: int, swa_type: SwaType, p0: NDArray[np.int32], p1: int) -> NDArray[np.bool_]:
    """Which positions `p0` a token at position `p1` cannot see any more (is_masked_swa, llama-hparams.h:475)."""
    if swa_type == "standard":
        return p1 - p0 >= n_swa
    if swa_type == "chunked":
        return p0 < (p1 // n_swa) * n_swa
    if swa_type == "symmetric":
        return np.abs(p1 - p0) > n_swa // 2
    return np.zeros(p0.shape, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """The content of some cells at one moment (llama_kv_cells::cp): an entry for each, as `StreamMap` has them.

    index  the cells, each at most once
    heads  (stream, head) of streams whose head changed
    """

    index: Index
    pos: NDArray[np.int32]
    bits: NDArray[np.uint64]  # shape (cells, words)
    token: NDArray[np.int32]
    written_at_op: NDArray[np.int64]
    heads: tuple[tuple[int, int], ...] = ()

    @property
    def n_cells(self) -> int:
        return len(self.index)

    def part(self, which: Index | slice, heads: tuple[tuple[int, int], ...] = ()) -> Patch:
        """Some of the entries."""
        return Patch(
            self.index[which], self.pos[which], self.bits[which], self.token[which], self.written_at_op[which], heads
        )


class StreamCells:
    """All cells of one stream. Every array has one entry per cell.

    pos -1 is an empty cell. `shift` is the K-shift not yet applied, in positions. `token` and `written_at_op` are
    kvdesk's own record: the token id placed and the operation that placed it.
    """

    def __init__(self, size: int, n_seq_max: int) -> None:
        words = -(-n_seq_max // 64)
        self.pos = np.full(size, -1, dtype=np.int32)
        self.bits = np.zeros((size, words), dtype=np.uint64)
        self.token = np.full(size, -1, dtype=np.int32)
        self.written_at_op = np.zeros(size, dtype=np.int64)
        self.shift = np.zeros(size, dtype=np.int32)
        self.head = 0
        self.used = 0
        self.high_water = 0
        self.has_shift = False
        self._count: dict[int, int] = {}  # cells of each sequence that has any
        self._span: dict[int, tuple[int | None, int | None]] = {}  # first and last position, as far as known

    # --- read-only ---------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return int(self.pos.shape[0])

    @property
    def sequences(self) -> list[int]:
        """Sequences that hold a cell, ascending."""
        return sorted(self._count)

    def n_cells(self, seq_id: int) -> int:
        """How many cells the sequence holds. Read-only."""
        return self._count.get(seq_id, 0)

    def seq_pos_min(self, seq_id: int) -> int:
        """First position of the sequence, -1 if it holds no cell. Read-only."""
        return self._bounds(seq_id)[0]

    def seq_pos_max(self, seq_id: int) -> int:
        """Last position of the sequence, -1 if it holds no cell. Read-only."""
        return self._bounds(seq_id)[1]

    @property
    def n_kv(self) -> int:
        """Cells that attention walks over (get_n_kv, llama-kv-cache.cpp:1260)."""
        return self.n_kv_of(self.high_water)

    def n_kv_of(self, high_water: int) -> int:
        """`n_kv` if the high-water mark were this. Read-only."""
        return n_kv_of(self.size, high_water)

    def seq_has(self, seq_id: int) -> NDArray[np.bool_]:
        """Mask over [0, high_water) of the cells that hold the sequence. Read-only."""
        return seq_has(self.bits[: self.high_water], seq_id)

    @property
    def shares(self) -> bool:
        """Whether any cell has more than one sequence. Read-only."""
        return sum(self._count.values()) > self.used

    def shared(self) -> NDArray[np.bool_]:
        """Mask over [0, high_water) of the cells of more than one sequence. Read-only."""
        return seq_count(self.bits[: self.high_water]) > 1

    def usable(self, n_swa: int, swa_type: SwaType) -> NDArray[np.bool_]:
        """Mask over all cells of those that a token may be placed in. Read-only."""
        return self._usable(0, self.size, n_swa, swa_type)

    def find_slot(self, n_tokens: int, n_swa: int, swa_type: SwaType) -> tuple[Index | None, int]:
        """(cells for `n_tokens` tokens, or None; how many cells were tested). Read-only.

        Cell by cell from the head, once around (llama-kv-cache.cpp:993-1085). The head counts as 0 when more than
        2 * n_tokens cells below it are free. Usable: an empty cell, or one whose only sequence cannot see it any more.
        """
        if n_tokens > self.size:
            return None, 0
        start = self.search_start(n_tokens)
        if n_tokens == 1 and self._can_use(start, n_swa, swa_type):
            return np.array([start], dtype=np.int64), 1
        found: list[Index] = []
        n_found = n_tested = 0
        chunk = max(_FIRST_CHUNK, n_tokens)
        while n_tested < self.size:
            at = (start + n_tested) % self.size
            end = min(self.size, at + chunk, at + self.size - n_tested)
            usable = np.flatnonzero(self._usable(at, end, n_swa, swa_type)) + at
            if n_found + len(usable) >= n_tokens:
                usable = usable[: n_tokens - n_found]
                n_tested += int(usable[-1]) + 1 - at
                found.append(usable)
                return (np.concatenate(found) if len(found) > 1 else usable), n_tested
            found.append(usable)
            n_found += len(usable)
            n_tested += end - at
            chunk *= 2
        return None, n_tested

    def goes_back(self, n_swa: int, swa_type: SwaType) -> bool:
        """Whether `find_slot` gives the next token a cell before a used one. Read-only."""
        found, _ = self.find_slot(1, n_swa, swa_type)
        return found is not None and int(found[0]) < self.high_water

    def rows(self, seq_ids: Sequence[tuple[int, ...]]) -> NDArray[np.uint64]:
        """Rows of `bits` for these sets of sequences. Read-only."""
        return rows_of(seq_ids, self.bits.shape[1])

    def save(self, index: Index) -> Patch:
        """Remember the content of these cells. Read-only."""
        return Patch(index, self.pos[index], self.bits[index], self.token[index], self.written_at_op[index])

    def freeze(self) -> StreamMap:
        """A copy for others to look at. Read-only."""
        top = self.high_water
        columns = (
            self.pos[:top].copy(),
            self.bits[:top].copy(),
            self.token[:top].copy(),
            self.written_at_op[:top].copy(),
        )
        shifted = self.shift[:top] != 0 if self.has_shift else None
        return StreamMap.frozen(*columns, self.size, self.head, self.used, shifted)

    # --- changes the cache -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Empty every cell and drop the pending shift; the head stays (llama_kv_cells::reset). Changes the cache."""
        top = self.high_water
        self.pos[:top] = -1
        self.bits[:top] = 0
        self.token[:top] = -1
        self.written_at_op[:top] = 0
        self.shift[:top] = 0
        self.used = self.high_water = 0
        self.has_shift = False
        self._count.clear()
        self._span.clear()

    def place(
        self,
        index: Index,
        pos: NDArray[np.int32],
        seq_ids: Sequence[tuple[int, ...]],
        token: NDArray[np.int32],
        written_at_op: int | NDArray[np.int64],
    ) -> None:
        """Fill empty cells, `written_at_op` in operation(s) of that number. The head stays. Changes the cache."""
        self.pos[index] = pos
        self.token[index] = token
        self.written_at_op[index] = written_at_op
        self.used += len(index)
        self.high_water = max(self.high_water, int(index.max()) + 1)
        first = seq_ids[0]
        if seq_ids.count(first) == len(seq_ids):
            self.bits[index] = member_rows((first,), self.bits.shape[1])
            low, high = int(pos.min()), int(pos.max())
            for s in first:
                self._grow(s, len(index), low, high)
            return
        kinds, which = kinds_of(seq_ids)
        self.bits[index] = member_rows(kinds, self.bits.shape[1])[which]
        counts = np.bincount(which, minlength=len(kinds))
        lows, highs = np.full(len(kinds), POS_MAX), np.full(len(kinds), -1)
        np.minimum.at(lows, which, pos)
        np.maximum.at(highs, which, pos)
        for ids, n, low, high in zip(kinds, counts.tolist(), lows.tolist(), highs.tolist(), strict=True):
            for s in ids:
                self._grow(s, n, low, high)

    def place_run(self, start: int, pos: int, seq_id: int, tokens: Sequence[int], written_at_op: int) -> None:
        """`place` for one token after another of one sequence, in the empty cells from `start` on. The head stays.

        Changes the cache. Positions and operations go up by one from token to token.
        """
        n = len(tokens)
        end = start + n
        self.pos[start:end] = np.arange(pos, pos + n)
        self.token[start:end] = tokens
        self.written_at_op[start:end] = np.arange(written_at_op, written_at_op + n)
        word, bit = seq_bit(seq_id)
        self.bits[start:end, word] = bit
        self.used += n
        self.high_water = max(self.high_water, end)
        self._grow(seq_id, n, pos, pos + n - 1)

    def restore_cells(self, saved: Patch) -> None:
        """Put remembered cells back (llama_kv_cells::set). The head stays. Changes the cache."""
        now = saved.index[self.pos[saved.index] != -1]
        if len(now):
            self.free(now)
        filled = saved.pos != -1
        index = saved.index[filled]
        if not len(index):
            return
        self.pos[index] = saved.pos[filled]
        self.bits[index] = saved.bits[filled]
        self.token[index] = saved.token[filled]
        self.written_at_op[index] = saved.written_at_op[filled]
        self.used += len(index)
        self.high_water = max(self.high_water, int(index.max()) + 1)
        self._count_in(saved.pos[filled], saved.bits[filled])

    def free(self, index: Index) -> None:
        """Empty these used cells. The head stays. Changes the cache."""
        self._count_out(self.pos[index], self.bits[index])
        self._wipe(index)

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> Index:
        """Take the sequence out of its cells at [p0, p1); cells without a sequence become free. Changes the cache.

        The head falls to the first freed cell below it (llama-kv-cache.cpp:399-420). Returns the freed cells.
        """
        if not self._count.get(seq_id):
            return np.empty(0, dtype=np.int64)
        top = self.pos[: self.high_water]
        index = np.flatnonzero(self.seq_has(seq_id) & (top >= p0) & (top < p1))
        if not len(index):
            return index
        word, bit = seq_bit(seq_id)
        self._shrink(seq_id, self.pos[index])
        self.bits[index, word] &= ~bit
        freed = index[~self.bits[index].any(axis=1)]
        self._wipe(freed)
        self._lower_head(freed)
        return freed

    def range_rm(self, p0: int, p1: int) -> Index:
        """Free every cell at [p0, p1) whatever its sequences (seq_rm with seq_id -1). Changes the cache."""
        top = self.pos[: self.high_water]
        index = np.flatnonzero((top >= p0) & (top < p1))
        if len(index):
            self.free(index)
            self._lower_head(index)
        return index

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Add `dst` to the cells of `src` at [p0, p1), which become shared (:455-487). Changes the cache."""
        top = self.pos[: self.high_water]
        index = np.flatnonzero(self.seq_has(src) & ~self.seq_has(dst) & (top >= p0) & (top < p1))
        if len(index):
            word, bit = seq_bit(dst)
            self.bits[index, word] |= bit
            pos = self.pos[index]
            self._grow(dst, len(index), int(pos.min()), int(pos.max()))

    def copy_from(self, other: StreamCells, src: int, dst: int) -> None:
        """Become the cells of `src` in another stream, as `dst`, at the same indices (:511-541). Changes the cache."""
        self.reset()
        index = np.flatnonzero(other.seq_has(src))
        if len(index):
            self.place(index, other.pos[index], [(dst,)] * len(index), other.token[index], other.written_at_op[index])
            self.shift[index] = other.shift[index]
            self.has_shift = bool(self.shift[index].any())
        self.head = other.head

    def seq_keep(self, seq_id: int) -> Index:
        """Leave only this sequence, alone in its cells (llama-kv-cache.cpp:543). Changes the cache."""
        mine = self.seq_has(seq_id)
        freed = np.flatnonzero(~mine & (self.pos[: self.high_water] != -1))
        kept = np.flatnonzero(mine)
        word, bit = seq_bit(seq_id)
        self.bits[kept] = 0
        self.bits[kept, word] = bit
        for s in [s for s in self._count if s != seq_id]:
            del self._count[s]
            self._span.pop(s, None)
        self.bits[freed] = 0
        self._wipe(freed)
        self._lower_head(freed)
        return freed

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> Index:
        """Move the cells of the sequence at [p0, p1) by `shift`, for all their sequences. Changes the cache.

        A cell that gets a negative position is freed. The head becomes the first freed cell, else 0
        (llama-kv-cache.cpp:570-618). Callers handle `shift == 0` and empty ranges, which do nothing.
        """
        top = self.pos[: self.high_water]
        index = np.flatnonzero(self.seq_has(seq_id) & (top >= p0) & (top < p1))
        freed = index[:0]
        if len(index):
            moved = self.pos[index] + np.int32(shift)
            freed = index[moved < 0]
            if len(freed):
                self.free(freed)
                index, moved = index[moved >= 0], moved[moved >= 0]
            self._move(index, moved, self.shift[index] + np.int32(shift))
        self.head = int(freed[0]) if len(freed) else 0
        return freed

    def reset_shift(self) -> int:
        """The pending K-shift has been applied: how many cells had moved. Changes the cache."""
        if not self.has_shift:
            return 0
        n_shifted = int(np.count_nonzero(self.shift))
        self.shift[:] = 0
        self.has_shift = False
        return n_shifted

    # --- private -----------------------------------------------------------------------------------------------------

    def search_start(self, n_tokens: int) -> int:
        """The head, or 0 if enough cells below it are free to search there (llama-kv-cache.cpp:1003)."""
        return 0 if self.head > self.used + 2 * n_tokens or self.head >= self.size else self.head

    def _can_use(self, cell: int, n_swa: int, swa_type: SwaType) -> bool:
        """`_usable` of one cell."""
        if self.pos[cell] == -1 or swa_type == "none":
            return bool(self.pos[cell] == -1)
        members = seq_members(self.bits[cell])
        one = self.pos[cell : cell + 1]
        return len(members) == 1 and bool(masked_swa(n_swa, swa_type, one, self.seq_pos_max(members[0]) + 1)[0])

    def _usable(self, at: int, end: int, n_swa: int, swa_type: SwaType) -> NDArray[np.bool_]:
        pos = self.pos[at:end]
        usable: NDArray[np.bool_] = pos == -1
        if swa_type == "none" or not self._count:
            return usable
        bits = self.bits[at:end]
        for s in self._count:
            only = (bits == self.rows(((s,),))[0]).all(axis=1)
            usable |= only & masked_swa(n_swa, swa_type, pos, self.seq_pos_max(s) + 1)
        return usable

    def _move(self, index: Index, pos: NDArray[np.int32], shift: NDArray[np.int32]) -> None:
        self.pos[index] = pos
        self.shift[index] = shift
        self.has_shift = True
        for s in seqs_in(self.bits[index]):
            self._span.pop(s, None)

    def _wipe(self, index: Index) -> None:
        if not len(index):
            return
        self.pos[index] = -1
        self.bits[index] = 0
        self.token[index] = -1
        self.written_at_op[index] = 0
        self.shift[index] = 0
        self.used -= len(index)
        if self.pos[self.high_water - 1] == -1:
            left = np.flatnonzero(self.pos[: self.high_water] != -1)
            self.high_water = int(left[-1]) + 1 if len(left) else 0

    def _lower_head(self, freed: Index) -> None:
        if len(freed) and int(freed[0]) < self.head:
            self.head = int(freed[0])

    def _bounds(self, seq_id: int) -> tuple[int, int]:
        if not self._count.get(seq_id):
            return -1, -1
        low, high = self._span.get(seq_id, (None, None))
        if low is None or high is None:
            pos = self.pos[: self.high_water][self.seq_has(seq_id)]
            low = int(pos.min()) if low is None else low
            high = int(pos.max()) if high is None else high
            self._span[seq_id] = low, high
        return low, high

    def _grow(self, seq_id: int, n: int, low: int, high: int) -> None:
        had = self._count.get(seq_id, 0)
        self._count[seq_id] = had + n
        if not had:
            self._span[seq_id] = low, high
        elif seq_id in self._span:
            first, last = self._span[seq_id]
            self._span[seq_id] = (
                first if first is None else min(first, low),
                last if last is None else max(last, high),
            )

    def _shrink(self, seq_id: int, pos: NDArray[np.int32]) -> None:
        left = self._count[seq_id] - len(pos)
        if not left:
            del self._count[seq_id]
            self._span.pop(seq_id, None)
            return
        self._count[seq_id] = left
        first, last = self._span.get(seq_id, (None, None))
        self._span[seq_id] = (
            first if first is not None and first < int(pos.min()) else None,
            last if last is not None and last > int(pos.max()) else None,
        )

    def _count_in(self, pos: NDArray[np.int32], bits: NDArray[np.uint64]) -> None:
        for s in seqs_in(bits):
            mine = pos[seq_has(bits, s)]
            self._grow(s, len(mine), int(mine.min()), int(mine.max()))

    def _count_out(self, pos: NDArray[np.int32], bits: NDArray[np.uint64]) -> None:
        for s in seqs_in(bits):
            self._shrink(s, pos[seq_has(bits, s)])
