"""The answer ends when the context is full. Pure."""

from kvdesk.policies.overflow.oldest import stop
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked


def _plan(now: Situation, _can: Abilities) -> OverflowPlan:
    return stop(now)


POLICY = OverflowPolicy(
    Overflow.STOP,
    marked("Stop"),
    marked("The answer ends and reports that the context is full. Nothing is removed."),
    _plan,
    evicts=False,
)
