"""The mirror: the whole memory of a context, moved by the same rules as the engine's.

Owns the order of steps in llama_context::decode, and the memory classes made of several parts (iswa, dsa, hybrid). An
indexer whose keys lie in the cells of attention (llama_memory_hybrid_idx) has no map. Call its methods after the
engine's, with the same arguments. Must never know the engine itself, only its return codes and blobs.
All `file:line` references are llama.cpp 0c1e57098.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk import values
from kvdesk.cache.batch import (
    Batch,
    BatchProblem,
    Ubatch,
    check_batch,
    first_positions,
    restored_ubatch,
    split_equal,
    split_seq,
    split_simple,
)
from kvdesk.cache.geometry import Geometry
from kvdesk.cache.memories.attention import AttentionCache, Prepared
from kvdesk.cache.memories.compressed import CompressedStates
from kvdesk.cache.memories.recurrent import RecurrentStates
from kvdesk.cache.memories.run import place_run
from kvdesk.cache.record import DecodeRecord, Placement, RestoreRecord, SlotState, UbatchRecord
from kvdesk.cache.snapshot import CacheMap, CacheName, CacheSnapshot, SeqId, SequenceSpan, Verification
from kvdesk.cache.state.blob import StateBlob, parse_seq_state, parse_state
from kvdesk.errors import ContextError
from kvdesk.translation import tr

PosMax = Callable[[int], int]


class Mirror:
    """All caches of one context. `operation` counts the operations so far, decodes included.

    capture   keep a copy of the cells before each ubatch in every record, to compare with a level 3 dump
    """

    def __init__(self, geometry: Geometry) -> None:
        if geometry.facts.kind == "unknown":
            raise ContextError(geometry.facts.reason or tr("This kind of memory is not mirrored."))
        facts, n_seq_max, n_stream = geometry.facts, geometry.n_seq_max, geometry.n_stream
        self.geometry = geometry
        self.operation = 0
        self.capture = False
        self.caches: list[AttentionCache] = []
        self._log: list[SlotState] = []
        n_swa = 0 if geometry.has_window else facts.n_swa
        names: list[CacheName] = ["base" if geometry.has_window else "kv"] * geometry.has_attention
        names += ["indexer"] * geometry.has_indexer
        for name in names:
            self.caches.append(AttentionCache(name, n_stream, geometry.n_cells, n_seq_max, n_swa, log=self._log))
        if geometry.has_window:
            window = n_stream, geometry.n_window, n_seq_max, facts.n_swa, facts.swa_type
            self.caches.append(AttentionCache("window", *window, log=self._log))
        rs = n_seq_max, geometry.n_rs_seq
        self.states = RecurrentStates(geometry.n_states, *rs) if geometry.has_recurrent else None
        self.compressed = CompressedStates(*rs) if facts.kind == "dsv4" else None
        self._unknown: set[int] = set()

    # --- read-only ---------------------------------------------------------------------------------------------------

    @property
    def pending_shift(self) -> bool:
        """Whether positions have moved whose K has not been rotated yet. Read-only."""
        return any(cache.pending_shift for cache in self.caches)

    @property
    def n_kv(self) -> int:
        """Cells attention walks over at the next decode: maximum over streams and caches, 0 without any. Read-only."""
        return max((cells.n_kv for cache in self.caches for cells in cache.streams), default=0)

    def seq_pos_min(self, seq_id: int) -> int:
        """llama_memory_seq_pos_min: of the window cache, and of a hybrid the larger of both parts. Read-only.

        Of DeepSeek V4 the last position: its state cannot go back within the window (llama-kv-cache-dsv4.cpp:1553).
        """
        if self.compressed is not None:
            return self.seq_pos_max(seq_id)
        return max(part.seq_pos_min(seq_id) for part in self._parts(self._asked))

    def seq_pos_max(self, seq_id: int) -> int:
        """llama_memory_seq_pos_max: of the window cache, and of a hybrid the smaller of both parts. Read-only."""
        return min(part.seq_pos_max(seq_id) for part in self._parts(self._asked))

    def removable(self, seq_id: int) -> int | None:
        """How many of the sequence's last tokens can be removed and leave a correct state; None: any part can.

        With a state: only what its last ubatch computed, up to `n_rs_seq` tokens. Read-only.
        """
        part = self.states or self.compressed
        if part is None:
            return None
        return 0 if seq_id in self.unknown else part.removable(seq_id)

    def gone_back(self, seq_id: int) -> bool:
        """Whether tokens of the sequence were removed whose state is put back only by its next decode. Read-only."""
        part = self.states or self.compressed
        return part is not None and bool(part.back[seq_id])

    @property
    def unknown(self) -> set[int]:
        """Sequences with an unknown state, because a decode of theirs was stopped. Read-only."""
        self._unknown = {s for s in self._unknown if self.seq_pos_max(s) >= 0}
        return self._unknown

    def check(self, batch: Batch) -> BatchProblem | None:
        """Why the engine would return -1 for this batch, None if it would not. Read-only."""
        return check_batch(
            batch,
            n_seq_max=self.geometry.n_seq_max,
            seq_pos_min=self.seq_pos_min,
            seq_pos_max=self.seq_pos_max,
            n_pos_per_embd=self.geometry.facts.n_pos_per_embd,
        )

    def predict(self, batch: Batch) -> int:
        """The return code expected of llama_decode: 0, 1 (no room) or -1 (invalid). Read-only."""
        if self.check(batch):
            return -1
        for ubatches in self._splits(batch):
            if ubatches is None or (self.states and not self.states.prepare(ubatches)):
                continue
            if all(cache.fits(ubatches) for cache in self.caches):
                return 0
        return 1

    def snapshot(self, verification: Verification) -> CacheSnapshot:
        """A frozen copy of everything for others to look at. Read-only."""
        return CacheSnapshot(
            operation=self.operation,
            maps=tuple(cache.freeze() for cache in self.caches),
            recurrent=tuple(self._state_spans()),
            sequences=tuple(self._spans()),
            n_kv=self.n_kv,
            n_ctx=self.geometry.n_ctx,
            verification=verification,
        )

    def n_shared(self, seq_id: int) -> int:
        """Cells of the sequence that others share; 0 if there are no cells. Read-only."""
        return self.caches[0].n_shared(seq_id) if self.caches else 0

    def placed(self, seq_id: int, n_tokens: int, without: Collection[int] = ()) -> tuple[int, NDArray[np.intp]]:
        """`AttentionCache.placed` of the whole context, not of a window; (0, none) without cells. Read-only."""
        return self.caches[0].placed(seq_id, n_tokens, without) if self.caches else (0, np.empty(0, np.intp))

    def tokens_of(self, seq_id: int) -> list[int] | None:
        """Token ids at positions 0, 1, 2, ... of the sequence, up to the first hole, doubled position or unknown token.

        As much as an incremental prompt can rely on. None if there are no cells (recurrent states). Read-only.
        """
        return self.caches[0].tokens_of(seq_id) if self.caches else None

    def token_at(self, seq_id: int, pos: int) -> int:
        """The token id at this position of a sequence with cells, -1 if there is none or it is unknown. Read-only."""
        return self.caches[0].token_at(seq_id, pos)

    # --- changes the cache: decode -----------------------------------------------------------------------------------

    def decode(
        self, batch: Batch, rc: int, pos_max: PosMax | None = None, taken_back: Mapping[int, int] | None = None
    ) -> DecodeRecord:
        """Follow a llama_decode call that returned `rc` (llama-context.cpp:1712-1930). Changes the cache.

        rc  0 all placed; 1 no room, attempts are taken back, a window may have lost cells; -1 nothing happened;
            2, -2, -3 stopped while computing: finished ubatches stay, and `pos_max` (llama_memory_seq_pos_max after the
            call) shows how many they were. With earlier states that may be ambiguous; `taken_back` resolves it: by
            sequence, the position from which on the engine says that it removes the failed ubatch.
        """
        self.operation += 1
        problem = self.check(batch)
        if rc == -1 or problem:
            mismatch = ""
            if rc != -1 and problem:
                mismatch = f"the engine took a batch (rc {rc}) that should be refused: {problem.sentence}"
            elif not problem:
                mismatch = "the engine refused a batch (rc -1) that should be valid"
            return DecodeRecord(self.operation, rc, -1 if problem else 0, problem, mismatch=mismatch)
        n_shifted = sum(cache.update() for cache in self.caches)
        record = self._decode_settled(batch, rc, pos_max, taken_back)
        return values.replace(record, n_shifted=n_shifted)

    def decode_each(self, batch: Batch) -> Iterator[DecodeRecord]:
        """Follow a llama_decode call for each token of `batch`, all of which returned 0. Changes the cache.

        The tokens belong to one sequence, at successive positions. Yields one record of all calls where their cells are
        known without a search (`place_run`); else one of each call, the moment the mirror has followed that far.
        """
        if (record := self._place_run(batch)) is not None:
            self.operation += record.n_decodes
            yield record
            return
        tokens, pos, seq_ids, output = batch
        for i in range(len(tokens)):
            part = slice(i, i + 1)
            yield self.decode(Batch(tokens[part], pos[part], seq_ids[part], output[part]), 0)

    # --- changes the cache: operations on sequences ------------------------------------------------------------------

    def clear(self, data: bool = True) -> None:  # noqa: ARG002 - the engine's signature; bytes are not mirrored
        """llama_memory_clear. Changes the cache."""
        self.operation += 1
        for part in self._parts(self.caches):
            part.clear()
        self._forget(range(self.geometry.n_seq_max))

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """llama_memory_seq_rm on [p0, p1). False, and nothing changed, if a recurrent state would be cut. Changes."""
        self.operation += 1
        return self._seq_rm(seq_id, p0, p1)

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """llama_memory_seq_cp of [p0, p1). Changes the cache."""
        self.operation += 1
        for cache in self.caches:
            cache.seq_cp(src, dst, p0, p1)
        if self.states:
            self.states.seq_cp(src, dst)
        if src != dst:
            self._forget([dst])
            self._unknown |= {dst} if src in self._unknown else set()

    def seq_keep(self, seq_id: int) -> None:
        """llama_memory_seq_keep. Changes the cache."""
        self.operation += 1
        for part in self._parts(self.caches):
            part.seq_keep(seq_id)
        if self.compressed is not None:  # it also empties the streams of the others (llama-kv-cache-dsv4.cpp:1524)
            for s in set(range(self.geometry.n_seq_max)) - {seq_id}:
                self._seq_rm(s, -1, -1)

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """llama_memory_seq_add of [p0, p1) by `shift` positions. Changes the cache."""
        self.operation += 1
        for part in self._parts(self.caches):
            part.seq_add(seq_id, p0, p1, shift)

    # --- changes the cache: state ------------------------------------------------------------------------------------

    def restore(self, blob: bytes | StateBlob, *, carry: bool = False, known: Sequence[CacheMap] = ()) -> RestoreRecord:
        """Follow llama_state_set_data. Changes the cache. Raises BlobError, before anything changed, for a bad blob.

        Cells go to the front of their stream in the blob's order and the head to 0 (llama-kv-cache.cpp:2468-2523).
        `carry`: the blob has the current content of this memory, perhaps in another order, so token ids and ages are
        kept. `known`: the maps when an earlier blob was taken.
        """
        state = blob if isinstance(blob, StateBlob) else parse_state(blob, self.geometry)
        self.operation += 1
        unknown = self._unknown
        self._forget(range(self.geometry.n_seq_max))
        if carry:
            known, self._unknown = [cache.freeze() for cache in self.caches], unknown
        for i, (cache, streams) in enumerate(zip(self.caches, state.caches, strict=True)):
            if not cache.restore(streams, self.operation, known[i] if known else None):
                if cache.name == "indexer" and self.geometry.facts.kind != "msa":
                    self.caches[0].clear()
                return RestoreRecord(self.operation, ok=False, detail=f"the {cache.name} cells do not fit")
        if self.states and not self.states.restore(state.states):
            if self.geometry.facts.kind in ("hybrid", "hybrid_idx"):
                self.caches[0].clear()
            return RestoreRecord(self.operation, ok=False, detail="the recurrent states do not fit")
        return RestoreRecord(self.operation, ok=True)

    def restore_seq(self, seq_id: int, blob: bytes | StateBlob, tokens: Sequence[int] = ()) -> RestoreRecord:
        """Follow llama_state_seq_set_data into `seq_id`. Changes the cache. Raises BlobError before anything changed.

        The sequence is removed and its cells are placed like a batch; shared cells become its own
        (llama-kv-cache.cpp:2343-2466). A cache of which the blob has no cell keeps the sequence. `tokens`: the token id
        at each position from 0 on, as far as known.
        """
        state = blob if isinstance(blob, StateBlob) else parse_seq_state(blob, self.geometry)
        self.operation += 1
        self._start_log()
        self._forget([seq_id])
        ok = True
        for cache, streams in zip(self.caches, state.caches, strict=True):
            ok = all(cache.restore_seq(seq_id, one.pos, tokens, self.operation) for one in streams if one.n_cells)
            if not ok:
                if cache.name == "indexer" and self.geometry.facts.kind != "msa":  # llama-kv-cache-dsa.cpp:172
                    self.caches[0].seq_rm(seq_id, -1, -1)
                elif self.geometry.facts.kind == "hybrid_idx":  # all that was to be restored (:286)
                    self._seq_rm(seq_id, -1, -1)
                break
        if ok and self.states:
            ok = self._restore_states(seq_id, [pos for pos, _ in state.states])
        return RestoreRecord(self.operation, ok, tuple(self._log), "" if ok else "the saved cells do not fit")

    # --- private -----------------------------------------------------------------------------------------------------

    def _place_run(self, batch: Batch) -> DecodeRecord | None:
        """`place_run` of a batch as `decode_each` has it; None, with nothing changed, if it is not possible."""
        if self.geometry.has_state or not self.caches or self.capture or not batch.tokens or min(batch.tokens) < 0:
            return None
        seq_id, pos = batch.seq_ids[0][0], batch.pos[0]
        if not 0 <= seq_id < self.geometry.n_seq_max or pos != self.seq_pos_max(seq_id) + 1:
            return None
        return place_run(self.caches, seq_id, pos, batch.tokens, self.operation + 1)

    def _decode_settled(
        self, batch: Batch, rc: int, pos_max: PosMax | None, taken_back: Mapping[int, int] | None
    ) -> DecodeRecord:
        """The rest of a decode, once pending copies and K-shifts have been applied. Changes the cache."""
        self._start_log()
        ubatches, prepared = self._init_batch(batch)
        slots = tuple(self._log)
        expected = 1 if prepared is None else 0
        if prepared is None or ubatches is None:
            mismatch = "" if rc == 1 else f"the engine returned {rc} for a batch that should not fit (rc 1)"
            return DecodeRecord(self.operation, rc, expected, slots=slots, mismatch=mismatch)
        if rc == 1:
            for cache, done in zip(self.caches, prepared, strict=True):
                cache.take_back(done)
            mismatch = "the engine found no room (rc 1) for a batch that should fit"
            return DecodeRecord(self.operation, rc, expected, n_ubatches=len(ubatches), slots=slots, mismatch=mismatch)
        n_done, mismatch = len(ubatches), ""
        if rc == 0:
            for cache, done in zip(self.caches, prepared, strict=True):
                cache.confirm(done, ubatches, self.operation)
            self._begin(ubatches)
            for ubatch in ubatches:
                self._compute(ubatch)
        else:
            n_done, mismatch = self._stopped(prepared, ubatches, pos_max, taken_back)
        records = self._records(prepared, ubatches[:n_done])
        return DecodeRecord(
            operation=self.operation,
            rc=rc,
            expected_rc=expected,
            ubatches=records,
            n_ubatches=len(ubatches),
            slots=slots,
            n_kv=(max((record.n_kv for record in records), default=0),),
            mismatch=mismatch,
        )

    @property
    def _asked(self) -> list[AttentionCache]:
        """The cache that the engine asks for positions: the window, never the indexer."""
        return self.caches[-1:] if self.geometry.has_window else self.caches[:1]

    def _parts(self, caches: Sequence[AttentionCache]) -> list[AttentionCache | RecurrentStates]:
        return [*caches, self.states] if self.states else [*caches]

    def _seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """The state first: if it refuses, nothing changes (llama-memory-hybrid.cpp, seq_rm)."""
        if self.compressed is not None and not self.compressed.seq_rm(
            seq_id, p0, p1, self.seq_pos_max(seq_id) if seq_id >= 0 else -1
        ):
            return False
        return all(part.seq_rm(seq_id, p0, p1) for part in reversed(self._parts(self.caches)))

    def _splits(self, batch: Batch) -> Iterator[list[Ubatch] | None]:
        """The ways the engine tries to cut a batch, in order; None if it cannot (init_batch of each class)."""
        g, n_ubatch = self.geometry, self.geometry.n_ubatch
        if self.states and g.embeddings:
            yield split_seq(batch, n_ubatch)
        elif self.states:
            sequential = not (g.n_stream == 1 and self.caches)
            yield split_equal(batch, n_ubatch, sequential=sequential, n_rs_seq=g.n_rs_seq)
        elif g.has_window:
            if g.kv_unified:
                yield split_simple(batch, n_ubatch)
            yield split_equal(batch, n_ubatch, sequential=not g.kv_unified, n_rs_seq=g.n_rs_seq)
        elif g.n_stream == 1:
            yield split_simple(batch, n_ubatch)
        else:
            yield split_equal(batch, n_ubatch, sequential=True)

    def _init_batch(self, batch: Batch) -> tuple[list[Ubatch] | None, list[Prepared] | None]:
        """Place the batch in the first way that fits; (None, None) if none does (init_batch)."""
        for ubatches in self._splits(batch):
            if ubatches is None or (self.states and not self.states.prepare(ubatches)):
                continue
            prepared: list[Prepared] = []
            for cache in self.caches:
                done = cache.prepare(ubatches, self.operation)
                if done is None:
                    break
                prepared.append(done)
            if len(prepared) == len(self.caches):
                return ubatches, prepared
            for cache, done in zip(self.caches, prepared, strict=False):
                cache.take_back(done)
        return None, None

    def _begin(self, ubatches: Sequence[Ubatch]) -> None:
        if self.compressed is not None:
            self.compressed.begin(ubatches)

    def _compute(self, ubatch: Ubatch) -> None:
        """The states of an ubatch whose cells are placed."""
        if self.states:
            self.states.find_slot(ubatch)
            self.states.compute(ubatch)
        if self.compressed is not None:
            self.compressed.compute(ubatch)

    def _forget(self, sequences: Iterable[int]) -> None:
        """What these sequences hold now has no earlier states, and is known."""
        if self.compressed is not None:
            self.compressed.forget(sequences)
        self._unknown = self._unknown.difference(sequences)

    def _stopped(
        self,
        prepared: Sequence[Prepared],
        ubatches: Sequence[Ubatch],
        pos_max: PosMax | None,
        taken_back: Mapping[int, int] | None,
    ) -> tuple[int, str]:
        """Find how many ubatches were finished when a decode stopped; (that number, "" or why it is not known).

        The engine takes the failing ubatch out again by seq_rm from its first position on, for the first sequence of
        each token only; a recurrent state refuses that, or goes back to an earlier state that the ubatch may not have
        left (llama-context.cpp:1895-1921). A code of -2 can also come before the first ubatch was placed: that differs
        only where the ubatch would have replaced cells of a window.
        """
        for cache, done in zip(self.caches, prepared, strict=True):
            cache.take_back(done)
        sequences = range(self.geometry.n_seq_max)
        seen = [pos_max(s) for s in sequences] if pos_max else None
        waiting = {s for s in sequences if self.gone_back(s)}
        self._begin(ubatches)
        for i, ubatch in enumerate(ubatches):
            for cache, done in zip(self.caches, prepared, strict=True):
                done.placements[i] = cache.apply_ubatch(done.slots[i], ubatch, self.operation)
                done.n_kv[i] = cache.n_kv(done.slots[i])
            self._compute(ubatch)
            first = first_positions(ubatch)
            if taken_back is None or first == taken_back:
                before = self._copies()
                for seq_id in sorted(first):
                    self._seq_rm(seq_id, first[seq_id], -1)
                if seen is not None and [self.seq_pos_max(s) for s in sequences] == seen:
                    if self.geometry.has_state:
                        self._unknown |= {*ubatch.seq_id_unq, *(s for s in waiting if not self.gone_back(s))}
                    return i, ""
                self.caches, self.states, self.compressed = before
        if self.geometry.has_state:
            self._unknown |= {s for ubatch in ubatches for s in ubatch.seq_id_unq}
        return len(ubatches), "it is not known how many parts of the batch were computed before it stopped"

    def _copies(self) -> tuple[list[AttentionCache], RecurrentStates | None, CompressedStates | None]:
        caches = [cache.copy() for cache in self.caches]
        return caches, self.states.copy() if self.states else None, copy.deepcopy(self.compressed)

    def _records(self, prepared: Sequence[Prepared], ubatches: Sequence[Ubatch]) -> tuple[UbatchRecord, ...]:
        records = []
        for i, ubatch in enumerate(ubatches):
            placements: tuple[Placement, ...] = tuple(p for done in prepared for p in done.placements[i])
            slots = tuple(state for done in prepared for state in done.states[i])
            n_kv = max((done.n_kv[i] for done in prepared), default=0)
            records.append(UbatchRecord(ubatch.index, placements, slots, n_kv))
        return tuple(records)

    def _start_log(self) -> None:
        self._log.clear()
        for cache in self.caches:
            cache.capture = self.capture

    def _restore_states(self, seq_id: int, positions: Sequence[int]) -> bool:
        assert self.states is not None
        self.states.seq_rm(seq_id, -1, -1)
        if not positions:
            return True
        if len(positions) <= self.states.size and self.states.find_slot(restored_ubatch(seq_id, positions)):
            return True
        if self.geometry.facts.kind in ("hybrid", "hybrid_idx"):
            self.caches[0].seq_rm(seq_id, -1, -1)
        return False

    def _spans(self) -> list[SequenceSpan]:
        spans = []
        for s in self._present():
            n_cells = self.caches[0].cells_of(s).n_cells(s) if self.caches else 0
            spans.append(SequenceSpan(SeqId(s), self.seq_pos_min(s), self.seq_pos_max(s), n_cells, self.n_shared(s)))
        return [span for span in spans if span.pos_max >= 0 or span.n_cells]

    def _present(self) -> list[int]:
        """Sequences that may hold something, ascending."""
        if self.states:
            return list(range(self.geometry.n_seq_max))
        return sorted({s for cache in self.caches for cells in cache.streams for s in cells.sequences})

    def _state_spans(self) -> list[SequenceSpan]:
        if not self.states:
            return []
        spans = []
        for s in range(self.geometry.n_seq_max):
            if owners := self.states.n_owners(s):
                low, high = self.states.seq_pos_min(s), self.states.seq_pos_max(s)
                spans.append(SequenceSpan(SeqId(s), low, high, 1, int(owners > 1)))
        return spans
