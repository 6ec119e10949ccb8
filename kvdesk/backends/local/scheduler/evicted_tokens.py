"""What was evicted after a plan, and prompts without it. Pure.

Messages leave whole, or lose single tokens: their cuts, as ranges of the tokens of a message's text.
"""

from collections.abc import Sequence

from kvdesk.backends.local.prompt.prompt import Place, Prompt
from kvdesk.chat import EvictedMessages
from kvdesk.message import Message, MessageId
from kvdesk.policies.overflow import OverflowPlan, OverflowPolicy, Tokens, joined, policy_of
from kvdesk.settings import Overflow
from kvdesk.values import replace


def removed_tokens(
    plans: Sequence[OverflowPlan], policy: OverflowPolicy, before: list[int], after: list[int]
) -> tuple[Tokens, ...]:
    """`overflow_manager.Step.removed`. If several plans followed each other, all removed messages at the same place."""
    removed = plans[0].removed
    if len(removed) == 1:
        p0, _ = removed[0]
        removed = ((p0, p0 + len(before) - len(after)),)
    left = before.copy()
    for p0, p1 in reversed(removed):
        del left[p0:p1]
    return removed if not policy.exact and len(after) < len(before) and left == after else ()


def after_plan(
    messages: Sequence[Message], whole: Prompt, evicted: EvictedMessages, plan: OverflowPlan
) -> tuple[EvictedMessages, tuple[MessageId, ...]]:
    """What is evicted after the plan, and which messages are since it; also those between them without a place."""
    if policy_of(plan.policy).measures:
        return replace(evicted, policy=plan.policy.value, cuts=_cut(whole, evicted, plan.removed)), ()
    if not plan.evicted:
        return evicted, ()
    names = [message.id for message in messages]
    first, last = (names.index(whole.places[i].message) for i in (plan.evicted[0], plan.evicted[-1]))
    newly = tuple(name for name in names[first : last + 1] if name not in evicted.messages)
    return replace(evicted, messages=evicted.messages | set(newly), policy=plan.policy.value), newly


def _cut(
    whole: Prompt, evicted: EvictedMessages, removed: Sequence[Tokens]
) -> tuple[tuple[MessageId, tuple[Tokens, ...]], ...]:
    """The cuts after these tokens of a prompt, which is without those before, are evicted too."""
    found = dict(evicted.cuts)
    for place in whole.places:
        leaving = {i - place.first for p0, p1 in removed for i in range(max(p0, place.first), min(p1, place.end))}
        if leaving:
            before = found.get(place.message, ())
            stayed = _staying(before, place.end - place.first)
            found[place.message] = joined((*before, *((stayed[i], stayed[i] + 1) for i in leaving)))
    return tuple(found.items())


def _staying(cuts: Sequence[Tokens], n: int) -> list[int]:
    """The first `n` tokens of a message's text that are in no cut, by their numbers in all of it."""
    found, start = list[int](), 0
    for p0, p1 in cuts:
        found += range(start, min(p0, start + n - len(found)))
        start = max(start, p1)
    return [*found, *range(start, start + n - len(found))]


def torn(whole: Prompt, evicted: EvictedMessages, n_held: int) -> set[MessageId]:
    """Messages that would be read with a gap, since only the first `n_held` tokens of the prompt are there."""
    cuts, found = dict(evicted.cuts), set[MessageId]()
    for place in whole.places:
        if ranges := cuts.get(place.message, ()):
            behind = place.first + ranges[-1][1] - sum(p1 - p0 for p0, p1 in ranges)  # where its last gap is
            if min(behind, place.end) >= n_held:
                found.add(place.message)
    return found


def with_cuts(whole: Prompt, evicted: EvictedMessages) -> Prompt:
    """The prompt without the tokens that were evicted from its messages."""
    cuts, tokens, places = dict(evicted.cuts), list[int](), list[Place]()
    if not cuts:
        return whole
    end = 0
    for place in whole.places:
        n = place.end - place.first
        kept = [i for i in _staying(cuts.get(place.message, ()), n) if max(0, end - place.first) <= i < n]
        tokens += whole.tokens[end : place.first]
        first, end = len(tokens), place.end
        tokens += [whole.tokens[place.first + i] for i in kept]
        places.append(Place(place.message, first, len(tokens), tuple(place.char_ends[i] for i in kept)))
    return replace(whole, tokens=tokens + whole.tokens[end:], places=tuple(places))


def kept_first_tokens(evicted: EvictedMessages, messages: Sequence[Message]) -> bool:
    """Whether the first tokens stayed when these were evicted, and not the system prompt."""
    if evicted.policy:
        return evicted.policy in set(Overflow) and policy_of(Overflow(evicted.policy)).keeps_first_tokens
    return evicted.partial is not None or any(m.role == "system" and m.id in evicted.messages for m in messages)


def without(whole: Prompt, first: int, end: int) -> Prompt:
    """The prompt without its tokens `[first, end)`."""
    if end <= first:
        return whole
    places, by = [], end - first
    for place in whole.places:
        if place.end > end:
            start = max(place.first, end)
            places.append(Place(place.message, start - by, place.end - by, place.char_ends[start - place.first :]))
    return replace(whole, tokens=whole.tokens[:first] + whole.tokens[end:], places=tuple(places))
