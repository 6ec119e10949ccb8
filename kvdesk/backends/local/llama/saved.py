"""Saved states of a mirrored memory, the audit that reads them, and the way back after a mismatch.

Owns what is done with whole blobs. Must never know sampling and settings. An audit costs a copy of all K and V.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvdesk.backends.local.llama import state
from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.flush import pending
from kvdesk.backends.local.llama.memory import Memory
from kvdesk.backends.local.llama.transfer import TransferBuffers
from kvdesk.cache.blob import Blob, BlobError, parse_seq_state, parse_state
from kvdesk.cache.snapshot import CacheMap, Verification
from kvdesk.cache.verify import Difference, compare_blob, compare_seq_blob
from kvdesk.errors import EngineError
from kvdesk.protocol import calls

AUDIT_BYTES = 64 << 20
"""An audit copies all K and V of used cells: larger states are not copied unasked."""


class SavedMemory(Memory):
    """A memory whose content can be saved, restored, audited and, after a mismatch, read back from the engine.

    `transfer`: the memory of its states.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.transfer = TransferBuffers()
        self._audited_at = -1  # the operation after which the whole state was found equal last

    # --- states -------------------------------------------------------------------------------------------------------

    def state_size(self) -> int:
        """Bytes that `state_get` would copy: all K and V of used cells. Read-only."""
        return state.state_size(self._ctx)

    def state_seq_size(self, seq_id: int) -> int:
        """Bytes that `state_seq_get` would copy. Read-only. Raises RefusedCall."""
        self._guards.saving()
        self._guards.seq(seq_id)
        return state.seq_state_size(self._ctx, seq_id)

    def state_get(self) -> memoryview:
        """The whole state: positions, sequences, K and V of used cells. Applies what is pending first (`flush`).

        Raises RefusedCall where this memory cannot be saved, EngineError.
        """
        self._guards.saving()
        self.flush()
        return self._read_state()

    def state_set(self, blob: Blob, *, carry: bool = False, known: Sequence[CacheMap] = ()) -> None:
        """Replace everything by a saved state: cells go to the front of their stream. Changes the cache; audits it.

        `carry`: the blob is what this memory holds now, if in another order, so the map keeps token ids and ages.
        `known`: the maps when the blob was taken, to the same end.

        Logits of the last decode are lost. Raises RefusedCall, before anything changed, for a blob that does not fit;
        EngineError when llama.cpp does not take it all the same: the cache is empty then.
        """
        parsed = self._guards.state(blob)
        self._flush_copies()
        self._rows = frozenset()
        self._calling()
        taken = state.set_state(self._ctx, blob)
        record = self.mirror.restore(parsed, carry=carry, known=known)
        if not taken:
            self.clear()
            raise EngineError("llama.cpp did not accept the saved state; the cache is empty now.", self._log.problems())
        found = None if record.ok else Difference("answer of state_set", record.detail, "restored")
        self._after(calls.state_set(len(blob)), found)
        self.audit()

    def state_seq_get(self, seq_id: int) -> memoryview:
        """The state of one sequence. Applies what is pending first (`flush`). Raises RefusedCall, EngineError."""
        self._guards.saving()
        self._guards.seq(seq_id)
        self.flush()
        blob = self.transfer.block(state.seq_state_size(self._ctx, seq_id))
        state.get_seq_state(self._ctx, seq_id, blob)
        self._trust.conclude(self.mirror.operation, self._compare_seq_blob(seq_id, blob))
        return blob.toreadonly()

    def state_seq_set(self, seq_id: int, blob: Blob, tokens: Sequence[int] = (), *, audited: bool = True) -> bool:
        """Put a saved sequence in the place of `seq_id`. Changes the cache; audits it, which costs as much again.

        `tokens`: token ids by position, for the map. False: there is no room, and the sequence is empty now. Logits of
        the last decode are lost. Raises RefusedCall, before anything changed, for a blob that does not fit.
        """
        parsed = self._guards.seq_state(seq_id, blob)
        self._flush_copies()
        self._rows = frozenset()
        self._calling()
        self._log.capture_start()
        taken = state.set_seq_state(self._ctx, seq_id, blob)
        lines = self._log.capture_stop()
        record = self.mirror.restore_seq(seq_id, parsed, tokens)
        found = self._compare_lines(record.slots, lines)
        if found is None and taken != record.ok:
            found = Difference("answer of state_seq_set", str(record.ok), str(taken))
        self._after(f"{calls.state_seq_set(seq_id, len(blob))} -> {taken}", found)
        if audited:
            self.audit()
        return taken

    # --- verification -------------------------------------------------------------------------------------------------

    def audit(self, *, whole: bool = False) -> Verification:
        """Compare every used cell with the engine: positions and sequences of its state, and all spans. Read-only.

        Costs a copy of all K and V of used cells (20 MB in about 2 ms; more without flash attention): above
        AUDIT_BYTES only with `whole`, else spans alone are compared and the map is at best "mirrored". At inspection
        level MAPS each decode also compares every cell with its index. What was compared since the last operation is
        compared again only with `whole`.
        """
        found = self._compare_spans()
        operation = self.mirror.operation
        if found is None and self._known and self._audited_at == operation and not whole:
            pass
        elif found is None and self._known and (whole or state.state_size(self._ctx) <= AUDIT_BYTES):
            found = self._compare_blob()
            self._audited_at = operation if found is None else -1
        elif found is None:
            self._trust.unproven()
            return self.verification
        self._trust.conclude(self.mirror.operation, found)
        return self.verification

    def rebuild(self) -> bool:
        """After a mismatch: take the map from the engine's own state, so that play can go on. Changes the cache.

        The state is saved and restored: cells then lie at the front of their stream, in an order that the state itself
        tells. Logits of the last decode are lost. False where the state is not known or too large.
        """
        if not self._known or state.state_size(self._ctx) > AUDIT_BYTES:
            return False
        self._apply_pending()
        blob = self._read_state()
        self._rows = frozenset()
        try:
            parsed = parse_state(blob, self.mirror.geometry)
        except BlobError:
            return False
        if not state.set_state(self._ctx, blob):
            lib.llama_memory_clear(self._memory, True)
            self.mirror.clear(True)
        else:
            self.mirror.restore(parsed, carry=True)
        self.mirror.rebuilt_at = self.mirror.operation
        self._trust.note(self.mirror.operation, "map rebuilt from the engine's state")
        self._trust.rebuilt(self.mirror.operation)
        self.audit()
        return True

    # --- private ------------------------------------------------------------------------------------------------------

    @property
    def _known(self) -> bool:
        """Whether the layout of this memory's state is known. The geometry of another kind is only a stand-in."""
        return self._guards.knows_states

    def _read_state(self) -> memoryview:
        """The whole state as it is, without what is pending."""
        blob = self.transfer.block(state.state_size(self._ctx))
        state.get_state(self._ctx, blob)
        return blob.toreadonly()

    def _flush_copies(self) -> None:
        """Copies between streams that are still queued would overwrite what is restored now."""
        if any(cache.pending_copies for cache in self.mirror.caches):
            self.flush()

    def _compare_blob(self) -> Difference | None:
        try:
            return compare_blob(self.mirror, parse_state(self._read_state(), self.mirror.geometry))
        except BlobError as error:
            return Difference("layout of the saved state", "known", f"{error} {error.detail}")

    def _compare_seq_blob(self, seq_id: int, blob: Blob) -> Difference | None:
        try:
            return compare_seq_blob(self.mirror, seq_id, parse_seq_state(blob, self.mirror.geometry))
        except BlobError as error:
            return Difference("layout of the saved sequence", "known", f"{error} {error.detail}")

    def _apply_pending(self) -> None:
        """Like `flush`, but asking the engine, not the mirror, where there is room. The mirror does not follow."""
        if not pending(self.mirror):
            return
        last = {s: self.seq_pos_max(s) for s in range(self.mirror.geometry.n_seq_max)}
        seq_id = min(last, key=lambda s: (last[s] >= 0, s))
        self._alone = ()
        self._batch.n_tokens = 1
        self._batch.token[0], self._batch.pos[0], self._batch.logits[0] = 0, last[seq_id] + 1, False
        self._batch.n_seq_id[0], self._batch.seq_id[0][0] = 1, seq_id
        self.stop.remove(self._ctx)
        try:
            lib.llama_decode(self._ctx, self._batch)
        finally:
            self.stop.install(self._ctx)
        lib.llama_memory_seq_rm(self._memory, seq_id, last[seq_id] + 1, -1)
