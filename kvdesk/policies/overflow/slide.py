"""The oldest messages are evicted and the rest moves down, with K and V unchanged: fast, approximate. Pure."""

from kvdesk.policies.overflow.oldest import (
    moved_sentence,
    oldest_messages,
    stop_unmovable,
    stop_unremovable,
    tokens_of,
    why_not_moved,
)
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked


def _plan(now: Situation, can: Abilities) -> OverflowPlan:
    if why := why_not_moved(can):
        return stop_unmovable(now, why)
    oldest = oldest_messages(now, now.wanted) or oldest_messages(now, now.missing)
    if not oldest:
        return stop_unremovable(now)
    p0, p1 = tokens_of(now, oldest)
    return OverflowPlan(Overflow.SLIDE, moved_sentence(now.full, len(oldest), p1 - p0, p0), oldest, ((p0, p1),))


POLICY = OverflowPolicy(
    Overflow.SLIDE,
    marked("Slide"),
    marked(
        "Fast, nearly exact: the oldest messages are removed. What was computed from them for later messages is kept, "
        "so answers differ a little from those of a shorter conversation."
    ),
    _plan,
    requires=("partial seq_rm", "seq_add"),
)
