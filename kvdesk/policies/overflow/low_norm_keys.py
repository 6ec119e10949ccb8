"""The tokens whose keys have the largest norms are evicted, those with low norms stay, and the rest moves down. Pure.

Keys of low norm get most attention (Devoto et al., "A Simple and Effective L2 Norm-Based Strategy for KV Cache
Compression", arXiv 2406.11430): the experiment `eviction` measures whether that is so.
"""

from kvdesk.policies.overflow.least_worth import plan_least_worth
from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, OverflowPolicy, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import marked, plural


def _plan(now: Situation, can: Abilities) -> OverflowPlan:
    def what(n: int, _: float) -> str:
        return plural("the token with the longest key", "the %n tokens with the longest keys", n)

    return plan_least_worth(Overflow.LOW_NORM_KEYS, now, can, what)


POLICY = OverflowPolicy(
    Overflow.LOW_NORM_KEYS,
    marked("Low-norm keys"),
    marked(
        "Single tokens are removed, wherever they are: those with the longest keys. Keys of low norm stay. The norms "
        "are read from the cache, and nothing is computed."
    ),
    _plan,
    requires=("partial seq_rm", "seq_add", "swap"),
    measures="norms of K",
)
