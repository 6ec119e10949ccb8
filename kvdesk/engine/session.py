"""What exists while a model is loaded: model, context, prompts, and which conversation holds which sequence.

Every change of the cache that is not a decode is made here and reported as an operation with its reason. Runs on the
engine's thread. Knows nothing of turns and queues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvdesk.cache.compare import ROUNDING, ROUNDING_KL
from kvdesk.cache.explain import Facts, explain
from kvdesk.cache.journal import Journal, Operation
from kvdesk.chat import ConversationId, Message, MessageId
from kvdesk.engine.context import Context
from kvdesk.engine.memory import Followed, FollowedRun
from kvdesk.engine.model import Model
from kvdesk.engine.prompt import Prompt, PromptBuilder, common_prefix
from kvdesk.engine.sequences import Sequence, SequencePool
from kvdesk.errors import KvdeskError, ModelFileError, PromptError, TemplateError, UserError
from kvdesk.library.estimate import Estimate, available_bytes, check_fits
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.library.preflight import run_preflight
from kvdesk.messages import CacheView, ContextInfo, Event, OperationDone
from kvdesk.operations import MessageSpan, MessageSpans, Possible
from kvdesk.settings import ContextSettings

Emit = Callable[[Event], None]
_ONE_TOKEN = "llama_decode(1 tokens) -> 0"


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model file that was read, found to fit, and loaded; no context yet."""

    header: GgufHeader
    model: Model
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Swapped:
    """A conversation outside the cache: the state of its sequence, its tokens, texts and spans."""

    blob: bytes
    tokens: list[int]
    texts: tuple[str, ...]
    spans: tuple[MessageSpan, ...]


def open_session(
    path: Path,
    settings: ContextSettings,
    emit: Emit,
    old: Session | None,
    on_progress: Callable[[float], bool],
    on_replace: Callable[[], None],
) -> Session:
    """Load `path` and make its context, in place of `old`.

    `old` lives until the new model is loaded; only its context leaves first, so that both caches need not fit into
    memory at once, and comes back (empty) when the new one cannot be made. `on_progress` gets 0.0 to 1.0 and
    ends the load by returning False; `on_replace` is called just before the old context goes.

    A model never seen before is tried in a child process first: a file that makes llama.cpp crash costs nothing.

    Raises ModelFileError, ContextError: the file cannot be used, or its context does not fit into memory.
    """
    path = path.absolute()
    header = read_header(path)
    available = available_bytes() + (old.estimate.context if old else 0)
    estimate = check_fits(header, settings, available)
    on_progress(0.0)
    verdict = run_preflight(path, settings, cancelled=lambda: not on_progress(0.0))
    if not verdict.ok:
        raise ModelFileError(verdict.sentence, verdict.detail)
    model = Model(path, on_progress)
    on_replace()
    if old is not None:
        old.context.close()
    try:
        session = Session(_Loaded(header, model, estimate), settings, emit)
    except KvdeskError:
        model.close()
        if old is not None:
            old.reopen()
        raise
    if old is not None:
        old.model.close()
    return session


