"""The tokens that the last ones looked at least are evicted, and the rest moves down. Pure."""

from kvdesk.policies.overflow.least_worth import N_RECENT, plan_least_worth
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked, plural


def _plan(now: Situation, can: Abilities) -> OverflowPlan:
    def what(n: int, share: float) -> str:
        return plural(
            "the token that the last {last} looked at least ({share:.1%} of their attention)",
            "the %n tokens that the last {last} looked at least ({share:.1%} of their attention)",
            n,
        ).format(last=N_RECENT, share=share)

    return plan_least_worth(Overflow.LEAST_ATTENDED, now, can, what)


POLICY = OverflowPolicy(
    Overflow.LEAST_ATTENDED,
    marked("Least attended"),
    marked(
        "Single tokens are removed, wherever they are: those that the last 64 looked at least. To find them, those 64 "
        "are decoded once more in a second context each time."
    ),
    _plan,
    requires=("partial seq_rm", "seq_add", "attention"),
    measures="attention",
)
