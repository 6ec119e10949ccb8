"""One attention cache: its streams, placing ubatches, taking them back, and the operations on sequences.

Owns the rules of llama_kv_cache (llama-kv-cache.cpp). Must never know that a second cache or a recurrent part exists.
All `file:line` references are llama.cpp 0c1e57098.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.batch import Ubatch, restored_ubatch
from kvdesk.cache.geometry import SwaType
from kvdesk.cache.memories.cells import Index, Patch, StreamCells, clip_range
from kvdesk.cache.record import FindSlotLine, Placement, SlotState, SpanLine
from kvdesk.cache.seq_bits import seq_bit, seq_count
from kvdesk.cache.snapshot import CacheMap, CacheName, StreamMap
from kvdesk.cache.state.blob import StreamBlob
from kvdesk.values import dataclass, field, replace

_NONE: Index = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Cells found for one ubatch: a list of indices and the number of cells tested for each stream it touches."""

    streams: tuple[int, ...]
    cells: tuple[Index, ...]
    n_tested: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Undo:
    """The cells that one ubatch replaced, and all heads before it (state_t in llama-kv-cache.cpp:753)."""

    slot: Slot
    saved: tuple[Patch, ...]
    heads: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Prepared:
    """A batch that fits: placed at this moment, to be confirmed or taken back."""

    slots: list[Slot] = field(default_factory=list)
    placements: list[tuple[Placement, ...]] = field(default_factory=list)
    states: list[tuple[SlotState, ...]] = field(default_factory=list)
    n_kv: list[int] = field(default_factory=list)
    undo: list[Undo] = field(default_factory=list)

    @property
    def overwrites(self) -> bool:
        """Whether anything was replaced; if not, or with one ubatch, taking back and placing again changes nothing."""
        return any(len(p.overwritten) for placements in self.placements for p in placements)


