"""The memory of one llama.cpp context with its mirror: each engine call is guarded, mirrored and compared.

Owns decodes and operations on sequences, as single calls. Must never know saved states, sampling and settings
(`state_transfer`, `context`).
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kvdesk.backends.local.llama.binding import StopFlag, engine_log, lib
from kvdesk.backends.local.llama.memory.batch_buffer import BatchBuffer
from kvdesk.backends.local.llama.memory.decodes import DecodeKind, MirroredDecode, PendingDecode, joined
from kvdesk.backends.local.llama.memory.flush import pending, plan_flush
from kvdesk.backends.local.llama.memory.guards import Guards
from kvdesk.backends.local.llama.memory.verifier import Verifier
from kvdesk.backends.local.llama.traits import Traits
from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import parse_log, render_lines
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord, SlotState
from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.cache.verify import Difference, compare_lines, compare_spans
from kvdesk.errors import DecodeError, RefusedCall
from kvdesk.protocol import calls
from kvdesk.translation import tr

SETTLE_S = 0.25
"""Seconds that decodes of answers may wait before the mirror follows and they are published."""
_NO_ROWS, _ROW_0 = frozenset[int](), frozenset({0})


class MirroredMemory:
    """The memory of `ctx`, a `llama_context *` that outlives it.

    inspect       what the engine prints (LLAMA_KV_CACHE_DEBUG): 0 nothing, 1 lines, 3 every cell
    stop          stops a decode from another thread
    on_decoded    gets the decodes that the mirror has followed, in order, before their cells change again
    on_operation  gets every other operation: its number, the call in words, wall time in ms
    rows          batch entries of the last decode that have logits
    last_record   the mirror's record of the latest decode that it has followed
    n_threads     for decodes of one token; `n_threads_batch`: for larger ones
    """

    def __init__(
        self, ctx: Any, traits: Traits, verifier: Verifier, inspect: int, stop: StopFlag, n_threads: tuple[int, int]
    ) -> None:
        self.ctx = ctx
        self.stop = stop
        self.guards = Guards(traits, lambda: self.mirror)
        self.on_decoded: Callable[[Sequence[MirroredDecode]], None] | None = None
        self.on_operation: Callable[[int, str, float], None] | None = None
        self.rows: frozenset[int] = frozenset()
        self.last_record = DecodeRecord(0, 0, 0)
        self.n_threads, self.n_threads_batch = n_threads
        self._memory = lib.llama_get_memory(ctx)
        self._log = engine_log()
        self._inspect = inspect
        self._verifier = verifier
        self._n_positions = traits.model.n_positions
        self._mirror = Mirror(traits.geometry)
        self._mirror.capture = inspect > 1
        self._unsettled: list[PendingDecode] = []
        self._unpublished: list[MirroredDecode] = []
        self._settle_at = self._called_at = 0.0
        self._batch = BatchBuffer(int(lib.llama_n_batch(ctx)), int(lib.llama_n_seq_max(ctx)))
        self._spare = [0] * traits.geometry.n_stream  # cells that are surely free for a sequence of the stream
        self._has_state = traits.geometry.has_state
        self._small_window = 0 < traits.geometry.n_window < traits.geometry.n_cells
        stop.install(ctx)

    # --- read-only ----------------------------------------------------------------------------------------------------

    @property
    def mirror(self) -> Mirror:
        """The cells as the engine has them now."""
        self.settle()
        return self._mirror

    @property
    def verification(self) -> Verification:
        """How far the map can currently be trusted."""
        self.settle()
        return self._verifier.verification

    def changed_since(self, operation: int) -> bool:
        """Whether another operation followed this one. Read-only."""
        return bool(self._unsettled) or self._mirror.operation != operation

    def snapshot(self) -> CacheSnapshot:
        """The cells of the mirror, and how far they are proven. Read-only."""
        return self.mirror.snapshot(self.verification)

    def totals(self) -> tuple[int, int, int]:
        """Used cells, high-water mark and n_kv of the whole cache (the largest stream's mark). Read-only."""
        streams = [cells for cache in self.mirror.caches for cells in cache.streams]
        used, high_water = sum(c.used for c in streams), max((c.high_water for c in streams), default=0)
        return used, high_water, self.mirror.n_kv

    def free_cells(self, seq_id: int) -> int:
        """Cells a batch of the sequence can still take in every cache. Read-only."""
        if not self._mirror.caches:
            return self._mirror.geometry.n_ctx_seq
        cache, windows = self._mirror.caches[0], self._mirror.caches[-1:] if self._small_window else []
        stream, cells = cache.stream_of(seq_id), cache.cells_of(seq_id)
        waiting = sum(cache.stream_of(ids[0]) == stream for w in self._unsettled for ids in w.batch.seq_ids)
        free = cells.size - cells.used - waiting
        if any(window.cells_of(seq_id).shares for window in windows):
            self.settle()
            n_ubatch = self._mirror.geometry.n_ubatch
            rooms = [window.room_beside_shared(seq_id, n_ubatch) for window in windows]
            free = min([free, *(room for room in rooms if room is not None)])
        return free

    def has_room(self, seq_id: int, n_tokens: int) -> bool:
        """Whether `free_cells` is at least this many. Read-only."""
        stream = seq_id if len(self._spare) > 1 else 0
        if self._spare[stream] >= n_tokens:
            return True
        free = self.free_cells(seq_id)
        self._spare[stream] = 0 if self._small_window else free
        return free >= n_tokens

    def removable(self, seq_id: int) -> int:
        """How many of the sequence's last tokens can be removed now and leave a correct state. Read-only.

        With a recurrent state: tokens of its last ubatch but one, up to `n_rs_seq`; 0 after a removal, until its next
        decode.
        """
        n = self.mirror.removable(seq_id)
        return self.mirror.seq_pos_max(seq_id) + 1 if n is None else n

    def seq_pos_min(self, seq_id: int) -> int:
        """Smallest position the engine holds for the sequence, -1 when empty. Read-only. Raises RefusedCall."""
        self.guards.seq(seq_id)
        return int(lib.llama_memory_seq_pos_min(self._memory, seq_id))

    def seq_pos_max(self, seq_id: int) -> int:
        """Largest position the engine holds for the sequence, -1 when empty. Read-only. Raises RefusedCall."""
        self.guards.seq(seq_id)
        return int(lib.llama_memory_seq_pos_max(self._memory, seq_id))

    # --- decode: changes the cache ------------------------------------------------------------------------------------

    def decode(self, batch: Batch, kind: DecodeKind = "decode") -> PendingDecode:
        """Run the batch. Changes the cache. `kind`: its purpose, reported with its measurement.

        rc 0: every token is in the cache. rc 1: no slot, nothing was placed. rc 2: stopped; finished ubatches stay.
        A pending K-shift is applied first and cannot be stopped, because half a shift would later rotate K twice. If it
        cannot be applied alone, the whole decode cannot be stopped.

        Raises RefusedCall for a batch that would abort the process, DecodeError for any other return code.
        """
        self.guards.batch(batch)
        unstoppable = False
        if not self._unsettled and self._mirror.pending_shift:  # a decode that waits has applied it
            unstoppable = plan_flush(self._mirror, self._n_positions) is None
            if not unstoppable:
                self.flush()
        decoded = self._decode_unstoppably(batch, kind) if unstoppable else self._decode(batch, kind)
        if decoded.rc not in (0, 1) and self._mirror.geometry.n_rs_seq:
            self._drop_unknown()
        if decoded.rc < 0:
            problem = self.last_record.problem
            why = (
                problem.sentence
                if problem
                else tr("llama.cpp could not process a batch (code {rc}).").format(rc=decoded.rc)
            )
            raise DecodeError(decoded.rc, why, self._log.problems())
        if decoded.rc == 0:
            if len(batch.tokens) == 1 and batch.output[0]:
                self.rows = _ROW_0
            else:
                self.rows = frozenset(i for i, wanted in enumerate(batch.output) if wanted)
        return decoded

    def flush(self) -> None:
        """Apply pending K-shifts and copies between streams now. Changes K and V, and no position.

        Decodes a batch that does not fit, or one token that is removed again; logits of the last decode are lost.
        Raises RefusedCall if neither is possible.
        """
        if not pending(self.mirror):
            return
        plan = plan_flush(self.mirror, self._n_positions)
        if plan is None:
            raise RefusedCall(
                tr("Moved positions wait for the next decode, and there is no free sequence to do one in.")
            )
        self._decode_unstoppably(plan.batch, "flush")
        if plan.rc == 0:
            self.seq_rm(plan.seq_id, plan.p0, -1)

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Threads for decodes of one token and of more."""
        if (n_threads, n_threads_batch) != (self.n_threads, self.n_threads_batch):
            self.n_threads, self.n_threads_batch = n_threads, n_threads_batch
            lib.llama_set_n_threads(self.ctx, n_threads, n_threads_batch)

    def close(self) -> None:
        """Free what belongs to the memory; the owner frees the context."""
        self._batch.close()

    # --- operations on sequences: change the cache ------------------------------------------------------------

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """Remove the cells of `seq_id` in `[p0, p1)`; -1 means all sequences, from 0, to the end. Changes the cache.

        False if the memory cannot remove a part (recurrent states); nothing was removed then. The same if llama.cpp
        would return to an earlier state that it has not kept (`removable`), which it does not know.
        Raises RefusedCall for a sequence outside [-1, n_seq_max).
        """
        if seq_id != -1:
            self.guards.seq(seq_id)
        if self._has_state and seq_id != -1:
            p0, p1, stale = self._whole_state(seq_id, p0, p1)
            if stale:
                return False
        self.before_call()
        done = bool(lib.llama_memory_seq_rm(self._memory, seq_id, p0, p1))
        mirrored = self.mirror.seq_rm(seq_id, p0, p1)
        found = Difference("answer of seq_rm", str(mirrored), str(done)) if done != mirrored else None
        self.after_call(f"{calls.seq_rm(seq_id, p0, p1)} -> {done}", found)
        return done

    def seq_cp(self, src: int, dst: int, p0: int = -1, p1: int = -1) -> None:
        """Let `dst` also have the cells of `src` in `[p0, p1)`. Changes the cache.

        In a unified cache they become shared. With streams, K and V are copied at the next decode, and the cells of
        `dst` are lost. Raises RefusedCall for a part of a sequence between streams or of a recurrent state.
        """
        self.guards.seq_cp(src, dst, p0, p1)
        if src != dst:
            self._forget_back(dst)
        if self.mirror.geometry.n_stream > 1 or src == dst:
            p0, p1 = -1, -1  # the same, and never mistaken for a part (llama-kv-cache.cpp:493, -dsv4.cpp:1513)
        self.before_call()
        lib.llama_memory_seq_cp(self._memory, src, dst, p0, p1)
        self.mirror.seq_cp(src, dst, p0, p1)
        self.after_call(calls.seq_cp(src, dst, p0, p1))

    def seq_keep(self, seq_id: int) -> None:
        """Remove all other sequences from the stream of this one. Changes the cache. Raises RefusedCall."""
        self.guards.seq(seq_id)
        for other in range(self._mirror.geometry.n_seq_max):
            if other != seq_id:
                self._forget_back(other)
        self.before_call()
        lib.llama_memory_seq_keep(self._memory, seq_id)
        self.mirror.seq_keep(seq_id)
        self.after_call(calls.seq_keep(seq_id))

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """Move the positions of `seq_id` in `[p0, p1)` by `shift`. Changes the cache.

        Shared cells move for all their sequences; cells with a negative position are freed. K is rotated before the
        next decode. Raises RefusedCall if the rotation would abort, crash or be wrong.
        """
        self.guards.seq_add(seq_id, p0, p1, shift)
        self.before_call()
        lib.llama_memory_seq_add(self._memory, seq_id, p0, p1, shift)
        self.mirror.seq_add(seq_id, p0, p1, shift)
        self.after_call(calls.seq_add(seq_id, p0, p1, shift))

    def clear(self, *, data: bool = True) -> None:
        """Remove every cell of every sequence; `data` also zeroes K and V. Changes the cache."""
        self.before_call()
        lib.llama_memory_clear(self._memory, data)
        self.mirror.clear(data)
        self.after_call(calls.clear(data=data))

    # --- for the mirror -----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let the mirror follow pending decodes, and compare each with what the engine printed.

        Single tokens are followed in groups: right after a decode the processor's caches are full of weights, so the
        first of a group takes five times as long as the second. Readers of `mirror`, `verification` or `snapshot`
        always see a settled state.
        """
        waiting, self._unsettled = self._unsettled, []
        for decode in joined(waiting):
            self._follow(decode)

    def publish(self) -> None:
        """Pass all decodes so far to `on_decoded`; in groups too, for the reason in `settle`."""
        self.settle()
        decodes, self._unpublished = self._unpublished, []
        if decodes and self.on_decoded is not None:
            self.on_decoded(decodes)

    # --- for saved states and audits ----------------------------------------------------------------------------------

    def before_call(self) -> None:
        """Call before an operation that `after_call` reports: earlier decodes are published."""
        self.publish()
        self._called_at = time.perf_counter()

    def after_call(self, call: str, found: Difference | None = None) -> None:
        """Call after an operation was made and mirrored: record it and compare the positions of all sequences."""
        self._spare = [0] * len(self._spare)
        ms = (time.perf_counter() - self._called_at) * 1e3
        self._verifier.note(self.mirror.operation, call)
        self._verifier.conclude(self.mirror.operation, found or self.compare_positions())
        if self.on_operation is not None:
            self.on_operation(self._mirror.operation, call, ms)

    def compare_lines(self, expected: Sequence[SlotState], lines: Sequence[bytes]) -> Difference | None:
        """Compare the mirror's slot searches with what the engine printed; nothing if it prints nothing."""
        if not self._inspect:
            return None
        if not self._mirror.capture and lines == render_lines(expected):
            return None
        dumps = parse_log(line.decode("utf-8", "replace") for line in lines)
        if self._mirror.capture and any(dump.position_map is None or dump.sequence_map is None for dump in dumps):
            return Difference("the engine's maps", "expected", "not printed")
        return compare_lines(expected, dumps)

    def compare_positions(self) -> Difference | None:
        """The cheap check after every operation: pos_min and pos_max of every sequence. Read-only."""
        return compare_spans(self.mirror, self.seq_pos_min, self.seq_pos_max)

    def forget_logits(self) -> None:
        """The logits of the last decode are lost; sampling from them would abort."""
        self.rows = _NO_ROWS

    def apply_pending_unmirrored(self) -> None:
        """Like `flush`, but asks the engine for room instead of the mirror, which does not follow.

        Changes K and V, and no position.
        """
        if not pending(self.mirror):
            return
        last = {s: self.seq_pos_max(s) for s in range(self._mirror.geometry.n_seq_max)}
        seq_id = min(last, key=lambda s: (last[s] >= 0, s))
        self._batch.fill(Batch.of(seq_id, last[seq_id] + 1, (0,)))
        self.stop.remove(self.ctx)
        try:
            lib.llama_decode(self.ctx, self._batch.raw)
        finally:
            self.stop.install(self.ctx)
        lib.llama_memory_seq_rm(self._memory, seq_id, last[seq_id] + 1, -1)

    def clear_unmirrored(self) -> None:
        """Remove every cell. Changes the cache; the mirror does not follow."""
        lib.llama_memory_clear(self._memory, True)

    # --- private ------------------------------------------------------------------------------------------------------

    def _whole_state(self, seq_id: int, p0: int, p1: int) -> tuple[int, int, bool]:
        """The range for `seq_rm` of a sequence with a state, with open ends if it covers all; and whether llama.cpp
        would return to an earlier state that it does not keep.

        Only open ends make llama.cpp forget all of it (llama-memory-recurrent.cpp:178, llama-kv-cache-dsv4.cpp:1459).
        """
        last = self.mirror.seq_pos_max(seq_id)
        if p1 > last:
            p1 = -1
        if p0 <= 0 and p1 < 0:
            return -1, -1, False
        n = last - p0 + 1
        stale = p1 < 0 < n <= self._mirror.geometry.n_rs_seq and n > (self._mirror.removable(seq_id) or 0)
        return p0, p1, stale

    def _drop_unknown(self) -> None:
        """Remove sequences of a failed decode for which llama.cpp relies on an earlier state that may not exist. For a
        shared cell it relies on it for one of them, and would abort at the next saved state
        (llama-memory-recurrent.cpp:797).
        """
        for seq_id in sorted(self.mirror.unknown):
            self._forget_back(seq_id)

    def _forget_back(self, seq_id: int) -> None:
        """Remove a whole sequence that is replaced or left out, if its state is still to be put back. llama.cpp would
        apply that to the next state in its place (llama-memory-recurrent.cpp:245-309).
        """
        if self.mirror.gone_back(seq_id):
            self.seq_rm(seq_id, -1, -1)

    def _decode(self, batch: Batch, kind: DecodeKind) -> PendingDecode:
        """llama_decode of a checked batch. Changes the cache."""
        n = len(batch.tokens)
        self._batch.fill(batch)
        if len(self._spare) == 1:
            self._spare[0] -= n
        else:
            for ids in batch.seq_ids:
                self._spare[ids[0]] -= 1
        self.rows = _NO_ROWS
        self._log.capture_start()
        start = time.perf_counter()
        rc: int = lib.llama_decode(self.ctx, self._batch.raw)
        now = time.perf_counter()
        lines = self._log.capture_stop()
        ms, at_s = (now - start) * 1e3, time.monotonic()
        waits = rc == 0 and now < self._settle_at and kind == "decode" and self._inspect <= 1
        last = None if waits else {s: self.seq_pos_max(s) for ids in batch.seq_ids for s in ids}
        taken_back = self._log.taken_back if rc not in (0, 1) else None
        decoded = PendingDecode(batch, kind, rc, (ms,), (at_s,), lines, last, taken_back)
        self._unsettled.append(decoded)
        if not waits:
            self.publish()
            self._settle_at = now + SETTLE_S
        return decoded

    def _decode_unstoppably(self, batch: Batch, kind: DecodeKind) -> PendingDecode:
        """`_decode` that cannot be stopped, because half a K-shift would be applied again."""
        self.stop.remove(self.ctx)
        try:
            return self._decode(batch, kind)
        finally:
            self.stop.install(self.ctx)

    def _follow(self, decode: PendingDecode) -> None:
        """Move the mirror like the engine, and compare."""
        batch, kind, rc, ms, at_s, lines, last, taken_back = decode
        appends = decode.each and kind == "decode" and not self._small_window  # fills empty cells only
        if not appends:
            self.publish()
        records: Iterable[DecodeRecord]
        if decode.each:
            records = self._mirror.decode_each(batch)
        else:
            records = (self._mirror.decode(batch, rc, self.seq_pos_max, taken_back),)
        n = 0
        for record in records:
            part = slice(n, n + record.n_decodes)
            n = part.stop
            if record.n_decodes < len(ms):
                tokens = Batch.of(batch.seq_ids[0][0], batch.pos[part.start], batch.tokens[part], "all")
                n_lines = len(lines) if n == len(ms) else sum(1 + len(slot.spans) for slot in record.slots)
                self._compared(record, tokens, lines[:n_lines], last if n == len(ms) else None)
                lines = lines[n_lines:]
                mirrored = MirroredDecode(record, tokens, kind, ms[part], at_s[part])
            else:
                self._compared(record, batch, lines, last)
                mirrored = MirroredDecode(record, batch, kind, ms, at_s)
            self._unpublished.append(mirrored)
            if not appends:
                self.publish()

    def _compared(
        self, record: DecodeRecord, batch: Batch, lines: Sequence[bytes], last: Mapping[int, int] | None
    ) -> None:
        """Compare the mirror's last step with what the engine printed, and record both."""
        self.last_record = record
        self._verifier.note(record.last_operation, f"rc {record.rc}{', one by one' * (record.n_decodes > 1)}", batch)
        if not self._inspect:
            self._verifier.unproven()
            return
        found = self.compare_lines(record.slots, lines)
        if found is None and record.mismatch:
            found = Difference(record.mismatch, f"rc {record.expected_rc}", f"rc {record.rc}")
        for s, theirs in last.items() if found is None and last else ():
            ours = self._mirror.seq_pos_max(s)
            if found is None and ours != theirs:
                found = Difference(f"last position of sequence {s}", str(ours), str(theirs))
        self._verifier.conclude(record.last_operation, found)
