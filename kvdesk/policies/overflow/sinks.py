"""The first few tokens and the latest messages stay; what is between is evicted, and the rest moves down. Pure.

The system prompt is a message like others here. This policy alone goes on when one answer fills the context: then the
beginning of that answer is evicted.
"""

from kvdesk.policies.overflow.oldest import moved_sentence, stop_unmovable, stop_unremovable, tokens_of, why_not_moved
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked


def _plan(now: Situation, can: Abilities) -> OverflowPlan:
    if why := why_not_moved(can):
        return stop_unmovable(now, why)
    oldest = _after_the_sinks(now, now.wanted)
    if not oldest and now.answering and now.n_held - now.n_sinks > now.wanted:
        everything = tuple(i for i, message in enumerate(now.messages[:-1]) if message.end > now.n_sinks)
        return _moved(now, everything, (now.n_sinks, now.n_sinks + now.wanted), cuts_answer=True)
    oldest = oldest or _after_the_sinks(now, now.missing)
    if not oldest:
        return stop_unremovable(now)
    start, end = tokens_of(now, oldest)
    return _moved(now, oldest, (max(start, now.n_sinks), end))


def _moved(
    now: Situation, evicted: tuple[int, ...], removed: tuple[int, int], *, cuts_answer: bool = False
) -> OverflowPlan:
    p0, p1 = removed
    sentence = moved_sentence(now.full, len(evicted), p1 - p0, p0, cuts_answer=cuts_answer)
    return OverflowPlan(Overflow.SINKS, sentence, evicted, (removed,), cuts_answer)


def _after_the_sinks(now: Situation, missing: int) -> tuple[int, ...]:
    """The oldest messages with tokens after the first `n_sinks`, as few as free `missing` tokens; () when even all but
    the last do not.
    """
    found: list[int] = []
    freed = 0
    for i, message in enumerate(now.messages[:-1]):
        if freed >= missing and not message.follows:
            break
        start = max(message.start, now.n_sinks)
        if start >= message.end:
            continue
        found.append(i)
        freed += message.end - start
    return tuple(found) if freed >= missing else ()


POLICY = OverflowPolicy(
    Overflow.SINKS,
    marked("Attention sinks"),
    marked(
        "Fast, least exact: even this answer's beginning may be removed. The first tokens and the latest messages stay."
    ),
    _plan,
    requires=("partial seq_rm", "seq_add"),
    keeps_first_tokens=True,
)
