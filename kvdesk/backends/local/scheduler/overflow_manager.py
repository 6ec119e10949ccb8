"""Which messages of each conversation were evicted from the context, and the prompts without them.

Plans (`kvdesk.policies.overflow`) and renders; `overflow_move` carries a plan out in the cache. A conversation is
rendered without its evicted messages and tokens from then on, so that its next prompt begins with what the cache holds.
Under a policy that keeps the first tokens, the prompt is those of the whole prompt and all from a cut on. Single tokens
are only left out where the cache still has what was computed with them. Runs on the engine's thread.
"""

from collections.abc import Sequence
from typing import Protocol

from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.backends.local.prompt.prompt import Prompt, PromptBuilder
from kvdesk.backends.local.scheduler.evicted_tokens import (
    after_plan,
    kept_first_tokens,
    removed_tokens,
    torn,
    with_cuts,
    without,
)
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.chat import NONE_EVICTED, EvictedMessages
from kvdesk.errors import PromptError, TemplateError
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.policies.overflow import (
    Abilities,
    Measure,
    OverflowPlan,
    Retention,
    Situation,
    Span,
    Tokens,
    Worth,
    plan_overflow,
    policy_of,
    retention,
)
from kvdesk.policies.tuned import RESERVE
from kvdesk.protocol.chat import Generate, PreviewTurn
from kvdesk.reasoning import ENDS
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

Asked = Generate | PreviewTurn


class ContextFull(PromptError):
    """A prompt does not fit even without everything that its overflow policy may evict. `whole`: the prompt of all
    messages; empty if it was too long to tokenize. `n_tokens`: tokens that it needs at least.
    """

    def __init__(self, sentence: str, whole: Prompt, n_tokens: int = 0) -> None:
        super().__init__(sentence)
        self.whole, self.n_tokens = whole, n_tokens or len(whole.tokens)


MOST_CHARACTERS = 64
"""Characters per token of the context. No text has more in a token, so a longer one is neither rendered nor
tokenized."""


