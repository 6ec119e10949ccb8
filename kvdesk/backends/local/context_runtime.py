"""Everything that exists for one context of a loaded model: the context, its journal, its sequences, its measurements.

Created with each context, so that nothing of the previous one survives by accident. Runs on the engine's thread. Knows
nothing of requests and queues.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvdesk.backends.local.attention.worth import TokenWorth
from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.client_share import client_shares
from kvdesk.backends.local.cache_manager.documents import Documents
from kvdesk.backends.local.cache_manager.operation_journal import Emit, OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.decodes import MirroredDecode
from kvdesk.backends.local.loaded_model import LoadedModel
from kvdesk.backends.local.operations.by_hand import CacheOperations
from kvdesk.backends.local.scheduler.idle import Idle
from kvdesk.backends.local.scheduler.idle_requests import IdleRequests
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.backends.local.scheduler.overflow_manager import OverflowManager
from kvdesk.backends.local.scheduler.previews import Previews
from kvdesk.backends.local.scheduler.speed_model import SpeedModel, reads_of
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.cache.journal.recording import MAX_BYTES, Recording
from kvdesk.cache.snapshot import VerificationState
from kvdesk.errors import NO_TOKENIZER, PromptError, UserError, explained
from kvdesk.library.estimate import Estimate
from kvdesk.message import ConversationId
from kvdesk.policies.drafting import DraftSize
from kvdesk.policies.overflow import Abilities
from kvdesk.protocol import calls
from kvdesk.protocol.cache import Audited, CacheView, ContextInfo, LedgerRow, MemoryLedger
from kvdesk.settings import CachePolicy
from kvdesk.translation import marked, tr
from kvdesk.whole_file import write_whole

_MAP_IS: Mapping[VerificationState, str] = {
    "verified": marked("the map is verified"),
    "mirrored": marked("the map is mirrored"),
    "mismatch": marked("the map has a mismatch"),
}


class ContextRuntime:
    """One context of `loaded` and what works on it.

    estimate          what the context was expected to take
    context           llama.cpp's context with its mirror
    operation_journal every operation on the cache from now on
    cache_manager     which sequence each conversation has
    overflow_manager  what leaves a full context; None if the model has no text tokenizer
    speed_model       how long decodes take with these settings
    threads           how many threads the next decode gets
    by_hand           operations by hand, and what undoes them
    idle              work while no request waits
    idle_requests     requests of other programs that leave the cache for memory
    previews          what commands would do
    spans             reports where messages lie in the cache
    draft_size        how many guessed tokens batches of answers contain
    documents         what need not be read again
    """

    def __init__(
        self,
        loaded: LoadedModel,
        context: Context,
        estimate: Estimate,
        saved_states: SavedStateStore,
        emit: Emit,
        *,
        policy: CachePolicy,
        eviction_reasons: Mapping[ConversationId, str] | None = None,
    ) -> None:
        """`saved_states`: saved states that fit into the context. `policy`: see `use`.
        `eviction_reasons`: of conversations that lost their cells with the last context.
        """
        self._emit = emit
        self.loaded = loaded
        self.estimate = estimate
        self.context = context
        self.operation_journal = OperationJournal(context, emit, self._conversation_of)
        cell = (estimate.k + estimate.v) // max(1, context.n_ctx)
        reads = reads_of(loaded.header, context.settings, loaded.model.info().size_bytes, cell)
        self.speed_model = SpeedModel(emit, loaded.costs, context.settings, reads)
        swapper = StateSwapper(context, self.operation_journal, saved_states, self.speed_model.costs.again)
        self.cache_manager = Cache(context, self.operation_journal, swapper, self.speed_model.costs, eviction_reasons)
        self.overflow_manager = None
        if loaded.prompts is not None:
            worth = TokenWorth(context, self.cache_manager, loaded.header)
            self.overflow_manager = OverflowManager(loaded.prompts, context.n_ctx_seq, abilities(context), worth)
        self.threads = Threads(context, context.settings, emit)
        self.idle_requests = IdleRequests(context, self.cache_manager)
        self.spans = MessageSpanReporter(self.cache_manager, self.overflow_manager, emit)
        self.draft_size = DraftSize(_why_no_drafts(context))
        self.documents = Documents(context, self.cache_manager, self.operation_journal)
        self.by_hand = CacheOperations(context, self.cache_manager, self.operation_journal, loaded.noise, emit)
        self.idle = Idle(context, self.cache_manager, loaded.prompts)
        self.previews = Previews(context, self.cache_manager, lambda: self.chats, self.speed_model, self.documents)
        self.use(policy)
        self.cache_manager.listen(self._on_decoded)

    def use(self, policy: CachePolicy) -> None:
        """Apply this policy from now on."""
        self.threads.follow = policy.follow_load
        self.idle_requests.enabled = policy.save_idle_requests
        self.draft_size.wanted = policy.drafts
        self.documents.rounds = policy.documents_q8_0

    @property
    def info(self) -> ContextInfo:
        """Numbers read back from the engine."""
        return self.context.info(self.estimate.k, self.estimate.v, self.estimate.r + self.estimate.s)

    @property
    def chats(self) -> OverflowManager:
        """What makes prompts that fit. Raises PromptError if the model has no text tokenizer."""
        if self.overflow_manager is None:
            raise PromptError(tr(NO_TOKENIZER))
        return self.overflow_manager

    def ledger(self) -> MemoryLedger:
        """Bytes of everything, estimated before and measured after."""
        e, got = self.estimate, self.context.buffers
        saved_states, undo = self.cache_manager.swapper.saved_states, self.by_hand.blobs
        rows = [
            LedgerRow("weights", e.weights, self.loaded.model.info().size_bytes),
            LedgerRow("K and V", e.k + e.v, got.get("KV")),
            LedgerRow("recurrent state", e.r + e.s, got.get("RS")),
            LedgerRow("compute buffers", e.compute, got.get("compute")),
            LedgerRow("output buffer", e.output, got.get("output")),
            LedgerRow("saved conversations", 0, saved_states.memory_bytes, saved_states.limits.memory_bytes),
            LedgerRow("being written to disk", 0, saved_states.writing_bytes),
            LedgerRow("undo", 0, undo.n_bytes, undo.most_bytes),
            LedgerRow("recording", 0, self.operation_journal.journal.n_bytes, MAX_BYTES),
        ]
        return MemoryLedger(tuple(row for row in rows if row.estimated or row.measured))

    def view(self) -> CacheView:
        """The cache and its leases, frozen. Read-only."""
        context, pool = self.context, self.cache_manager.pool
        saved = self.cache_manager.swapper.saved_states.conversations()
        return CacheView(
            self.cache_manager.snapshot(),
            pool.leases(),
            has_report=context.verifier.report is not None,
            pending=self.cache_manager.pending_shift,
            swapped=tuple((c, n) for c, n in saved if not _held(pool.get(c))),
            undoable=self.by_hand.blobs.numbers,
            clients=client_shares(context, self.cache_manager),
        )

    def audit(self) -> None:
        """Compare every used cell with the engine's own state, and report it as an operation. Read-only."""
        with self.operation_journal.operation("audit", call=calls.state_get()) as operation:
            verification = self.context.auditor.audit(whole=True)
            n_used = self.cache_manager.totals()[0]
            operation.reason = tr(_MAP_IS[verification.state])
        at = time.strftime("%H:%M:%S")
        match verification.state:
            case "verified":
                found = tr(
                    "all {n_used:,} used cells agree with llama.cpp's own state in position and sequences"
                ).format(n_used=n_used)
            case "mirrored":
                found = tr("{n_used:,} used cells; nothing disagrees, but not all can be proven: {detail}").format(
                    n_used=n_used, detail=verification.detail
                )
            case "mismatch":
                found = tr("the map and llama.cpp's own state disagree: {detail}").format(detail=verification.detail)
        self._emit(Audited(verification.state, at, f"{found.rstrip('.')} ({operation.ms:,.0f} ms)."))

    def recording(self) -> Recording:
        """The journal up to now, frozen."""
        self.cache_manager.publish()
        return self.operation_journal.journal.recording()

    def save_report(self, path: Path) -> None:
        """Write the report of the last mismatch as JSON. Raises UserError: there is none, it cannot be written."""
        report = self.context.verifier.report
        if report is None:
            raise UserError(tr("There is no mismatch to report: the map has agreed with the engine."))
        with explained(tr("The report could not be written to {path}: {why}."), path=path):
            write_whole(path, f"{report.to_json()}\n".encode())

    # --- private ------------------------------------------------------------------------------------------------------

    def _on_decoded(self, decodes: Sequence[MirroredDecode]) -> None:
        """Write down all, then measure all: right after a decode that is faster than alternating."""
        for decode in decodes:
            self.operation_journal.decoded(decode)
        for decode in decodes:
            self.speed_model.decoded(decode)

    def _conversation_of(self, seq_id: int) -> ConversationId | None:
        sequence = self.cache_manager.pool.by_seq(seq_id)
        return sequence.conversation if sequence else None


def abilities(context: Context) -> Abilities:
    """Whether parts of a sequence can leave and move, and why not."""
    remove, shift = (context.capabilities[name] for name in ("partial seq_rm", "seq_add"))
    return Abilities(remove.allowed, shift.allowed, remove.why, shift.why)


def _why_no_drafts(context: Context) -> str:
    """Why no guessed tokens may be in the batches of answers, "" if they may."""
    if not context.traits.geometry.most_removable:
        if context.traits.geometry.facts.rollback and not context.settings.n_rs_seq:
            return tr("No drafts: a wrong token can be removed only with Earlier states (n_rs_seq), which are 0.")
        return tr("No drafts: this model's memory cannot remove a wrong token.")
    if context.settings.exact and context.block > 1:
        return tr("No drafts: with exact answers a token is computed alone, among others it is rounded differently.")
    return ""


def _held(sequence: CacheSequence | None) -> bool:
    return sequence is not None and bool(sequence.tokens)
