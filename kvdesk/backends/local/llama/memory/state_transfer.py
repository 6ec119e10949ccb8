"""Saves and restores the state of a mirrored memory: of the whole cache, or of one sequence.

Must never know the purpose of a state, sampling and settings. Each call is guarded, mirrored and compared.
"""

from collections.abc import Sequence

from kvdesk.backends.local.llama.binding import engine_log
from kvdesk.backends.local.llama.memory import state
from kvdesk.backends.local.llama.memory.auditor import Auditor
from kvdesk.backends.local.llama.memory.mirrored_memory import MirroredMemory
from kvdesk.backends.local.llama.memory.verifier import Verifier
from kvdesk.cache.snapshot import CacheMap
from kvdesk.cache.state.blob import Blob, BlobError, parse_seq_state
from kvdesk.cache.verify import Difference, compare_seq_blob
from kvdesk.errors import EngineError
from kvdesk.protocol import calls
from kvdesk.translation import tr


class StateTransfer:
    """Saves and restores what `memory` holds."""

    def __init__(self, memory: MirroredMemory, auditor: Auditor, verifier: Verifier) -> None:
        self._memory = memory
        self._guards = memory.guards
        self._auditor = auditor
        self._verifier = verifier

    def size(self) -> int:
        """Bytes that `get` would copy: all K and V of used cells. Read-only."""
        return state.state_size(self._memory.ctx)

    def seq_size(self, seq_id: int) -> int:
        """Bytes that `seq_get` would copy. Read-only. Raises RefusedCall."""
        self._guards.saving()
        self._guards.seq(seq_id)
        return state.seq_state_size(self._memory.ctx, seq_id)

    def get(self) -> memoryview:
        """The whole state: positions, sequences, K and V of used cells. Applies pending operations first (`flush`).

        Raises RefusedCall if this memory cannot be saved, EngineError.
        """
        self._guards.saving()
        self._memory.flush()
        return self._auditor.read_state()

    def set(self, blob: Blob, *, carry: bool = False, known: Sequence[CacheMap] = ()) -> None:
        """Replace everything with a saved state: cells go to the front of their stream. Changes the cache and audits
        it.

        `carry`: the blob has the current content, perhaps in another order, so the map keeps token ids and ages.
        `known`: the maps when the blob was taken, for the same purpose.

        Logits of the last decode are lost. Raises RefusedCall, before any change, for a blob that does not fit;
        EngineError if llama.cpp still does not accept it, and the cache is then empty.
        """
        memory = self._memory
        parsed = self._guards.state(blob)
        self._flush_copies()
        memory.forget_logits()
        memory.before_call()
        taken = state.set_state(memory.ctx, blob)
        record = memory.mirror.restore(parsed, carry=carry, known=known)
        if not taken:
            memory.clear()
            problems = engine_log().problems()
            raise EngineError(tr("llama.cpp did not accept the saved state; the cache is empty now."), problems)
        found = None if record.ok else Difference("answer of state_set", record.detail, "restored")
        memory.after_call(calls.state_set(len(blob)), found)
        self._auditor.audit()

    def seq_get(self, seq_id: int) -> memoryview:
        """The state of one sequence. Applies pending operations first (`flush`). Raises RefusedCall, EngineError."""
        self._guards.saving()
        self._guards.seq(seq_id)
        memory = self._memory
        memory.flush()
        blob = state.room(state.seq_state_size(memory.ctx, seq_id))
        state.get_seq_state(memory.ctx, seq_id, blob)
        self._verifier.conclude(memory.mirror.operation, self._compare_seq(seq_id, blob))
        return blob.toreadonly()

    def seq_set(self, seq_id: int, blob: Blob, tokens: Sequence[int] = (), *, audited: bool = True) -> bool:
        """Replace the sequence `seq_id` with a saved one. Changes the cache and audits it, which takes as long again.

        `tokens`: token ids by position, for the map. False: there is no room, and the sequence is empty now. Logits of
        the last decode are lost. Raises RefusedCall, before anything changed, for a blob that does not fit.
        """
        memory, log = self._memory, engine_log()
        parsed = self._guards.seq_state(seq_id, blob)
        self._flush_copies()
        memory.forget_logits()
        memory.before_call()
        log.capture_start()
        taken = state.set_seq_state(memory.ctx, seq_id, blob)
        lines = log.capture_stop()
        record = memory.mirror.restore_seq(seq_id, parsed, tokens)
        found = memory.compare_lines(record.slots, lines)
        if found is None and taken != record.ok:
            found = Difference("answer of state_seq_set", str(record.ok), str(taken))
        memory.after_call(f"{calls.state_seq_set(seq_id, len(blob))} -> {taken}", found)
        if audited:
            self._auditor.audit()
        return taken

    # --- private ------------------------------------------------------------------------------------------------------

    def _flush_copies(self) -> None:
        """Copies between streams that are still queued would overwrite what is restored now."""
        if any(cache.pending_copies for cache in self._memory.mirror.caches):
            self._memory.flush()

    def _compare_seq(self, seq_id: int, blob: Blob) -> Difference | None:
        mirror = self._memory.mirror
        try:
            return compare_seq_blob(mirror, seq_id, parse_seq_state(blob, mirror.geometry))
        except BlobError as error:
            return Difference("layout of the saved sequence", "known", f"{error} {error.detail}")