class AttentionCache:
    """Cells of every stream. `log` collects what the engine prints; `capture` adds a copy of the cells to it.

    The caches of one memory share a log, because the engine's lines have one order.
    """

    def __init__(
        self,
        name: CacheName,
        n_stream: int,
        size: int,
        n_seq_max: int,
        n_swa: int = 0,
        swa_type: SwaType = "none",
        log: list[SlotState] | None = None,
    ) -> None:
        self.name: CacheName = name
        self.streams = [StreamCells(size, n_seq_max) for _ in range(n_stream)]
        self.n_seq_max = n_seq_max
        self.n_swa = n_swa
        self.swa_type: SwaType = swa_type
        self.pending_copies: list[tuple[int, int]] = []
        self.log: list[SlotState] = [] if log is None else log
        self.capture = False

    # --- read-only ---------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return self.streams[0].size

    @property
    def pending_shift(self) -> bool:
        """Whether positions have moved whose K has not been rotated yet (get_has_shift). Read-only."""
        return any(cells.has_shift for cells in self.streams)

    def stream_of(self, seq_id: int) -> int:
        """The stream of a sequence: 0 in a unified cache (seq_to_stream). Read-only."""
        return seq_id if len(self.streams) > 1 else 0

    def cells_of(self, seq_id: int) -> StreamCells:
        """The cells of the stream of a sequence. Read-only."""
        return self.streams[self.stream_of(seq_id)]

    def seq_pos_min(self, seq_id: int) -> int:
        """First position of the sequence, -1 for none. Read-only."""
        return self.cells_of(seq_id).seq_pos_min(seq_id)

    def seq_pos_max(self, seq_id: int) -> int:
        """Last position of the sequence, -1 for none. Read-only."""
        return self.cells_of(seq_id).seq_pos_max(seq_id)

    def find_slot(self, ubatch: Ubatch) -> Slot | None:
        """Cells for an ubatch, None if there are not enough (llama-kv-cache.cpp:898). Read-only but for the log.

        Without streams the tokens go to one stream together; with streams each sequence's share goes to its own.
        """
        self.log.extend(self.slot_state(self.stream_of(s)) for s in ubatch.seq_id_unq)
        streams, found, tested = [], [], []
        split = len(self.streams) > 1
        sequences = ubatch.seq_id_unq if split else ubatch.seq_id_unq[:1]
        n_tokens = ubatch.n_tokens // len(sequences)
        for s in sequences:
            cells, n_tested = self.cells_of(s).find_slot(n_tokens, self.n_swa, self.swa_type)
            if cells is None:
                return None
            streams.append(self.stream_of(s))
            found.append(cells)
            tested.append(n_tested)
        return Slot(tuple(streams), tuple(found), tuple(tested))

    def room_beside_shared(self, seq_id: int, n_ubatch: int) -> int | None:
        """Cells that a window still has for the sequence if some are shared; None: as many as it needs. Read-only.

        A window overwrites what its only sequence cannot see any more, and has room for the window of every sequence
        and an ubatch (llama-kv-cache-iswa.cpp:44). A cell of two sequences is never overwritten (llama-kv-cache.cpp,
        `find_slot`), so the sequence can continue only with a window and an ubatch of free or own cells.
        """
        cells = self.cells_of(seq_id)
        if not self.n_swa or not cells.shares:
            return None
        usable = cells.usable(self.n_swa, self.swa_type)
        own = cells.seq_has(seq_id) & ~cells.shared() & ~usable[: cells.high_water]
        n_usable = int(usable.sum())
        return None if n_usable + int(own.sum()) >= self.n_swa + n_ubatch else n_usable

    def n_shared(self, seq_id: int) -> int:
        """Cells of the sequence that others share. Read-only."""
        cells = self.cells_of(seq_id)
        if not cells.shares or not cells.n_cells(seq_id):
            return 0
        rows = cells.bits[: cells.high_water][cells.seq_has(seq_id)]
        return int((seq_count(rows) > 1).sum())

    def placed(self, seq_id: int, n_tokens: int, without: Collection[int] = ()) -> tuple[int, NDArray[np.intp]]:
        """n_kv and the cells of `seq_id` once it has `n_tokens` more in the first free cells, and what only the
        sequences `without` have is removed. Read-only.
        """
        cells = self.streams[0]
        stay = np.full(cells.bits.shape[1], ~np.uint64(0))
        for gone in without:
            word, bit = seq_bit(gone)
            stay[word] &= ~bit
        used = (cells.bits[: cells.high_water] & stay).any(axis=1)
        free = np.flatnonzero(~used)[:n_tokens]
        behind = np.arange(cells.high_water, cells.high_water + n_tokens - len(free))
        own = np.concatenate((np.flatnonzero(cells.seq_has(seq_id)), free, behind))
        return cells.n_kv_of(1 + int(np.max(np.append(np.flatnonzero(used), own), initial=-1))), own

    def tokens_of(self, seq_id: int) -> list[int]:
        """See `Mirror.tokens_of`. Read-only."""
        cells = self.cells_of(seq_id)
        index = np.flatnonzero(cells.seq_has(seq_id))
        index = index[np.argsort(cells.pos[index], kind="stable")]
        pos, token = cells.pos[index], cells.token[index]
        good = (pos == np.arange(len(pos))) & (token >= 0)
        n = len(good) if good.all() else int(good.argmin())
        if n < len(pos) and n and pos[n] == n - 1:
            n -= 1  # two cells at the last position: it is ambiguous which one counts
        tokens: list[int] = token[:n].tolist()
        return tokens

    def token_at(self, seq_id: int, pos: int) -> int:
        """See `Mirror.token_at`. Read-only."""
        cells = self.cells_of(seq_id)
        index = np.flatnonzero(cells.seq_has(seq_id) & (cells.pos[: cells.high_water] == pos))
        return int(cells.token[index[-1]]) if len(index) else -1

    def freeze(self) -> CacheMap:
        """A copy of all cells for others to look at. Read-only."""
        return CacheMap(self.name, tuple(cells.freeze() for cells in self.streams), self.n_swa, self.swa_type)

    # --- changes the cache: decode -----------------------------------------------------------------------------------

    def update(self) -> int:
        """Apply pending stream copies and K-shifts (llama-kv-cache.cpp:812); how many cells had moved. Changes."""
        self.pending_copies.clear()
        return sum(cells.reset_shift() for cells in self.streams)

    def prepare(self, ubatches: Sequence[Ubatch], written_at_op: int) -> Prepared | None:
        """Place every ubatch; if one does not fit, take all back and return None. Changes the cache.

        Even if it returns None, cells purged from a window are not put back (llama-kv-cache.cpp:786-799).
        """
        done = Prepared()
        for ubatch in ubatches:
            mark = len(self.log)
            slot = self.find_slot(ubatch)
            if slot is None:
                self.take_back(done)
                return None
            saved = tuple(self.streams[s].save(cells) for s, cells in zip(slot.streams, slot.cells, strict=True))
            done.undo.append(Undo(slot, saved, tuple(cells.head for cells in self.streams)))
            done.slots.append(slot)
            done.placements.append(self.apply_ubatch(slot, ubatch, written_at_op))
            done.states.append(tuple(self.log[mark:]))
            done.n_kv.append(self.n_kv(slot))
        return done

    def fits(self, ubatches: Sequence[Ubatch]) -> bool:
        """Whether `prepare` would succeed. Read-only: nothing is logged and everything is put back."""
        log, self.log = self.log, []
        try:
            if len(ubatches) == 1:
                return self.find_slot(ubatches[0]) is not None
            if self.n_swa:
                trial = self.copy()
                return trial.prepare(ubatches, 0) is not None
            heads = [cells.head for cells in self.streams]
            done = self.prepare(ubatches, 0)
            if done is not None:
                self.take_back(done)
            for cells, head in zip(self.streams, heads, strict=True):
                cells.head = head
            return done is not None
        finally:
            self.log = log

    def take_back(self, done: Prepared) -> None:
        """Undo `prepare`, last ubatch first. Changes the cache.

        The engine restores the head of the i-th stream of the ubatch from the saved head of stream i, which is another
        stream's when the ubatch does not start at stream 0 (llama-kv-cache.cpp:797).
        """
        for undo in reversed(done.undo):
            for i, s in enumerate(undo.slot.streams):
                self.streams[s].restore_cells(undo.saved[i])
                self.streams[s].head = self._head_after_undo(undo, i)

    def confirm(self, done: Prepared, ubatches: Sequence[Ubatch], written_at_op: int) -> None:
        """Every ubatch was computed: what the engine does after `prepare` when nothing fails. Changes the cache."""
        if not done.overwrites or len(ubatches) == 1:
            return
        self.take_back(done)
        for i, ubatch in enumerate(ubatches):
            again = self.apply_ubatch(done.slots[i], ubatch, written_at_op)
            done.placements[i] = tuple(
                replace(new, purged=_join([old.purged, new.purged]))
                for old, new in zip(done.placements[i], again, strict=True)
            )
            done.n_kv[i] = self.n_kv(done.slots[i])

    def apply_ubatch(self, slot: Slot, ubatch: Ubatch, written_at_op: int) -> tuple[Placement, ...]:
        """Put tokens into the cells found for them (llama-kv-cache.cpp:1097-1185). Changes the cache.

        A window cell that is replaced takes all older positions of its sequence with it, so that what stays has no gap.
        """
        per_stream = ubatch.n_tokens // len(slot.streams)
        newest_lost: dict[int, int] = {}
        overwritten = []
        for i, s in enumerate(slot.streams):
            cells, index = self.streams[s], slot.cells[i]
            lost = index[cells.pos[index] != -1]
            for c in lost.tolist():
                seq_id = _only_sequence(cells, c)
                newest_lost[seq_id] = max(newest_lost.get(seq_id, -1), int(cells.pos[c]))
            if len(lost):
                cells.free(lost)
            part = slice(i * per_stream, (i + 1) * per_stream)
            cells.place(index, ubatch.pos[part], ubatch.seq_ids[part], ubatch.tokens[part], written_at_op)
            overwritten.append(lost)
        purged = {s: self._purge(s, newest_lost[s]) for s in sorted(newest_lost)}
        for i, s in enumerate(slot.streams):
            self.streams[s].head = int(slot.cells[i][-1]) + 1
        split = len(self.streams) > 1
        return tuple(
            Placement(
                cache=self.name,
                stream=s,
                cells=slot.cells[i],
                overwritten=overwritten[i],
                purged=_join([cells for seq_id, cells in purged.items() if not split or seq_id == s]),
                n_tested=slot.n_tested[i],
            )
            for i, s in enumerate(slot.streams)
        )

    def n_kv(self, slot: Slot) -> int:
        """Cells that attention walks over for an ubatch: the maximum over its streams. Read-only."""
        return max(self.streams[s].n_kv for s in slot.streams)

    # --- changes the cache: operations on sequences ------------------------------------------------------------------

    def clear(self) -> None:
        """Empty all cells, heads to 0 (llama-kv-cache.cpp:369). Changes the cache."""
        for cells in self.streams:
            cells.reset()
            cells.head = 0

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """Remove the sequence (-1: all) from [p0, p1) (llama-kv-cache.cpp:382). Always true. Changes the cache."""
        p0, p1 = clip_range(p0, p1)
        if seq_id >= 0:
            self.cells_of(seq_id).seq_rm(seq_id, p0, p1)
        else:
            for cells in self.streams:
                cells.range_rm(p0, p1)
        return True

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Copy [p0, p1) of `src` to `dst` (llama-kv-cache.cpp:451). Changes the cache.

        Within a stream cells become shared. To another stream everything is copied, whatever the range, and its cells
        are lost. The engine aborts on a partial range, so callers must not ask for one.
        """
        source, target = self.cells_of(src), self.cells_of(dst)
        if source is target:
            if src != dst:
                source.seq_cp(src, dst, *clip_range(p0, p1))
            return
        self.pending_copies.append((self.stream_of(src), self.stream_of(dst)))
        target.copy_from(source, src, dst)

    def seq_keep(self, seq_id: int) -> None:
        """Remove all other sequences from the stream of this one (llama-kv-cache.cpp:543). Changes the cache."""
        self.cells_of(seq_id).seq_keep(seq_id)

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """Move [p0, p1) of the sequence by `shift` positions (llama-kv-cache.cpp:570). Changes the cache."""
        p0, p1 = clip_range(p0, p1)
        if shift != 0 and p0 != p1:
            self.cells_of(seq_id).seq_add(seq_id, p0, p1, shift)

    def restore(self, streams: Sequence[StreamBlob], written_at_op: int, known: CacheMap | None = None) -> bool:
        """Replace everything by the cells of a full state blob, from index 0 on, heads 0. Changes the cache.

        `known`: the map when the blob was taken; token ids and ages come from there, by position and sequences.
        False, and nothing left, if they do not fit (llama-kv-cache.cpp:2468-2523).
        """
        carried = [
            _records_of(known.streams[i], cells.rows(stored.seq_ids), stored) if known else None
            for i, (cells, stored) in enumerate(zip(self.streams, streams, strict=True))
        ]
        self.clear()
        for cells, stored, record in zip(self.streams, streams, carried, strict=True):
            strange = any(s >= self.n_seq_max for ids in stored.seq_ids for s in ids)
            if stored.n_cells > cells.size or strange:
                self.clear()
                return False
            if stored.n_cells:
                token, ages = record or (np.full(stored.n_cells, -1, dtype=np.int32), written_at_op)
                index = np.arange(stored.n_cells, dtype=np.int64)
                cells.place(index, stored.pos, stored.seq_ids, token, ages)
        return True

    def restore_seq(self, seq_id: int, positions: NDArray[np.int32], tokens: Sequence[int], written_at_op: int) -> bool:
        """Place a saved sequence like a batch, in the place of what `seq_id` held. False: it does not fit. Changes."""
        self.seq_rm(seq_id, -1, -1)
        ubatch = restored_ubatch(seq_id, positions, tokens)
        slot = self.find_slot(ubatch) if len(positions) <= self.size else None
        if slot is None:
            return False
        self.apply_ubatch(slot, ubatch, written_at_op)
        return True

    def copy(self) -> AttentionCache:
        """A copy with its own cells, to try something on; the log stays shared. Read-only."""
        other = copy.copy(self)
        other.streams = copy.deepcopy(self.streams)
        other.pending_copies = list(self.pending_copies)
        return other

    # --- private -----------------------------------------------------------------------------------------------------

    def _head_after_undo(self, undo: Undo, i: int) -> int:
        return undo.heads[i]

    def _purge(self, seq_id: int, newest_lost: int) -> Index:
        cells = self.cells_of(seq_id)
        first = cells.seq_pos_min(seq_id)
        if first > newest_lost:
            return _NONE
        return cells.seq_rm(seq_id, *clip_range(first, newest_lost + 1))

    def slot_state(self, stream: int) -> SlotState:
        """The line of the engine for a stream before it looks for cells there. Read-only."""
        cells = self.streams[stream]
        line = FindSlotLine(stream, cells.high_water, cells.used, cells.head, cells.size, self.n_swa)
        spans = tuple(SpanLine(stream, s, cells.seq_pos_min(s), cells.seq_pos_max(s)) for s in cells.sequences)
        return SlotState(self.name, line, spans, cells.freeze() if self.capture else None)


def _only_sequence(cells: StreamCells, cell: int) -> int:
    """The lowest sequence of a cell (llama_kv_cells::seq_get; the engine calls it for cells with exactly one)."""
    for w, word in enumerate(cells.bits[cell].tolist()):
        if word:
            return 64 * w + int(word & -word).bit_length() - 1
    raise AssertionError(f"cell {cell} is used but has no sequence")


def _records_of(
    cells: StreamMap, rows: NDArray[np.uint64], stored: StreamBlob
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Token id and age of each stored cell: of the used cell with its position and sequences, -1 and 0 if none.

    `rows`: the sequences of the stored cells, as in `StreamMap.seq_bits`.
    """
    used = np.flatnonzero(cells.pos != -1)
    ours = np.column_stack((cells.pos[used].astype(np.uint64), cells.seq_bits[used]))
    theirs = np.column_stack((stored.pos.astype(np.uint64), rows))
    if np.array_equal(ours, theirs):
        return cells.token[used], cells.written_at_op[used]
    known: dict[bytes, list[int]] = {}
    for row, cell in zip(ours, used.tolist(), strict=True):
        known.setdefault(row.tobytes(), []).append(cell)
    found = [known.get(row.tobytes(), [-1]) for row in theirs]
    index = np.array([twins.pop(0) if len(twins) > 1 else twins[0] for twins in found], dtype=np.int64)
    there = index >= 0
    return np.where(there, cells.token[index], -1).astype(np.int32), np.where(there, cells.written_at_op[index], 0)


def _join(parts: list[Index]) -> Index:
    return np.concatenate(parts) if parts else _NONE
