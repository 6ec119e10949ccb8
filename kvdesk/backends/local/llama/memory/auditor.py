"""Audits a mirrored memory against the engine's own state, and recovers it after a mismatch.

Must never know sampling, settings and the purpose of saved states.
"""

from kvdesk.backends.local.llama.memory import state
from kvdesk.backends.local.llama.memory.mirrored_memory import MirroredMemory
from kvdesk.backends.local.llama.memory.verifier import Verifier
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.cache.state.blob import BlobError, parse_cells, parse_state, row_words
from kvdesk.cache.verify import Difference, compare_blob
from kvdesk.errors import EngineError
from kvdesk.translation import tr

AUDIT_BYTES = 64 << 20
"""Larger states, in bytes, are copied only when the user asks for an audit."""
_TENSORS_HEAD = 8
"""Bytes between the table of cells and the first tensor: v_trans and the number of layers."""


class Auditor:
    """Audits `memory` and reports to `verifier`."""

    def __init__(self, memory: MirroredMemory, verifier: Verifier) -> None:
        self._memory = memory
        self._verifier = verifier
        self._audited_at = -1  # the last operation after which the whole state was equal

    def audit(self, *, whole: bool = False) -> Verification:
        """Compare every used cell with the engine: positions and sequences of its state, and all spans. Read-only.

        A single stream of attention is compared by the beginning of its state, without K and V. Other memories, and
        `whole`, need a copy of K and V of all used cells (20 MB in about 2 ms; more without flash attention). Above
        AUDIT_BYTES they are copied only with `whole`; otherwise only spans are compared, and the map is at best
        "mirrored". At inspection level MAPS each decode also compares every cell and its index. Results since the last
        operation are reused, except with `whole`. Raises EngineError with `whole` if the state cannot be copied.
        """
        memory = self._memory
        found = memory.compare_positions()
        operation = memory.mirror.operation
        known = memory.guards.knows_states  # the geometry of another kind is only a stand-in
        if found is None and known and self._audited_at == operation and not whole:
            pass
        elif found is None and known and not whole and self._agrees_by_table():
            self._audited_at = operation
        elif found is None and known and (whole or state.state_size(memory.ctx) <= AUDIT_BYTES):
            try:
                found = self._compare_state()
            except EngineError:
                if whole:
                    raise
                self._verifier.unproven()
                return memory.verification
            self._audited_at = operation if found is None else -1
        elif found is None:
            self._verifier.unproven()
            return memory.verification
        self._verifier.conclude(operation, found)
        return memory.verification

    def rebuild(self) -> bool:
        """After a mismatch, rebuild the map from the engine's own state, so that decoding can continue. Changes the
        cache.

        The state is saved and restored, which puts cells at the front of their stream in the state's order. Logits of
        the last decode are lost. False if the state is unknown or too large. Raises EngineError.
        """
        memory = self._memory
        if not memory.guards.knows_states or state.state_size(memory.ctx) > AUDIT_BYTES:
            return False
        memory.apply_pending_unmirrored()
        blob = self.read_state()
        memory.forget_logits()
        try:
            parsed = parse_state(blob, memory.mirror.geometry)
        except BlobError:
            return False
        mirror = memory.mirror
        if not state.set_state(memory.ctx, blob):
            memory.clear_unmirrored()
            mirror.clear(True)
        else:
            mirror.restore(parsed, carry=True)
        self._verifier.note(mirror.operation, tr("map rebuilt from the engine's state"))
        self._verifier.rebuilt(mirror.operation)
        self.audit()
        return True

    def read_state(self) -> memoryview:
        """The whole state as it is, without pending operations. Read-only. Raises EngineError."""
        blob = state.room(state.state_size(self._memory.ctx))
        state.get_state(self._memory.ctx, blob)
        return blob.toreadonly()

    def _agrees_by_table(self) -> bool:
        """Whether the table of cells at the beginning of the state equals the mirror's. False also for states with more
        than one table; then, and after a difference, the whole state decides.
        """
        mirror = self._memory.mirror
        if len(mirror.caches) != 1 or mirror.geometry.n_stream != 1 or mirror.states:
            return False
        beginning = state.get_beginning(self._memory.ctx, _table_bytes(mirror) + _TENSORS_HEAD)
        try:
            return compare_blob(mirror, parse_cells(beginning, mirror.geometry)) is None
        except BlobError:
            return False

    def _compare_state(self) -> Difference | None:
        mirror = self._memory.mirror
        try:
            return compare_blob(mirror, parse_state(self.read_state(), mirror.geometry))
        except BlobError as error:
            return Difference("layout of the saved state", "known", f"{error} {error.detail}")


def _table_bytes(mirror: Mirror) -> int:
    """Bytes of a one-stream memory's state up to the end of its table of cells (`kvdesk.cache.state.blob`)."""
    cells, facts = mirror.caches[0].streams[0], mirror.geometry.facts
    n_ids = sum(cells.n_cells(s) for s in cells.sequences)
    return 12 + len(facts.architecture.encode()) + 4 * (cells.used * row_words(facts.cell_ext) + n_ids)
