"""What exists while a model is loaded: model, context, prompts, and which conversation holds which sequence.

Every change of the cache that is not a decode is made here and reported as an operation with its reason. Runs on the
engine's thread. Knows nothing of turns and queues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvdesk.backends.local.cache_manager.manager import Acquired, CacheManager
from kvdesk.backends.local.cache_manager.operation_journal import Emit, OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.cache_manager.sequences import CacheSequence, Sequences
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.decodes import MirroredDecode
from kvdesk.backends.local.llama.open_model import OpenedModel, open_model
from kvdesk.backends.local.llama.self_check import checked_context
from kvdesk.backends.local.llama.transfer import MOST_KEPT
from kvdesk.backends.local.prompt.prompt import Prompt, PromptBuilder
from kvdesk.backends.local.scheduler.overflow_manager import Asked, Fit, OverflowManager
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.backends.local.scheduler.speed_model import SpeedModel
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.cache.compare import ROUNDING, ROUNDING_KL
from kvdesk.cache.explain import Facts, explain
from kvdesk.cache.prefix import common_prefix
from kvdesk.cache.recording import Recording
from kvdesk.chat import ConversationId, Message
from kvdesk.errors import NO_TOKENIZER, PromptError, UserError
from kvdesk.library.estimate import Estimate, available_bytes, check_fits
from kvdesk.library.fingerprint import fingerprint
from kvdesk.policies.compaction_gain import Reads
from kvdesk.policies.overflow import Abilities
from kvdesk.policies.swap import Limits, StateKind
from kvdesk.protocol import calls
from kvdesk.protocol.cache import Audited, CacheView, ContextInfo, LedgerRow, MemoryLedger, MessageSpan, MessageSpans
from kvdesk.protocol.chat import MessageRetention
from kvdesk.protocol.operations import Capability
from kvdesk.settings import CachePolicy, ContextSettings


@dataclass(frozen=True, slots=True)
class EnginePolicy:
    """What kvdesk does by itself, and where saved states go; None: they stay in memory."""

    policy: CachePolicy = field(default_factory=CachePolicy)
    folder: Path | None = None

    @property
    def limits(self) -> Limits:
        disk = self.policy.disk_mb if self.folder else 0
        return Limits(self.policy.memory_mb * 1_000_000, disk * 1_000_000)


def open_session(
    path: Path,
    settings: ContextSettings,
    emit: Emit,
    old: Session | None,
    on_progress: Callable[[float], bool],
    on_replace: Callable[[], None],
    own: EnginePolicy,
) -> Session:
    """Load `path` and make its context, in place of `old`.

    `old` lives until the new model is loaded; only its context leaves first, so that both caches need not fit into
    memory at once, and comes back (empty) when the new one cannot be made. `on_progress` gets 0.0 to 1.0 and
    ends the load by returning False; `on_replace` is called just before the old context goes.

    A model never seen before is tried in a child process first: a file that makes llama.cpp crash costs nothing.

    Raises ModelFileError, ContextError: the file cannot be used, or its context does not fit into memory.
    """
    opened = open_model(path, settings, on_progress, freed_before=old.estimate.context if old else 0)
    try:
        on_replace()
        if old is not None:
            old.cache_manager.save_all()
            old.context.close()
        session = Session(opened, settings, emit, own)
    except Exception:
        opened.model.close()
        if old is not None and not old.context.is_open:
            old.reopen()
        raise
    if old is not None:
        old.close_model()
    return session


class Session:
    """A loaded model and its one context, made with `settings`. Raises ContextError."""

    def __init__(self, opened: OpenedModel, settings: ContextSettings, emit: Emit, own: EnginePolicy) -> None:
        self._emit = emit
        self.own = own
        self.speed_model = SpeedModel(emit)
        self._lost: dict[ConversationId, str] = {}
        self._old_snapshots: SavedStateStore | None = None
        self.header, self.model, self.estimate = opened.header, opened.model, opened.estimate
        self.fingerprint = fingerprint(opened.header.path)
        self.template_problem = ""
        if opened.template_problem:
            self.template_problem = (
                f"The model's chat template cannot be used, so a plain one is: {opened.template_problem}"
            )
        self.prompts = self._prompt_builder()
        try:
            self._use(checked_context(self.model, settings))
        except Exception:
            self._close_prompts()
            raise

    @property
    def info(self) -> ContextInfo:
        return self.context.info(self.estimate.k, self.estimate.v)

    @property
    def pool(self) -> Sequences:
        """All leased sequences, read-only."""
        return self.cache_manager.pool

    @property
    def snapshots(self) -> SavedStateStore:
        """Conversations saved outside the cache."""
        return self.cache_manager.swapper.snapshots

    def ledger(self, undo_bytes: int = 0, undo_most: int | None = None) -> MemoryLedger:
        """Bytes of everything, estimated before and measured after. `undo_bytes`: of the states kept for undo, which
        are `undo_most` at most.
        """
        e, got = self.estimate, self.context.buffers
        rows = [
            LedgerRow("weights", e.weights, self.model.info().size_bytes),
            LedgerRow("K and V", e.k + e.v, got.get("KV")),
            LedgerRow("recurrent state", e.r + e.s, got.get("RS")),
            LedgerRow("compute buffers", e.compute, got.get("compute")),
            LedgerRow("output buffer", e.output, got.get("output")),
            LedgerRow("saved conversations", 0, self.snapshots.memory_bytes, self.snapshots.limits.memory_bytes),
            LedgerRow("being written to disk", 0, self.snapshots.writing_bytes),
            LedgerRow("undo", 0, undo_bytes, undo_most),
            LedgerRow("transfer buffers", 0, self.context.states.buffers.n_bytes, MOST_KEPT),
        ]
        return MemoryLedger(tuple(row for row in rows if row.estimated or row.measured))

    @property
    def noise(self) -> tuple[float, float]:
        """What of a difference of logits is rounding with this model: relative to the largest logit, and KL in nats.

        Quantized weights round the numbers they are multiplied with to 8 bits, so the last bit of a sum either vanishes
        or becomes a step. Measured with the embedded Q4_1 model on three texts of 2,000 tokens, each token's logits in
        ubatches of 512 against ubatches of 32 and against a chat in small pieces, all of them right: KL 0.004 nats in
        the median, 0.03 in the 99th percentile, 0.081 at most; logits up to 0.15 of the largest. (`compare.ROUNDING`
        tells of float weights.)
        """
        quantized = any(tensor.kind.block > 1 for tensor in self.header.tensors)
        return (0.2, 0.1) if quantized else (ROUNDING, ROUNDING_KL)

    @property
    def possible(self) -> tuple[Capability, ...]:
        """What can be done to this cache, and why not."""
        return tuple(self.context.capabilities.values())

    def check(self, settings: ContextSettings) -> Estimate:
        """What a context with these settings would take. Raises ContextError when it does not fit into memory."""
        return check_fits(self.header, settings, available_bytes() + self.estimate.context, loaded=True)

    def use(self, own: EnginePolicy) -> None:
        """Another policy, or another place for saved states."""
        if own.folder != self.own.folder:
            self.snapshots.close()
            self.cache_manager.swapper.snapshots = self._old_snapshots = SavedStateStore(
                own.folder, self._kind(), own.limits
            )
        self.own = own
        self.snapshots.set_limits(own.limits)
        self.threads.follow = own.policy.follow_load

    def rebuild(self, settings: ContextSettings) -> None:
        """Free the context and make a new one. Every sequence is empty afterwards, and no state is kept.

        Raises ContextError; the session then goes on with a context of the old settings.
        """
        before, wanted = self.context.settings, self.check(settings)
        start = time.perf_counter()
        self._lost = {s.conversation: "the context was rebuilt" for s in self.cache_manager.pool if s.tokens}
        for conversation in self._lost:
            self.snapshots.drop_of(conversation)
        self.context.close()
        try:
            self._use(checked_context(self.model, settings))
            self.estimate = wanted
        except Exception:
            self._use(checked_context(self.model, before))
            raise
        with self.operation_journal.operation("rebuild", call=calls.new_context(), started=start) as operation:
            operation.emptied = True

    def reopen(self) -> None:
        """Make the context anew with its old settings, after it was closed for a session that came to nothing."""
        self._use(checked_context(self.model, self.context.settings))

    def fit(self, asked: Asked) -> Fit:
        """The conversation's tokens up to where the answer begins, without what has left its context.

        Raises PromptError, TemplateError.
        """
        return self._chatting().fit(asked)

    def prompt_now(self, asked: Asked) -> Prompt:
        """The conversation's prompt without what has left its context, whether it fits or not.

        Raises PromptError, TemplateError.
        """
        return self._chatting().now(asked)[0]

    def explain(
        self,
        sequence: CacheSequence,
        acquired: Acquired,
        held: list[int],
        prompt: list[int],
        messages: tuple[Message, ...],
    ) -> str:
        """Why the turn that begins reuses what was `acquired`, in words. `held`: what the sequence held before."""
        texts = tuple(message.text for message in messages)
        changed = next((i for i, (a, b) in enumerate(zip(sequence.texts, texts, strict=False)) if a != b), -1)
        reused = len(sequence.tokens)
        common = common_prefix(held, prompt)
        began_again = reused == 0 and min(common, len(prompt) - 1) > 0
        facts = Facts(
            evicted=self.cache_manager.pop_eviction_reason(sequence.conversation),
            edited=f"message {changed + 1}" if changed >= 0 else "",
            thinking=changed < 0 and common < len(held) and any("</think>" in text for text in texts),
            window_lost=began_again and self.model.facts.n_swa > 0,
            recurrent=began_again and self.model.facts.n_swa == 0,
            taken=acquired.source,
            checkpoint=acquired.checkpoint,
        )
        self.cache_manager.set_texts(sequence, texts)
        return explain(held, prompt, self.model.vocab.label, facts, reused).sentence

    def tell_spans(self, request: Request) -> None:
        """Say where the messages of a turn lie in its sequence, and how far they are from leaving it."""
        sequence, spans, start = request.sequence, [], 0
        for place in request.whole.places:
            spans.append(MessageSpan(place.message, start, place.end, place.first, place.char_ends))
            start = place.end
        if ends := request.char_ends():
            first = len(request.prompt)
            spans.append(MessageSpan(request.command.answer, start, first + len(ends), first, tuple(ends)))
        self.cache_manager.set_spans(sequence, tuple(spans))
        self._emit(MessageSpans(sequence.conversation, sequence.seq_id, sequence.spans))
        if self.overflow_manager is not None:
            self._emit(MessageRetention(sequence.conversation, self.overflow_manager.retention(request)))

    def retell_spans(self, sequence: CacheSequence, spans: tuple[MessageSpan, ...]) -> None:
        """The messages of a conversation that came back lie where they were."""
        self.cache_manager.set_spans(sequence, spans)
        self._emit(MessageSpans(sequence.conversation, sequence.seq_id, spans))

    def view(self, undoable: tuple[int, ...] = ()) -> CacheView:
        """The cache and its leases, frozen. Read-only."""
        context, pool = self.context, self.cache_manager.pool
        return CacheView(
            context.memory.snapshot(),
            pool.leases(),
            has_report=context.verifier.report is not None,
            pending=context.memory.mirror.pending_shift,
            swapped=tuple((c, n) for c, n in self.snapshots.conversations() if not _held(pool.get(c))),
            undoable=undoable,
        )

    def audit(self) -> None:
        """Compare every used cell with the engine's own state, and report it as an operation. Read-only."""
        with self.operation_journal.operation("audit", call=calls.state_get()) as operation:
            verification = self.context.auditor.audit(whole=True)
            n_used = self.context.memory.totals()[0]
            operation.reason = f"the map is {verification.state}"
        at = time.strftime("%H:%M:%S")
        match verification.state:
            case "verified":
                found = f"all {n_used:,} used cells agree with llama.cpp's own state in position and sequences"
            case "mirrored":
                found = f"{n_used:,} used cells; nothing disagrees, but not all can be proven: {verification.detail}"
            case "mismatch":
                found = f"the map and llama.cpp's own state disagree: {verification.detail}"
        self._emit(Audited(verification.state, at, f"{found.rstrip('.')} ({operation.ms:,.0f} ms)."))

    def recording(self) -> Recording:
        """The journal up to now, frozen."""
        self.context.memory.publish()
        return self.operation_journal.journal.recording()

    def save_report(self, path: Path) -> None:
        """Write the report of the last mismatch as JSON. Raises UserError: there is none, it cannot be written."""
        if self.context.verifier.report is None:
            raise UserError("There is no mismatch to report: the map has agreed with the engine.")
        try:
            path.write_text(self.context.verifier.report.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise UserError(f"The report could not be written to {path}: {error.strerror}.") from error

    def recover(self) -> None:
        """After an error nobody expected: what each sequence holds is what the map says it holds."""
        if self.context.is_open:
            self.context.memory.settle()
            self.cache_manager.adopt_map()

    def close(self) -> None:
        """Save the conversations' states, free the context, then the model."""
        try:
            if self.context.is_open:
                self.cache_manager.save_all()
        finally:
            self.discard()

    def discard(self) -> None:
        """Free the context, then the model. What was saved before stays saved; nothing more is."""
        try:
            self.context.close()
            self.close_model()
        finally:
            self.snapshots.close()

    def close_model(self) -> None:
        """Free the model alone, where the context is closed."""
        self._close_prompts()
        self.model.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _chatting(self) -> OverflowManager:
        if self.overflow_manager is None:
            raise PromptError(NO_TOKENIZER)
        return self.overflow_manager

    def _prompt_builder(self) -> PromptBuilder | None:
        """None where the model has no text tokenizer; a template that cannot be used gives way to ChatML."""
        vocab = self.model.vocab
        if not vocab.has_text:
            return None
        return PromptBuilder(vocab, "" if self.template_problem else self.model.chat_template)

    def _close_prompts(self) -> None:
        if self.prompts is not None:
            self.prompts.close()

    def _use(self, context: Context) -> None:
        self.context = context
        self.operation_journal = OperationJournal(context, self._emit, self._conversation_of)
        self.speed_model.use(context.settings, self._reads())
        self._old_snapshots = self._snapshots()
        swapper = StateSwapper(context, self.operation_journal, self._old_snapshots, self.speed_model.costs)
        self.cache_manager = CacheManager(context, self.operation_journal, swapper, self._lost)
        self.overflow_manager = (
            OverflowManager(self.prompts, context.n_ctx_seq, abilities(context)) if self.prompts else None
        )
        context.memory.on_decoded = self._on_decoded
        self.threads = Threads(context, context.settings, self._emit, follow=self.own.policy.follow_load)

    def _snapshots(self) -> SavedStateStore:
        """Those of before where states of then fit into this context."""
        kind = self._kind()
        old = self._old_snapshots
        if old is not None and old.kind == kind:
            return old
        if old is not None:
            old.close()
        return SavedStateStore(self.own.folder, kind, self.own.limits)

    def _reads(self) -> Reads:
        """What a decoded token reads, for the cost of a cell before it was measured."""
        n_cells = max(1, self.context.n_ctx)
        cell = (self.estimate.k + self.estimate.v) // n_cells
        return Reads(self.model.info().size_bytes, cell, self.context.settings.flash_attn)

    def _kind(self) -> StateKind:
        """All that decides whether a saved state means the same here."""
        s = self.context.settings
        version = engine_version()
        rope = (self.model.rope_freq_base, self.model.rope_freq_scale)
        return StateKind(self.fingerprint, f"{version} {version.commit}", s.type_k, s.type_v, s.flash_attn, rope)

    def _on_decoded(self, decodes: Sequence[MirroredDecode]) -> None:
        """Write down, measure and judge: each for all, which is quicker right after a decode than all for each."""
        for decode in decodes:
            self.operation_journal.decoded(decode)
        for decode in decodes:
            self.speed_model.decoded(decode)
        for decode in decodes:
            self.threads.decoded(decode)

    def _conversation_of(self, seq_id: int) -> ConversationId | None:
        sequence = self.cache_manager.pool.by_seq(seq_id)
        return sequence.conversation if sequence else None


def abilities(context: Context) -> Abilities:
    """Whether parts of a sequence can leave and move, and why not."""
    remove, shift = (context.capabilities[name] for name in ("partial seq_rm", "seq_add"))
    return Abilities(remove.allowed, shift.allowed, remove.why, shift.why)


def _held(sequence: CacheSequence | None) -> bool:
    return sequence is not None and bool(sequence.tokens)
