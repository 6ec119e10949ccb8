"""Which messages have left the context of each conversation, and the prompts without them.

Plans (`kvdesk.policies.overflow`) and renders; what that means for the cache is carried out in `overflow_move`. A
conversation whose messages have left is rendered without them from then on, so that its next prompt begins with what
the cache holds. With "sinks" it is the first tokens of the whole prompt and all from a cut on. Runs on the engine's
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvdesk.backends.local.prompt.prompt import Place, Prompt, PromptBuilder
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.chat import NONE_EVICTED, ConversationId, EvictedMessages, Message, MessageId
from kvdesk.errors import PromptError, TemplateError
from kvdesk.policies.overflow import RESERVE, Abilities, OverflowPlan, Retention, Situation, Span, plan_overflow, shades
from kvdesk.protocol.chat import Generate, MeasureContext, PreviewTurn
from kvdesk.settings import Overflow

Asked = Generate | PreviewTurn | MeasureContext


class ContextFull(PromptError):
    """A prompt does not fit, and its overflow policy lets too little leave. `whole`: the prompt without that."""

    def __init__(self, sentence: str, whole: Prompt) -> None:
        super().__init__(sentence)
        self.whole = whole


MOST_CHARACTERS = 64
"""Characters of a message for each token of the context: no text has so many in a token, and beyond it a message is not
tokenized to find that out."""


@dataclass(frozen=True, slots=True)
class Step:
    """What changes when messages leave. `plan.stops`: nothing can leave, and nothing else here counts.

    gone     messages that leave now, in order; `left` has those of before too
    full     what is full, in words
    whole    the prompt without them
    before   tokens of prompt and answer as they were, `after` without what leaves; the last has no K and V yet
    skipped  tokens at the beginning of the answer that are not in `after`
    """

    plan: OverflowPlan
    full: str
    left: EvictedMessages
    gone: tuple[MessageId, ...]
    whole: Prompt
    before: list[int]
    after: list[int]
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """A prompt that fits. `step` is None where no message had to leave for it."""

    whole: Prompt
    left: EvictedMessages
    step: Step | None = None


class OverflowManager:
    """Of the conversations of one context with `n_ctx_seq` positions for each."""

    def __init__(self, prompts: PromptBuilder, n_ctx_seq: int, can: Abilities) -> None:
        self._prompts = prompts
        self._n_ctx = n_ctx_seq
        self._can = can
        self._left: dict[ConversationId, EvictedMessages] = {}

    def remember(self, asked: Asked, left: EvictedMessages) -> bool:
        """The next prompt of the conversation begins without these. Whether they are others than before."""
        before = self._left.get(asked.conversation, asked.evicted)
        self._left[asked.conversation] = left
        return left != before

    def forget(self, conversation: ConversationId) -> None:
        """All messages of the conversation are there again."""
        self._left.pop(conversation, None)

    def now(self, asked: Asked) -> tuple[Prompt, EvictedMessages]:
        """The prompt without what has left, whether it fits or not, and what that is. Read-only.

        Raises PromptError, TemplateError.
        """
        left = self._remembered(asked)
        try:
            return self._prompt(asked, left), left
        except TemplateError:
            if left == NONE_EVICTED:
                raise
            return self._prompt(asked, NONE_EVICTED), NONE_EVICTED  # what was remembered makes no conversation

    def fit(self, asked: Asked) -> Fit:
        """The prompt without what has left, and without the oldest messages where it does not fit otherwise. Read-only.

        Raises ContextFull: nothing may leave, or not enough; PromptError, TemplateError.
        """
        n_characters = sum(len(message.text) for message in asked.messages[-1:])
        if n_characters > MOST_CHARACTERS * self._n_ctx:
            raise PromptError(
                f"The message has {n_characters:,} characters, far more than the {self._n_ctx:,} tokens of the context"
                " hold."
            )
        whole, left = self.now(asked)
        before = whole
        plan, gone = None, tuple[MessageId, ...]()
        while len(whole.tokens) >= self._n_ctx:
            now = self._situation(asked, whole, len(whole.tokens), answering=False)
            plan = plan_overflow(asked.overflow.value, now, self._can)
            if plan.stops:
                why = "" if asked.overflow is Overflow.STOP else plan.sentence.partition("is full.")[2]
                raise ContextFull(
                    f"The conversation needs {len(whole.tokens):,} tokens, but the context holds {self._n_ctx:,}.{why}"
                    " Shorten it, let the oldest messages leave, or rebuild the context with a larger n_ctx.",
                    whole,
                )
            left, leaving = _leave(asked.messages, whole, left, plan)
            gone += leaving
            whole = self._prompt(asked, left)
        if plan is None:
            return Fit(whole, left)
        return Fit(whole, left, Step(plan, now.full, left, gone, whole, before.tokens, whole.tokens))

    def go_on(self, request: Request, n_cells: int | None = None) -> Step:
        """The context is full while the turn runs: what leaves, so that it can go on. Read-only.

        n_cells: where it is the cache that is full, so many cells the turn can have beside the others that run.
        """
        command, known = request.command, request.known
        answering = bool(request.generated)
        n_held = len(known) - answering  # when its prompt is read; of the token sampled last there is no K and V
        now = self._situation(command, request.whole, n_held, answering=answering)
        if n_cells is not None:
            now = replace(now, n_ctx_seq=n_cells, shared=True)
        plan = plan_overflow(command.overflow.value, now, self._can)
        stop = Step(plan, now.full, request.left, (), request.whole, known, known, request.skipped)
        if plan.stops:
            return stop
        left, gone = _leave(command.messages, request.whole, request.left, plan)
        if plan.parted:
            first, end = plan.ranges[0]
            offset = request.skipped + end - len(request.prompt)
            head = Prompt(
                known[:first] + request.prompt[end:], tuple(p for p in request.whole.places if p.end <= first)
            )
            left = replace(left, partial=(command.answer, offset), policy=plan.policy)
            return Step(plan, now.full, left, gone, head, known, known[:first] + known[end:], max(0, offset))
        try:
            whole = self._prompt(command, left)
        except TemplateError as error:
            why = f"{plan.sentence} But the chat template refuses what is left: {error}"
            return replace(stop, plan=OverflowPlan("stop", why))
        after = whole.tokens + request.generated[request.skipped :]
        if len(after) > now.n_ctx_seq or not gone:
            return replace(stop, plan=OverflowPlan("stop", f"{now.full} is full. The answer ends here."))
        return Step(plan, now.full, left, gone, whole, known, after, request.skipped)

    def shades(self, request: Request) -> tuple[tuple[MessageId, Retention], ...]:
        """How the messages are shown: gone, next to go when a turn of an eighth of the context follows, or there."""
        now = self._situation(
            request.command, request.whole, request.position, answering=request.position > len(request.prompt)
        )
        ahead = replace(now, messages=(*now.messages, Span(now.n_held, now.n_held)), answering=False)
        found = shades(request.command.overflow.value, replace(ahead, n_room=self._n_ctx // RESERVE), self._can)
        known = dict(zip((place.message for place in request.whole.places), found, strict=False))
        for message in request.left.messages:
            known[message] = "gone"
        names = [*(message.id for message in request.command.messages), request.command.answer]
        return tuple((name, known.get(name, "in the cache")) for name in names)

    # --- private ------------------------------------------------------------------------------------------------------

    def _remembered(self, asked: Asked) -> EvictedMessages:
        """What has left; nothing where all fits again, such as on another branch, where nothing may leave, or where
        it left under a policy that keeps another beginning: then it is planned anew, and told.
        """
        left = self._left.get(asked.conversation, asked.evicted)
        if left == NONE_EVICTED or asked.overflow is Overflow.STOP or asked.messages[-1].id in left.messages:
            return NONE_EVICTED
        if _kept_sinks(left, asked.messages) != (asked.overflow is Overflow.SINKS):
            return NONE_EVICTED
        whole = self._prompts.prompt(asked.messages)
        return NONE_EVICTED if len(whole.tokens) + self._n_ctx // RESERVE <= self._n_ctx else left

    def _prompt(self, asked: Asked, left: EvictedMessages) -> Prompt:
        if left == NONE_EVICTED:
            return self._prompts.prompt(asked.messages)
        if asked.overflow is not Overflow.SINKS:
            return self._prompts.prompt([m for m in asked.messages if m.id not in left.messages])
        whole = self._prompts.prompt(asked.messages)
        ends = [place.end for place in whole.places if place.message in left.messages]
        if left.partial is not None:
            answer, n = left.partial
            ends += [min(p.first + n, p.end) for p in whole.places if p.message == answer]
        return _without(whole, Situation((), 0, 0, 0, asked.n_keep).n_sinks, max(ends, default=0))

    def _situation(self, asked: Asked, whole: Prompt, n_held: int, *, answering: bool) -> Situation:
        """A message's tokens end with its own text, so the marks between two belong to the later one. What a template
        puts before the first message by itself belongs to nobody, and stays.
        """
        roles = {message.id: message.role for message in asked.messages}
        spans: list[Span] = []
        start = 0
        for place in whole.places:
            role = roles[place.message]
            if not spans and role != "system" and asked.overflow is not Overflow.SINKS:
                start = place.first
            spans.append(Span(start, place.end, is_system=role == "system", follows=role == "assistant"))
            start = place.end
        if answering:
            spans.append(Span(start, n_held, follows=True))
        return Situation(tuple(spans), n_held, 1, self._n_ctx, asked.n_keep, answering)


def _leave(
    messages: Sequence[Message], whole: Prompt, left: EvictedMessages, plan: OverflowPlan
) -> tuple[EvictedMessages, tuple[MessageId, ...]]:
    """What has left after the plan, and which messages leave now; also those between them without a place."""
    if not plan.gone:
        return left, ()
    names = [message.id for message in messages]
    first, last = (names.index(whole.places[i].message) for i in (plan.gone[0], plan.gone[-1]))
    gone = tuple(name for name in names[first : last + 1] if name not in left.messages)
    return replace(left, messages=left.messages | set(gone), policy=plan.policy), gone


def _kept_sinks(left: EvictedMessages, messages: Sequence[Message]) -> bool:
    """Whether the first tokens stayed when it left, not the system prompt ("slide" and "recompute" keep that)."""
    if left.policy:
        return left.policy == Overflow.SINKS
    return left.partial is not None or any(m.role == "system" and m.id in left.messages for m in messages)


def _without(whole: Prompt, first: int, end: int) -> Prompt:
    """The prompt without its tokens `[first, end)`."""
    if end <= first:
        return whole
    places, by = [], end - first
    for place in whole.places:
        if place.end > end:
            start = max(place.first, end)
            places.append(Place(place.message, start - by, place.end - by, place.char_ends[start - place.first :]))
    return Prompt(whole.tokens[:first] + whole.tokens[end:], tuple(places))