class Session:
    """A loaded model and its one context, made with `settings`. Raises ContextError."""

    def __init__(self, loaded: _Loaded, settings: ContextSettings, emit: Emit) -> None:
        self._emit = emit
        self._doing: tuple[str, str, str] = ("", "", "")
        self.header, self.model, self.estimate = loaded.header, loaded.model, loaded.estimate
        self.template_problem = ""
        self._gone: dict[ConversationId, str] = {}  # why the cells of a conversation are no longer there
        self.prompts = self._prompt_builder()
        self._use(Context(self.model, settings))

    @property
    def info(self) -> ContextInfo:
        return self.context.info(self.estimate.k, self.estimate.v)

    @property
    def noise(self) -> tuple[float, float]:
        """What of a difference of logits is rounding with this model: relative to the largest logit, and KL in nats.

        Quantized weights round the numbers they are multiplied with to 8 bits, so the last bit of a sum either vanishes
        or becomes a step: the embedded Q4_1 model with and without flash attention, both right, differs by 1.7 of 33
        and 0.03 nats. (`compare.ROUNDING` tells of float weights.)
        """
        quantized = any(tensor.kind.block > 1 for tensor in self.header.tensors)
        return (0.06, 0.05) if quantized else (ROUNDING, ROUNDING_KL)

    @property
    def possible(self) -> tuple[Possible, ...]:
        """What can be done to this cache, and why not."""
        return tuple(Possible(c.operation, c.answer, c.why) for c in self.context.capabilities)

    def check(self, settings: ContextSettings) -> Estimate:
        """What a context with these settings would take. Raises ContextError when it does not fit into memory."""
        return check_fits(self.header, settings, available_bytes() + self.estimate.context, loaded=True)

    def rebuild(self, settings: ContextSettings) -> None:
        """Free the context and make a new one. Every sequence is empty afterwards.

        Raises ContextError; the session then goes on with a context of the old settings.
        """
        before, wanted = self.context.settings, self.check(settings)
        start = time.perf_counter()
        self._gone |= {s.conversation: "the context was rebuilt" for s in self.pool if s.tokens}
        self.context.close()
        try:
            self._use(Context(self.model, settings))
            self.estimate = wanted
        except KvdeskError:
            self._use(Context(self.model, before))
            raise
        self.report("rebuild", "llama_free(ctx); llama_init_from_model(model, params)", start, emptied=True)

    def reopen(self) -> None:
        """Make the context anew with its old settings, after it was closed for a session that came to nothing."""
        self._use(Context(self.model, self.context.settings))

    def prompt(self, messages: tuple[Message, ...]) -> Prompt:
        """The conversation's tokens up to where the answer begins. Raises PromptError, TemplateError."""
        if self.prompts is None:
            raise PromptError("This model has no text tokenizer, so it cannot chat; its cache can still be examined.")
        prompt = self.prompts.prompt(messages)
        if len(prompt.tokens) >= self.context.n_ctx_seq:
            raise PromptError(
                f"The conversation needs {len(prompt.tokens):,} tokens, but the context holds"
                f" {self.context.n_ctx_seq:,}. Shorten it, or rebuild the context with a larger n_ctx."
            )
        return prompt

    # --- sequences ----------------------------------------------------------------------------------------------------

    def can_lease(self, conversation: ConversationId) -> bool:
        """Whether `lease` would give a sequence. Read-only."""
        pool = self.pool
        return bool(pool.get(conversation) or pool.free or pool.least_recent_idle(holding_cells=False))

    def lease(self, conversation: ConversationId) -> Sequence:
        """The conversation's sequence. When the pool is empty, the least recently used idle conversation yields its
        own: its cells are removed, its text stays. Raises PromptError when every sequence is busy.
        """
        sequence = self.pool.lease(conversation)
        if sequence is None:
            victim = self.pool.least_recent_idle(holding_cells=False)
            if victim is None:
                raise PromptError(f"All {self.context.n_seq_max} sequences are answering. Wait for one to end.")
            self.give_back(victim, "least recently used, its sequence is needed")
            sequence = self.pool.lease(conversation)
        assert sequence is not None
        return sequence

    def give_back(self, sequence: Sequence, reason: str) -> None:
        """Remove the sequence's cells and return its seq_id to the pool. Changes the cache."""
        self.keep(sequence, 0, reason)
        self.pool.release(sequence)

    def keep(self, sequence: Sequence, n: int, reason: str) -> bool:
        """Keep the first `n` tokens of the sequence, remove the rest: `seq_rm(seq, n, -1)`. Changes the cache.

        Also what lies there that `sequence.tokens` does not know of, after operations by hand. False where this memory
        cannot remove a part; then nothing changed.
        """
        if n >= len(sequence.tokens) and self.context.seq_pos_max(sequence.seq_id) < n:
            return True
        start = time.perf_counter()
        p0 = n if n > 0 else -1
        with self.doing("", sequence.conversation, reason):
            removed = self.context.seq_rm(sequence.seq_id, p0, -1)
        if not removed:
            return False
        del sequence.tokens[n:]
        if n == 0:
            self._gone[sequence.conversation] = reason
        call = f"llama_memory_seq_rm(seq {sequence.seq_id}, {p0}, -1)"
        self.report("seq_rm", call, start, sequence.conversation, reason, emptied=n == 0)
        return True

    def keep_common_prefix(self, sequence: Sequence, prompt: list[int]) -> int:
        """Remove what the sequence holds beyond the prefix it shares with `prompt`; returns how many tokens stay.

        At least one token is left to decode, since logits are needed. A memory that cannot give back a part (recurrent
        states), or that no longer holds the window before the cut (sliding windows; llama-server's rule,
        `pos_min_thold` in server-context.cpp), starts again from nothing. Changes the cache.
        """
        n = min(common_prefix(sequence.tokens, prompt), len(prompt) - 1)
        n_swa = self.model.facts.n_swa
        if n_swa and n and self.context.seq_pos_min(sequence.seq_id) > max(0, n - n_swa):
            self.keep(sequence, 0, "the sliding window before the first new token is no longer in the cache")
        elif not self.keep(sequence, n, f"the prompt diverges at position {n}"):
            self.keep(sequence, 0, "this model cannot give back a part of its state")
        return len(sequence.tokens)

    def explain(self, sequence: Sequence, held: list[int], prompt: list[int], messages: tuple[Message, ...]) -> str:
        """Why the turn that begins reuses so much, in words. `held`: what the sequence held before. Read-only."""
        texts = tuple(message.text for message in messages)
        changed = next((i for i, (a, b) in enumerate(zip(sequence.texts, texts, strict=False)) if a != b), -1)
        reused = len(sequence.tokens)
        common = common_prefix(held, prompt)
        began_again = reused == 0 and min(common, len(prompt) - 1) > 0
        facts = Facts(
            evicted=self._gone.pop(sequence.conversation, ""),
            edited=f"message {changed + 1}" if changed >= 0 else "",
            thinking=changed < 0 and common < len(held) and any("</think>" in text for text in texts),
            window_lost=began_again and self.model.facts.n_swa > 0,
            recurrent=began_again and self.model.facts.n_swa == 0,
        )
        sequence.texts = texts
        return explain(held, prompt, self.model.vocab.label, facts, reused).sentence

    def make_room(self, sequence: Sequence, n_tokens: int) -> bool:
        """Free `n_tokens` cells for the sequence: idle conversations leave, least recently used first.

        False when there is not enough even so. May change the cache.
        """
        while not self.context.has_room(sequence.seq_id, n_tokens):
            victim = self.pool.least_recent_idle(holding_cells=True)
            if victim is None or victim is sequence:
                return False
            self.keep(victim, 0, "least recently used, its cells are needed")
        return True

    def swap_out(self, sequence: Sequence) -> int:
        """Save the sequence outside the cache, remove its cells, give its seq_id back. Returns the bytes saved.

        Raises RefusedCall where this memory cannot be saved, EngineError.
        """
        blob = self.context.state_seq_get(sequence.seq_id)
        self.swapped[sequence.conversation] = Swapped(blob, list(sequence.tokens), sequence.texts, sequence.spans)
        self.give_back(sequence, "swapped out")
        self._gone.pop(sequence.conversation, None)
        return len(blob)

    def swap_in(self, conversation: ConversationId) -> int:
        """Put a saved sequence back, with no token computed. Returns its bytes.

        Raises UserError: nothing is saved, or there is no room; then it stays saved.
        """
        saved = self.swapped.get(conversation)
        if saved is None:
            raise UserError("This conversation is not swapped out.")
        sequence = self.lease(conversation)
        self.keep(sequence, 0, "its saved state takes its place")
        if not self.make_room(sequence, len(saved.tokens)) or not self.context.state_seq_set(
            sequence.seq_id, saved.blob, saved.tokens
        ):
            self.pool.release(sequence)
            raise UserError("The cache has no room for the saved conversation.")
        del self.swapped[conversation]
        sequence.tokens, sequence.texts = list(saved.tokens), saved.texts
        self.retell_spans(sequence, saved.spans)
        return len(saved.blob)

    def agree(self, sequence: Sequence, tried: list[int]) -> None:
        """After a decode of `tried` that did not end well: finished ubatches stay cached, so believe the engine."""
        held = self.context.seq_pos_max(sequence.seq_id) + 1
        sequence.tokens = (sequence.tokens + tried)[:held]

    def believe_map(self) -> None:
        """After operations by hand: what a sequence holds is what the map says it holds, up to the first hole."""
        for sequence in self.pool:
            held = self.context.mirror.tokens_of(sequence.seq_id)
            if held is None:  # recurrent states do not tell; they are whole or empty
                held = sequence.tokens[: self.context.seq_pos_max(sequence.seq_id) + 1]
            if len(held) < len(sequence.tokens):
                self._gone.setdefault(sequence.conversation, "its cells were changed by hand")
            sequence.tokens = held

    def tell_spans(self, sequence: Sequence, prompt: Prompt, answer: MessageId, texts: list[str]) -> None:
        """Say where the messages of a turn lie in its sequence. `texts`: the answer's text after each of its tokens."""
        spans, start = [], 0
        for place in prompt.places:
            spans.append(MessageSpan(place.message, start, place.end, place.first, place.char_ends))
            start = place.end
        if texts:
            n, first, length, ends = len(texts), len(prompt.tokens), 0, []
            for text in texts:
                length += len(text)
                ends.append(length)
            spans.append(MessageSpan(answer, start, first + n, first, tuple(ends)))
        sequence.spans = tuple(spans)
        self._emit(MessageSpans(sequence.conversation, sequence.seq_id, sequence.spans))

    def retell_spans(self, sequence: Sequence, spans: tuple[MessageSpan, ...]) -> None:
        """The messages of a conversation that came back lie where they were."""
        sequence.spans = spans
        self._emit(MessageSpans(sequence.conversation, sequence.seq_id, spans))

    def record_run(self, followed: FollowedRun) -> None:
        """Decodes of one token each, for the journal."""
        owner = self.pool.by_seq(followed.seq_id)
        conversation = owner.conversation if owner else ""
        unix, first = time.time() - time.monotonic(), followed.placed.first
        self.journal.record_run(
            [
                Operation(first + i, at_s + unix, "decode", _ONE_TOKEN, ms, conversation)
                for i, (at_s, ms) in enumerate(zip(followed.at_s, followed.ms, strict=True))
            ],
            followed.placed,
        )

    def record(self, followed: Followed) -> None:
        """A decode for the journal."""
        record, batch, kind, ms, _ = followed
        owner = self.pool.by_seq(batch.seq_ids[0][0]) if batch.seq_ids and batch.seq_ids[0] else None
        conversation = owner.conversation if owner else ""
        call = f"llama_decode({len(batch.tokens)} tokens) -> {record.rc}"
        self.journal.record(Operation(record.operation, time.time(), kind, call, ms, conversation), record)

    def view(self, undoable: tuple[int, ...] = ()) -> CacheView:
        """The cache and its leases, frozen. Read-only."""
        context = self.context
        return CacheView(
            context.snapshot(),
            self.pool.leases(),
            has_report=context.report is not None,
            pending=context.mirror.pending_shift,
            swapped=tuple((c, len(saved.blob)) for c, saved in self.swapped.items()),
            undoable=undoable,
        )

    def audit(self) -> None:
        """Compare every used cell with the engine's own state, and report it as an operation. Read-only."""
        start = time.perf_counter()
        verification = self.context.audit(whole=True)
        self.report("audit", "llama_state_get_data(ctx, dst, size)", start, reason=f"the map is {verification.state}")

    def save_report(self, path: Path) -> None:
        """Write the report of the last mismatch as JSON. Raises UserError: there is none, it cannot be written."""
        if self.context.report is None:
            raise UserError("There is no mismatch to report: the map has agreed with the engine.")
        try:
            path.write_text(self.context.report.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise UserError(f"The report could not be written to {path}: {error.strerror}.") from error

    def close(self) -> None:
        """Free the context, then the model."""
        self.context.close()
        self.model.close()

    def report(
        self,
        name: str,
        call: str,
        start: float,
        conversation: ConversationId | None = None,
        reason: str = "",
        *,
        emptied: bool = False,
    ) -> None:
        """Tell of an operation that began at `start` (time.perf_counter)."""
        ms = (time.perf_counter() - start) * 1e3
        number = self.context.mirror.operation
        self._emit(OperationDone(number, time.monotonic(), name, call, ms, conversation, reason, emptied=emptied))

    @contextmanager
    def doing(self, name: str, conversation: ConversationId | None = None, reason: str = "") -> Iterator[None]:
        """What happens to the cache meanwhile is for this: the journal says so. `name` "": as llama.cpp's call."""
        before, self._doing = self._doing, (name or self._doing[0], conversation or "", reason)
        try:
            yield
        finally:
            self._doing = before

    def record_operation(self, number: int, words: str, ms: float) -> None:
        """An operation that is no decode, for the journal."""
        name, conversation, reason = self._doing
        name = name or words.partition("(")[0]
        self.journal.record(Operation(number, time.time(), name, f"llama_memory_{words}", ms, conversation, reason))

    # --- private ------------------------------------------------------------------------------------------------------

    def _prompt_builder(self) -> PromptBuilder | None:
        """None where the model has no text tokenizer; a template that cannot be used gives way to ChatML."""
        vocab = self.model.vocab
        if not vocab.has_text:
            return None
        try:
            builder = PromptBuilder(vocab, self.model.chat_template)
            builder.tokens([Message(MessageId("trial"), ConversationId("trial"), None, "user", "Hello")])
            return builder
        except TemplateError as error:
            self.template_problem = f"The model's chat template cannot be used, so a plain one is: {error}"
            return PromptBuilder(vocab, "")

    def _use(self, context: Context) -> None:
        self.context = context
        self.pool = SequencePool(context.n_seq_max)
        self.journal = Journal(context.mirror)
        context.on_operation = self.record_operation
        self.swapped: dict[ConversationId, Swapped] = {}
