"""The oldest messages are evicted and all after them is prefilled again: exact, slow. Pure."""

from kvdesk.policies.overflow.oldest import oldest_messages, recomputed_sentence, stop_unremovable, tokens_of
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked


def _plan(now: Situation, can: Abilities) -> OverflowPlan:
    oldest = oldest_messages(now, now.wanted) or oldest_messages(now, now.missing)
    if not oldest:
        return stop_unremovable(now)
    p0, p1 = tokens_of(now, oldest)
    n_read = now.n_held - (p1 - p0) - (p0 if can.can_remove_part else 0)
    sentence = recomputed_sentence(now.full, len(oldest), p1 - p0, n_read)
    return OverflowPlan(Overflow.RECOMPUTE, sentence, oldest, ((p0, p1),))


POLICY = OverflowPolicy(
    Overflow.RECOMPUTE,
    marked("Recompute"),
    marked("Slow, exact: the oldest messages are removed and all others are computed again."),
    _plan,
    exact=True,
)
