"""Predicts what compaction, another context or a turn would do. Changes nothing.

Predicts from measurements on this machine. Runs on the engine's thread.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.documents import Documents
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.params import planned
from kvdesk.backends.local.llama.requantize import stored_otherwise, trial_ms, why_not_converted
from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.backends.local.scheduler.document_runs import document_runs
from kvdesk.backends.local.scheduler.overflow_manager import MOST_CHARACTERS, ContextFull, Fit, OverflowManager
from kvdesk.backends.local.scheduler.overflow_move import move_for
from kvdesk.backends.local.scheduler.speed_model import SpeedModel
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import ContextError, PromptError, RefusedCall, UserError
from kvdesk.library.estimate import available_bytes, check_fits, estimate
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.message import ConversationId, Message
from kvdesk.policies.forecast import Forecast, forecast
from kvdesk.policies.overflow import policy_of
from kvdesk.policies.tuned import RESERVE
from kvdesk.protocol.cache import ContextPreview
from kvdesk.protocol.chat import ContextUse, Generate, MeasureContext, PreviewTurn, TurnPreview
from kvdesk.protocol.operations import CompactionPreview, PreviewCompaction
from kvdesk.protocol.prompt import PreviewPrompt, PriceTools, PromptPreview, PromptToken, ToolPrice, ToolsPriced
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

MOST_PREVIEWED = 200_000
"""Characters of a conversation whose prompt is previewed. Answers wait, 0.3 s for each 100,000 (one core)."""
MOST_SHOWN = 4096
"""Tokens of a prompt that are shown: as many as a person can look through and a document can draw at once."""


class Previews:
    """Predictions for one context. Read-only. `chats`: as `ContextRuntime.chats`."""

    def __init__(
        self,
        context: Context,
        cache: Cache,
        chats: Callable[[], OverflowManager],
        speed_model: SpeedModel,
        documents: Documents,
    ) -> None:
        self._context = context
        self._cache = cache
        self._chats = chats
        self._speed_model = speed_model
        self._documents = documents

    def compaction(self, asked: PreviewCompaction) -> CompactionPreview:
        """The map afterwards, bytes to move and the expected gain. Raises RefusedCall if that is impossible."""
        possible = self._context.capabilities["compaction"]
        if not possible.allowed:
            raise RefusedCall(possible.why)
        plan = self._cache.planned(asked.layout, asked.hot)
        if plan.changes_nothing:
            return CompactionPreview(plan, 1.0, tr("Every cell would stay where it is: nothing would be moved."))
        plan = replace(plan, bytes_to_move=2 * self._context.states.size())
        gain = self._speed_model.costs.speedup(plan.n_kv_before, plan.n_kv_after, self._speed_model.n_visible)
        if plan.n_kv_after >= plan.n_kv_before:
            gain = 1.0
            remark = tr("Attention reads {n:,} cells, and would afterwards too: no speed is gained.").format(
                n=plan.n_kv_before
            )
        elif gain is None:
            remark = tr(
                "Attention would read {after:,} cells instead of {before:,}. What that gains has not been measured "
                "here yet: it needs answers over different spans."
            ).format(after=plan.n_kv_after, before=plan.n_kv_before)
        else:
            remark = tr("Measured here, a token would take {share:.0%} of what it takes now.").format(share=1 / gain)
            if gain < 1.05 and self._context.settings.flash_attn:
                remark += " " + tr("With flash attention masked cells are skipped, so there is little to gain.")
        return CompactionPreview(plan, gain, remark if possible.answer == "yes" else f"{remark} {possible.why}")

    def context(self, header: GgufHeader, freed: int, settings: ContextSettings) -> ContextPreview:
        """Bytes and cost of a context with these settings, refused or not. It replaces the current one, which frees
        `freed` bytes.
        """
        refused, available = "", available_bytes() + freed
        try:
            needed = check_fits(header, settings, available, loaded=True)
        except ContextError as error:
            refused = str(error)
            needed = estimate(header, settings)
        held = (sequence for sequence in self._cache.pool if not sequence.inactive)  # as in `Cache.hold`
        n_tokens = sum(len(sequence.tokens) for sequence in held)
        why_not = why_not_carried(self._context, settings)
        ms = self._speed_model.costs.reading_ms(n_tokens, 0, settings.n_batch) if n_tokens else 0.0
        n_cells = self._cache.totals()[0]
        return ContextPreview(
            settings=settings,
            refused=refused,
            k_bytes=needed.k,
            v_bytes=needed.v,
            recurrent_bytes=needed.r + needed.s,
            compute_bytes=needed.compute + needed.output,
            available_bytes=available,
            tok_s=self._speed_model.decode_tok_s(settings),
            n_tokens=n_tokens,
            seconds=None if ms is None else ms / 1e3,
            carries_state=not why_not,
            why_not_carried=why_not,
            n_cells=n_cells,
            convert_seconds=None if why_not else self._convert_seconds(header, n_cells, settings),
            n_earlier=needed.n_earlier,
            earlier_bytes=needed.earlier,
        )

    def _convert_seconds(self, header: GgufHeader, n_cells: int, settings: ContextSettings) -> float | None:
        """Seconds to convert K and V of `n_cells` cells for a context with these settings, including saving and
        restoring the state; a few numbers are converted to measure it. None: nothing has to be converted.
        """
        now, layers = self._context.settings, read_hyper(header).layers
        if not stored_otherwise(now, settings):
            return None
        ms = self._speed_model.costs.state_ms(self._context.states.size())
        ms += trial_ms(n_cells * sum(layer.k_width for layer in layers), now.type_k, settings.type_k)
        ms += trial_ms(n_cells * sum(layer.v_width for layer in layers), now.type_v, settings.type_v)
        return ms / 1e3

    def measure(self, command: MeasureContext) -> ContextUse:
        """How full a conversation's context is, up to its last message. Raises PromptError, TemplateError."""
        asked, tokens = command.turn, list[int]()
        n_system, n_ctx = 0, self._context.n_ctx_seq
        if asked.messages:
            prompt, _ = self._chats().now(asked)
            tokens = _asked_tokens(asked, prompt)
            n_system = _n_system(prompt, asked)
        cached = self._cache.prefixes.cached(asked.conversation, tokens)
        n_answer = min(asked.max_tokens, n_ctx // RESERVE)
        return ContextUse(asked.conversation, len(tokens), cached, n_ctx, n_system, n_answer)

    def turn(self, asked: PreviewTurn) -> TurnPreview:
        """What a turn would reuse and prefill, when its first token would come, whether the draft fits, and what would
        be evicted for it. Raises PromptError, TemplateError.
        """
        if asked.continued is not None:
            return self._continued(asked, asked.continued)
        n_ctx = self._context.n_ctx_seq
        n_answer = min(asked.max_tokens, n_ctx // RESERVE)
        if len(asked.messages[-1].text) > MOST_CHARACTERS * n_ctx:
            beginning = self.turn(_beginning(asked, n_ctx))
            return _far_too_long(beginning, asked)
        try:
            fit = self._chats().fit(asked)
        except ContextFull as full:
            draft = _draft(full.whole, asked)
            rest = len(full.whole.tokens) - draft.n_tokens
            shown = replace(
                _NOTHING, conversation=asked.conversation, n_ctx=n_ctx, n_conversation=rest, n_answer=n_answer
            )
            shown = replace(shown, refused=str(full), n_system=_n_system(full.whole, asked))
            return _with_draft(shown, draft, asked)
        found = self._forecast(asked, _asked_tokens(asked, fit.whole), fit)
        draft = _draft(fit.whole, asked)
        n_evicted = len(fit.step.before) - len(fit.step.after) if fit.step else 0
        shown = TurnPreview(
            asked.conversation,
            found.n_reused,
            found.n_prefill,
            found.first_token_ms,
            found.sentence,
            n_ctx,
            n_conversation=len(fit.whole.tokens) + n_evicted - draft.n_tokens,
            n_answer=n_answer,
            n_evicted_tokens=n_evicted,
            n_evicted_messages=len(fit.step.newly_evicted) if fit.step else 0,
            n_system=_n_system(fit.whole, asked),
            n_put=found.n_put,
        )
        return _with_draft(shown, draft, asked)

    def _continued(self, asked: PreviewTurn, answer: Message) -> TurnPreview:
        command = Generate(
            asked.conversation, answer.id, asked.messages, Sampling(), asked.overflow, asked.n_keep, asked.evicted,
            template=asked.template, continued=answer, tools=asked.tools, variables=asked.variables,
        )  # fmt: skip
        shown = replace(_NOTHING, conversation=asked.conversation, replaced=asked.replaced)
        try:
            fit = self._chats().fit(command, previewed=True)
        except ContextFull as full:
            return replace(shown, refused=str(full))
        found = self._forecast(asked, fit.tokens, fit)
        return replace(
            shown, n_reused=found.n_reused, n_prefill=found.n_prefill, first_token_ms=found.first_token_ms,
            sentence=found.sentence, n_ctx=self._context.n_ctx_seq, n_put=found.n_put,
        )  # fmt: skip

    def _forecast(self, asked: PreviewTurn, prompt: list[int], fit: Fit) -> Forecast:
        """What a turn with this prompt, whole or a part of what fits, would reuse and prefill, and when its first token
        would come.
        """
        step = fit.step
        reused, restore_ms = self._cache.estimate_reuse(
            asked.conversation, prompt, moved=not policy_of(asked.overflow).exact
        )
        costs = self._speed_model.costs
        held, n_bytes = self._cache.held_if_restored(asked.conversation)
        restored = not n_bytes or policy_of(asked.overflow).measures is not None  # first, to be measured
        move = move_for(held, step) if step and restored else None
        if move is not None and move.n_kept > reused:
            reused, restore_ms = move.n_kept, costs.state_ms(n_bytes)
        exact = policy_of(asked.overflow).exact
        runs = () if exact else document_runs(fit.whole.places, asked.documents)
        splices = self._documents.planned(prompt, runs, reused)
        return forecast(
            len(prompt), reused, costs, self._context.n_batch,
            restore_ms=restore_ms + sum(splice.offer.restore_ms for splice in splices),
            measuring_ms=self._chats().measuring_ms(asked, step),
            n_put=sum(splice.n_tokens for splice in splices),
        )  # fmt: skip

    def prompt(self, asked: PreviewPrompt) -> PromptPreview:
        """The tokens of a turn's prompt, and how many more than now are prefilled for it. Raises PromptError;
        TemplateError if it cannot be rendered.
        """
        shown = PromptPreview(asked.turn.conversation, asked.number)
        n_characters = sum(len(message.text) for message in asked.turn.messages)
        if n_characters > MOST_PREVIEWED:
            sentence = tr("This chat has {n} characters. The prompt is shown, and a template checked, up to {most}.")
            raise PromptError(sentence.format(n=f"{n_characters:,}", most=f"{MOST_PREVIEWED:,}"))
        try:
            fit = self._chats().fit(asked.turn)
        except ContextFull as full:
            return _with_tokens(
                replace(shown, refused=str(full)), self._context.model.vocab, _asked_tokens(asked.turn, full.whole)
            )
        tokens = _asked_tokens(asked.turn, fit.whole)
        found = now = self._forecast(asked.turn, tokens, fit)
        if asked.now != asked.turn:
            try:
                fit_now = self._chats().fit(asked.now)
                now = self._forecast(asked.now, _asked_tokens(asked.now, fit_now.whole), fit_now)
            except UserError:
                now = Forecast(0, 0, 0.0)  # no answer is possible now, so the change costs everything
        ms, ms_now = found.first_token_ms, now.first_token_ms
        again_ms = None if ms is None or ms_now is None else max(0.0, ms - ms_now)
        n_again = max(0, found.n_prefill - now.n_prefill)
        shown = replace(shown, n_cached=found.n_reused, n_again=n_again, again_ms=again_ms)
        return _with_tokens(shown, self._context.model.vocab, tokens)

    def tools(self, asked: PriceTools) -> ToolsPriced:
        """Tokens of the schemas of each server, their place, and what is read again without them. Raises PromptError,
        TemplateError.
        """
        n_ctx, costs, n_batch = self._context.n_ctx_seq, self._speed_model.costs, self._context.n_batch
        if len(asked.turn.tools) > MOST_CHARACTERS * n_ctx:
            raise PromptError(tr("The schemas of these tools are far longer than the context."))
        whole = _asked_tokens(asked.turn, self._chats().now(asked.turn)[0])
        prices = []
        for server, others in asked.without:
            turn = replace(asked.turn, tools=others)
            rest = _asked_tokens(turn, self._chats().now(turn)[0])
            n, start = len(whole) - len(rest), common_prefix(whole, rest)
            end = len(whole) - min(common_prefix(whole[::-1], rest[::-1]), len(rest) - start)
            n_again = len(rest) - start
            again_ms, latest = costs.reading_ms(n_again, start, n_batch), start
            while start and whole[start - 1] == whole[end - 1]:  # the beginning belongs to this server, not the next
                start, end = start - 1, end - 1
            ms = costs.reading_ms(max(n, 0), start, n_batch)
            prices.append((ToolPrice(server, n, start, end, n_again, ms, again_ms), latest))
        return ToolsPriced(asked.turn.conversation, asked.number, _apart(prices), n_ctx)


def _apart(prices: Sequence[tuple[ToolPrice, int]]) -> tuple[ToolPrice, ...]:
    """The schemas in the order of the prompt, each behind the one before it. Given with the latest place where each may
    begin: schemas that end with the same tokens may begin at several places.
    """
    found: list[ToolPrice] = []
    for price, latest in sorted(prices, key=lambda one: one[0].p0):
        overlap = found[-1].p1 - price.p0 if found else 0
        by = min(max(overlap, 0), latest - price.p0)
        found.append(replace(price, p0=price.p0 + by, p1=price.p1 + by))
    return tuple(found)


def _with_tokens(shown: PromptPreview, vocab: Vocab, tokens: list[int]) -> PromptPreview:
    """Add the texts of the tokens: all of them, or the first and the last `MOST_SHOWN // 2`."""
    n = len(tokens)
    n_head, n_tail = (n, 0) if n <= MOST_SHOWN else (MOST_SHOWN // 2, MOST_SHOWN // 2)
    pieces: list[PromptToken] = []
    for part in (tokens[:n_head], tokens[n - n_tail :] if n_tail else []):
        utf8 = Utf8Decoder()
        for token in part:
            is_special = vocab.is_control(token)
            text = vocab.label(token) if is_special else utf8.decode(vocab.piece(token))
            pieces.append(PromptToken(token, text, is_special))
    return replace(shown, tokens=tuple(pieces), n_head=n_head, n_left_out=n - n_head - n_tail, n_tokens=n)


def _asked_tokens(asked: PreviewTurn, whole: Prompt) -> list[int]:
    """The tokens of a prompt. If its last message is an answer, it ends with that: no other answer begins after it."""
    answered = asked.messages[-1].role == "assistant"
    return whole.tokens[: whole.places[-1].end if answered and whole.places else None]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The unsent text, with its attachments before it: its tokens, and how many of its characters are complete after
    each; empty if unknown.
    """

    n_tokens: int
    char_ends: tuple[int, ...] = ()

    def n_characters(self, n_tokens: int) -> int:
        """Characters in `n_tokens` tokens."""
        n = min(n_tokens, len(self.char_ends))
        return self.char_ends[n - 1] if n > 0 else 0

    def tokens_of(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Tokens of each of its parts, given their lengths in characters; () if unknown."""
        if not self.char_ends:
            return ()
        ends = [0, *(bisect_right(self.char_ends, end) for end in accumulate(lengths))]
        return tuple(end - start for start, end in pairwise(ends))


def _draft(whole: Prompt, asked: PreviewTurn) -> _Draft:
    """The last message in the prompt; if the template changed its text, everything after the previous message."""
    last = whole.places[-1] if whole.places else None
    question = asked.messages[-1]
    if last is not None and last.message == question.id:
        n_characters = asked.n_typed + sum(asked.n_attached)
        before = len(question.text) - n_characters if n_characters else 0
        ends = tuple(end - before for end in last.char_ends if end > before)
        return _Draft(len(ends), ends)
    return _Draft(len(whole.tokens) - (last.end if last is not None else 0))


def _with_draft(shown: TurnPreview, draft: _Draft, asked: PreviewTurn) -> TurnPreview:
    """The preview with the facts about the draft: its tokens, and how much of it fits."""
    n_attached, n_before = draft.tokens_of(asked.n_attached), sum(asked.n_attached)
    room_beside = shown.room - (draft.n_tokens - sum(n_attached)) - _CUT
    return replace(
        shown,
        n_draft=draft.n_tokens,
        text=asked.text,
        replaced=asked.replaced,
        n_fitting=max(0, draft.n_characters(shown.room) - n_before),
        n_attached=n_attached,
        attached_chars=asked.n_attached,
        n_attached_fitting=min(n_before, draft.n_characters(room_beside)),
    )


def _beginning(asked: PreviewTurn, n_ctx: int) -> PreviewTurn:
    """The same with only as much of the draft as is needed to see how much fits."""
    question = asked.messages[-1]
    n_draft = asked.n_typed + sum(asked.n_attached) or len(question.text)
    n_kept = min(n_draft, _COUNTED * n_ctx)
    text = question.text[: len(question.text) - n_draft + n_kept]
    short = replace(question, text=text[: MOST_CHARACTERS * n_ctx])
    return replace(asked, messages=(*asked.messages[:-1], short), n_typed=n_kept, n_attached=())


def _far_too_long(beginning: TurnPreview, asked: PreviewTurn) -> TurnPreview:
    """For a draft that is too long to tokenize: how much fits, from a preview of its beginning. `n_draft` is 0."""
    n_ctx = beginning.n_ctx
    n_characters, n_attached = asked.n_typed + sum(asked.n_attached), sum(asked.n_attached)
    n_fitting = beginning.n_fitting if beginning.refused else _COUNTED * n_ctx
    return replace(
        _NOTHING,
        conversation=asked.conversation,
        n_ctx=n_ctx,
        n_conversation=beginning.n_conversation,
        n_answer=beginning.n_answer,
        n_system=beginning.n_system,
        refused=tr("Too long: {n_characters:,} characters, far more than {n_ctx:,} tokens hold").format(
            n_characters=n_characters, n_ctx=n_ctx
        ),
        text=asked.text,
        replaced=asked.replaced,
        n_fitting=max(0, n_fitting - n_attached),
        attached_chars=asked.n_attached,
        n_attached_fitting=min(n_attached, max(0, n_fitting - asked.n_typed - _CUT * 4)),
    )


def _n_system(prompt: Prompt, asked: PreviewTurn) -> int:
    """Tokens of the system prompt, including what the template writes before it."""
    first = asked.messages[0]
    if first.role != "system" or not prompt.places or prompt.places[0].message != first.id:
        return 0
    return prompt.places[0].end


_COUNTED = 16
"""Characters per token of the context that are tokenized of a draft that is far too long."""
_CUT = 16
"""Tokens at the end of a shortened attachment: its fence, and a token that the cut may split."""
_NOTHING = TurnPreview(ConversationId(""), 0, 0, None, "")


def why_not_carried(context: Context, settings: ContextSettings) -> str:
    """Why saved states of this context do not fit into one with other settings; "" if they do."""
    now = context.settings
    possible = context.capabilities["swap"]
    if not possible.allowed:
        return possible.why
    if stored_otherwise(now, settings):
        return why_not_converted(context, settings)
    try:
        n_stream = planned(context.model, settings).n_stream
    except ContextError as error:
        return str(error)
    if n_stream != context.traits.geometry.n_stream:
        return tr("Saved states do not fit into another number of streams: they must be computed again.")
    if settings.exact and (not now.exact or now.graph_tokens != settings.graph_tokens):
        return tr("Exact answers need K and V of graphs of {n} tokens: they must be computed again.").format(
            n=settings.graph_tokens
        )
    return ""