@dataclass(frozen=True, slots=True)
class Step:
    """What changes when messages are evicted. `plan.stops`: none can be, and the other fields do not matter.

    full           what is full, in words
    evicted        all messages that are no longer in the prompt; `newly_evicted`: those of this step, in order
    whole          the prompt without them
    before, after  tokens of prompt and answer as they were, and without what is evicted; of the last one there are no K
                   and V yet
    removed        the tokens of `before` that are not in `after`, where all behind them moves down as it is; () where
                   it is computed again: by the policy, or since the template renders it otherwise now
    skipped        tokens at the beginning of the answer that are not in `after`
    """

    plan: OverflowPlan
    full: str
    evicted: EvictedMessages
    newly_evicted: tuple[MessageId, ...]
    whole: Prompt
    before: list[int]
    after: list[int]
    removed: tuple[Tokens, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """A prompt that fits. `step` is None if no message had to be evicted.

    generated  ids of the answer that is continued; skipped: how many of the first were evicted
    """

    whole: Prompt
    evicted: EvictedMessages
    step: Step | None = None
    generated: tuple[int, ...] = ()
    skipped: int = 0

    @property
    def tokens(self) -> list[int]:
        """All tokens that must be in the cache when the next one is sampled."""
        return [*self.whole.tokens, *self.generated[self.skipped :]]


class HeldTokens(Protocol):
    """What the cache knows of the tokens it holds; see `kvdesk.backends.local.attention.worth.TokenWorth`."""

    @property
    def stop(self) -> StopFlag: ...
    def n_held(self, conversation: ConversationId, tokens: list[int], *, here: bool) -> int: ...
    def of(
        self, measure: Measure, conversation: ConversationId, tokens: Sequence[int], running: CacheSequence | None
    ) -> Worth: ...
    def price_ms(self, measure: Measure, conversation: ConversationId, tokens: Sequence[int]) -> float | None: ...


@dataclass(frozen=True, slots=True)
class _Continued:
    """An answer to be continued, of which everything was generated already."""

    command: Generate
    whole: Prompt
    evicted: EvictedMessages
    generated: tuple[int, ...]
    skipped: int


class OverflowManager:
    """For the conversations of one context with `n_ctx_seq` positions each."""

    def __init__(self, prompts: PromptBuilder, n_ctx_seq: int, can: Abilities, cells: HeldTokens) -> None:
        self._prompts = prompts
        self._cells = cells
        self._n_ctx = n_ctx_seq
        self._can = can
        self._evicted: dict[ConversationId, EvictedMessages] = {}

    @property
    def stop(self) -> StopFlag:
        """Ends what `fit` and `go_on` measure: they raise Stopped then, and nothing has changed."""
        return self._cells.stop

    def measuring_ms(self, asked: Asked, step: Step | None) -> float | None:
        """What it is expected to take to find the tokens that a step evicts; None until something was measured."""
        measure = policy_of(asked.overflow).measures
        if step is None or measure is None:
            return 0.0
        return self._cells.price_ms(measure, asked.conversation, step.before)

    def remember(self, asked: Asked, evicted: EvictedMessages) -> bool:
        """The conversation's next prompt leaves these out. Returns whether that changed."""
        before = self._evicted.get(asked.conversation, asked.evicted)
        if evicted != before:
            self._evicted[asked.conversation] = evicted
        return evicted != before

    def has_gaps(self, fit: Fit, n_held: int) -> bool:
        """Whether messages without some of their tokens would be read, since only `n_held` tokens of the prompt are
        there.
        """
        return bool(torn(fit.whole, fit.evicted, n_held))

    def forget(self, conversation: ConversationId) -> None:
        """The conversation's next prompt contains all messages again."""
        self._evicted.pop(conversation, None)

    def now(self, asked: Asked, *, here: bool = False) -> tuple[Prompt, EvictedMessages]:
        """The prompt without what was evicted, whether it fits or not, and what that is. Read-only, unless `here`: as
        in `_held`.

        Raises PromptError, TemplateError.
        """
        evicted = self._remembered(asked)
        try:
            return self._held(asked, evicted, here=here)
        except TemplateError:
            if evicted == NONE_EVICTED:
                raise
            return self._prompt(asked, NONE_EVICTED), NONE_EVICTED  # the remaining messages are no conversation

    def fit(self, asked: Asked, *, previewed: bool = False) -> Fit:
        """The prompt without what was evicted, and without what the policy evicts if it does not fit otherwise.
        `previewed`: it will not be carried out, so nothing is measured or restored for it. Read-only but for that.

        Raises ContextFull: nothing may be evicted, or not enough; PromptError, TemplateError, Stopped.
        """
        raw = asked.raw if isinstance(asked, Generate) else None
        n_characters = _least_characters(asked)
        if n_characters > MOST_CHARACTERS * self._n_ctx:
            sentence = tr(
                "The prompt has {n_characters:,} characters, far more than the {n_ctx:,} tokens of the context hold."
            ).format(n_characters=n_characters, n_ctx=self._n_ctx)
            if not isinstance(asked, Generate):
                raise PromptError(sentence)
            raise ContextFull(sentence, Prompt([], ()), -(-n_characters // MOST_CHARACTERS))
        if raw is not None:
            whole = Prompt(self._prompts.raw_tokens(raw), ())
            if len(whole.tokens) < self._n_ctx:
                return Fit(whole, NONE_EVICTED)
            raise ContextFull(self._too_long(whole), whole)
        if isinstance(asked, Generate) and asked.continued is not None:
            return self._fit_continued(asked, asked.continued, previewed=previewed)
        measured = isinstance(asked, Generate) and not previewed
        whole, evicted = self.now(asked)
        if measured and evicted.cuts and len(whole.tokens) >= self._n_ctx:
            whole, evicted = self.now(asked, here=True)
        before, plans = whole, list[OverflowPlan]()
        newly: tuple[MessageId, ...] = ()
        while len(whole.tokens) >= self._n_ctx:
            now = self._situation(asked, whole, len(whole.tokens), answering=False)
            plan = self._plan(asked, now, whole.tokens, measured=measured)
            if plan.stops:
                raise ContextFull(self._too_long(whole, plan.why), whole)
            evicted, more = after_plan(asked.messages, whole, evicted, plan)
            newly += more
            plans.append(plan)
            whole = self._prompt(asked, evicted)
        if not plans:
            return Fit(whole, evicted)
        removed = removed_tokens(plans, policy_of(asked.overflow), before.tokens, whole.tokens)
        step = Step(plans[-1], now.full, evicted, newly, whole, before.tokens, whole.tokens, removed)
        return Fit(whole, evicted, step)

    def _fit_continued(self, asked: Generate, answer: Message, *, previewed: bool) -> Fit:
        """The same with the answer so far behind the prompt, as if it had never ended. All of its tokens are there
        again.
        """
        generated = tuple(self._prompts.answer_tokens(answer, asked.template))
        evicted = self._remembered(asked, len(generated))
        evicted = replace(evicted, cuts=tuple(cut for cut in evicted.cuts if cut[0] != answer.id))
        whole, evicted = self._held(asked, evicted, here=not previewed)
        skipped = 0
        if evicted.partial is not None and evicted.partial[0] == asked.answer:
            whole, skipped = self._without_beginning(asked, evicted.partial[1])
        fit = Fit(whole, evicted, None, generated, skipped)
        if len(fit.tokens) <= self._n_ctx:
            return fit
        step = self.go_on(_Continued(asked, whole, evicted, generated, skipped), previewed=previewed)
        if step.plan.stops:
            raise ContextFull(step.plan.sentence + " " + tr("Nothing can be added to the answer."), whole)
        return Fit(step.whole, step.evicted, step, generated, step.skipped)

    def _without_beginning(self, asked: Generate, n: int) -> tuple[Prompt, int]:
        """The prompt of an answer whose first `n` tokens were evicted with everything before them except the first
        tokens of all (`n` is negative if marks of the template before it stay), and how many of its tokens are not in
        it.
        """
        whole = self._rendered(asked, asked.messages)
        first, end = Situation((), 0, 0, 0, asked.n_keep).n_sinks, len(whole.tokens) + n
        places = tuple(place for place in whole.places if place.end <= first)
        return replace(whole, tokens=whole.tokens[:first] + whole.tokens[end:], places=places), max(0, n)

    def go_on(
        self,
        request: Request | _Continued,
        n_cells: int | None = None,
        sequence: CacheSequence | None = None,
        *,
        previewed: bool = False,
    ) -> Step:
        """The context is full while the request runs: what is evicted, so that it can go on. Read-only.

        n_cells   if the cache is full instead, how many cells the request can have beside the others
        sequence  in which it runs; None: it has not begun. previewed: as in `fit`

        Raises Stopped.
        """
        command, prompt = request.command, request.whole.tokens
        known = [*prompt, *request.generated[request.skipped :]]
        answering = bool(request.generated)
        n_held = len(known) - answering  # after reading its prompt; the token sampled last has no K and V
        now = self._situation(command, request.whole, n_held, answering=answering)
        if n_cells is not None:
            now = replace(now, n_ctx_seq=n_cells, shared=True)
        plan = self._plan(command, now, known, sequence, measured=not previewed)
        stop = Step(plan, now.full, request.evicted, (), request.whole, known, known, skipped=request.skipped)
        if plan.stops:
            return stop
        evicted, newly = after_plan(command.messages, request.whole, request.evicted, plan)
        if plan.cuts_answer:
            ((first, end),) = plan.removed
            offset = request.skipped + end - len(prompt)
            places = tuple(p for p in request.whole.places if p.end <= first)
            head = replace(request.whole, tokens=known[:first] + prompt[end:], places=places)
            evicted = replace(evicted, partial=(command.answer, offset), policy=plan.policy.value)
            after = known[:first] + known[end:]
            return Step(plan, now.full, evicted, newly, head, known, after, plan.removed, max(0, offset))
        try:
            whole = self._prompt(command, evicted)
        except TemplateError as error:
            refused = tr("But the chat template refuses what is left: {error}").format(error=error)
            why = f"{plan.sentence} {refused}"
            return replace(stop, plan=OverflowPlan(Overflow.STOP, why))
        after = [*whole.tokens, *request.generated[request.skipped :]]
        if len(after) > now.n_ctx_seq or len(after) == len(known):
            return replace(
                stop,
                plan=OverflowPlan(Overflow.STOP, tr("{what} is full. The answer ends here.").format(what=now.full)),
            )
        removed = removed_tokens([plan], policy_of(command.overflow), known, after)
        return Step(plan, now.full, evicted, newly, whole, known, after, removed, request.skipped)

    def retention(self, request: Request) -> tuple[tuple[MessageId, Retention], ...]:
        """How messages are shown: evicted, next to be evicted by a turn of an eighth of the context, or in it."""
        now = self._situation(
            request.command, request.whole, request.position, answering=request.position > len(request.prompt)
        )
        ahead = replace(now, messages=(*now.messages, Span(now.n_held, now.n_held)), answering=False)
        found = retention(request.command.overflow, replace(ahead, n_room=self._n_ctx // RESERVE), self._can)
        known = dict(zip((place.message for place in request.whole.places), found, strict=False))
        for message in request.evicted.messages:
            known[message] = "evicted"
        names = [*(message.id for message in request.command.messages), request.command.answer]
        return tuple((name, known.get(name, "in the cache")) for name in names)

    # --- private ------------------------------------------------------------------------------------------------------

    def _plan(
        self,
        asked: Asked,
        now: Situation,
        tokens: Sequence[int],
        sequence: CacheSequence | None = None,
        *,
        measured: bool,
    ) -> OverflowPlan:
        """What the policy evicts of these tokens. `measured`: it is carried out, so what it asks for is measured."""
        measure = policy_of(asked.overflow).measures
        if measured and measure is not None and self._can.can_remove_part and self._can.can_shift:
            now = replace(now, worth=self._cells.of(measure, asked.conversation, tokens, sequence))
        return plan_overflow(asked.overflow, now, self._can)

    def _too_long(self, whole: Prompt, why: str = "") -> str:
        needs = tr("The conversation needs {n_tokens:,} tokens, but the context holds {n_ctx:,}.")
        helps = tr("Shorten it, let the oldest messages be removed, or rebuild the context with a larger n_ctx.")
        said = needs.format(n_tokens=len(whole.tokens), n_ctx=self._n_ctx), why, helps
        return " ".join(part for part in said if part)

    def _remembered(self, asked: Asked, n_answer: int = 0) -> EvictedMessages:
        """What was evicted; nothing if everything fits again, for example on another branch, if nothing may be evicted,
        or if that was under a policy that keeps another beginning. Then a new plan is made and reported.

        n_answer  tokens of a continued answer, whose question may have been evicted
        """
        evicted = self._evicted.get(asked.conversation, asked.evicted)
        policy = policy_of(asked.overflow)
        if evicted == NONE_EVICTED or not policy.evicts:
            return NONE_EVICTED
        if asked.messages[-1].id in evicted.messages and not n_answer:
            return NONE_EVICTED
        if kept_first_tokens(evicted, asked.messages) != policy.keeps_first_tokens:
            return NONE_EVICTED
        whole = self._rendered(asked, asked.messages)
        if len(whole.tokens) + n_answer + self._n_ctx // RESERVE <= self._n_ctx:
            return NONE_EVICTED
        return replace(evicted, cuts=()) if policy.exact else evicted

    def _prompt(self, asked: Asked, evicted: EvictedMessages) -> Prompt:
        if evicted == NONE_EVICTED:
            return self._rendered(asked, asked.messages)
        if not policy_of(asked.overflow).keeps_first_tokens:
            left = [m for m in asked.messages if m.id not in evicted.messages]
            return with_cuts(self._rendered(asked, left), evicted)
        whole = self._rendered(asked, asked.messages)
        ends = [place.end for place in whole.places if place.message in evicted.messages]
        if evicted.partial is not None:
            answer, n = evicted.partial
            ends += [min(p.first + n, p.end) for p in whole.places if p.message == answer]
        return without(whole, Situation((), 0, 0, 0, asked.n_keep).n_sinks, max(ends, default=0))

    def _held(self, asked: Asked, evicted: EvictedMessages, *, here: bool) -> tuple[Prompt, EvictedMessages]:
        """The prompt, and what is evicted from it. Single tokens stay evicted only where the cache or a saved state has
        what is behind them, which was computed with them: what is read again, is read whole. `here`: where the
        cache has it, once a saved state was restored.
        """
        prompt = self._prompt(asked, evicted)
        if not evicted.cuts:
            return prompt, evicted
        n_held = self._cells.n_held(asked.conversation, prompt.tokens, here=here)
        lost = torn(prompt, evicted, n_held)
        if not lost:
            return prompt, evicted
        evicted = replace(evicted, cuts=tuple(cut for cut in evicted.cuts if cut[0] not in lost))
        return self._prompt(asked, evicted), evicted

    def _rendered(self, asked: Asked, messages: Sequence[Message]) -> Prompt:
        return self._prompts.prompt(messages, asked.template, asked.tools, asked.variables)

    def _situation(self, asked: Asked, whole: Prompt, n_held: int, *, answering: bool) -> Situation:
        """A message's tokens end with its own text, so the template's marks between two belong to the later one. What a
        template puts before the first message belongs to no message, and stays.
        """
        roles = {message.id: message.role for message in asked.messages}
        spans: list[Span] = []
        start = 0
        for place in whole.places:
            role = roles[place.message]
            if not spans and role != "system" and not policy_of(asked.overflow).keeps_first_tokens:
                start = place.first
            spans.append(Span(start, place.end, role == "system", role == "assistant", place.first))
            start = place.end
        if answering:
            spans.append(Span(start, n_held, follows=True, first=start))
        return Situation(tuple(spans), n_held, 1, self._n_ctx, asked.n_keep, answering)


def _least_characters(asked: Asked) -> int:
    """Fewest characters that the prompt can have, whatever is evicted. Of an answer only what follows its reasoning
    counts, because many templates leave that out. A preview counts only the last message, to show how much too long the
    conversation is.
    """
    last = sum(len(message.text) for message in asked.messages[-1:])
    if not isinstance(asked, Generate):
        return last
    policy = policy_of(asked.overflow)
    n = last + len(asked.tools) + (len(asked.raw.text) if asked.raw is not None else 0)
    for message in asked.messages[:-1]:
        if not policy.evicts or (message.role == "system" and not policy.keeps_first_tokens):
            n += _n_said(message) + len(message.fields)
    if asked.continued is not None and not policy.keeps_first_tokens:
        n += len(asked.continued.text)
    return n


def _n_said(message: Message) -> int:
    """Characters of a message, for an answer without its reasoning."""
    if message.role != "assistant":
        return len(message.text)
    known = ENDS if message.marks is None else (*ENDS, message.marks.end)
    ends = (message.text.rfind(mark) + len(mark) for mark in known if mark in message.text)
    return len(message.text) - max(ends, default=0)
