"""What the policies have in common that evict single tokens: those worth least leave, whichever message they are of.

The system prompt, the first tokens, the last ones, the marks of the template and the answer in the making stay. Pure.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kvdesk.policies.overflow.oldest import stop_unmovable, why_not_moved
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, Situation, Tokens, Worth
from kvdesk.policies.overflow.slide import POLICY as SLIDE
from kvdesk.policies.tuned import TILE
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.values import replace

N_RECENT: Final = TILE
"""Tokens at the end that stay. Their attention is what is measured: in one batch."""


def plan_least_worth(
    policy: Overflow, now: Situation, can: Abilities, what: Callable[[int, float], str]
) -> OverflowPlan:
    """Evict the tokens worth least; if that is not known, or too few may leave, the oldest messages, and say why.
    what: such tokens in words, of how many and what they are worth together.
    """
    if why := why_not_moved(can):
        return stop_unmovable(now, why)
    worth = now.worth or Worth([0.0] * now.n_held)  # how many leave is known without it
    if worth.why:
        return _slide_instead(now, can, worth.why)
    may_leave = removable(now, len(worth.values))
    n = now.wanted if len(may_leave) >= now.wanted else now.missing
    if n > len(may_leave):
        return _slide_instead(now, can, tr("All but a few tokens have to stay."))
    leave = sorted(may_leave, key=worth.values.__getitem__)[:n]
    said = what(n, sum(worth.values[i] for i in leave))
    sentence = tr(
        "{full} was full: {what} were removed, and the later tokens moved to lower positions without being computed "
        "again. They were found in {ms:,.0f} ms. From here on, answers are not exact."
    ).format(full=now.full, what=said, ms=worth.ms)
    return OverflowPlan(policy, sentence, removed=joined((i, i + 1) for i in leave))


def removable(now: Situation, n_known: int) -> list[int]:
    """The tokens that may leave, ascending, where what the first `n_known` are worth is known."""
    end = min(n_known, now.n_held) - N_RECENT
    messages = now.messages[:-1] if now.answering else now.messages
    found: list[int] = []
    for message in messages:
        if not message.is_system:
            found += range(max(message.start, message.first, now.n_sinks), min(message.end, end))
    return found


def joined(ranges: Iterable[Tokens]) -> tuple[Tokens, ...]:
    """Ascending and apart from each other."""
    found: list[Tokens] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def _slide_instead(now: Situation, can: Abilities, why: str) -> OverflowPlan:
    plan = SLIDE.plan(now, can)
    why = tr("Which tokens matter least is not known: {why}").format(why=why)
    return replace(plan, sentence=f"{why} {plan.sentence}", why=f"{why} {plan.why}".strip())
