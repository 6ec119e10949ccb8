"""What is evicted when a context is full: a plan, announced in a sentence. Pure.

`kvdesk.settings.Overflow` lists the names of the policies; the module of the same name here declares its `POLICY`.
Messages are evicted whole, an answer together with its question; two policies evict single tokens (`least_worth`).
Never silently. If the model cannot do what was chosen, the plan says so and stops.
"""

from importlib import import_module
from typing import Final, Literal

from kvdesk.policies.overflow.least_worth import N_RECENT, joined
from kvdesk.policies.overflow.oldest import moved_sentence, recomputed_sentence
from kvdesk.policies.overflow.plan import (
    Abilities,
    Measure,
    OverflowPlan,
    OverflowPolicy,
    Situation,
    Span,
    Tokens,
    Worth,
)
from kvdesk.settings import Overflow
from kvdesk.translation import tr

__all__ = [
    "N_RECENT",
    "POLICIES",
    "Abilities",
    "Measure",
    "OverflowPlan",
    "OverflowPolicy",
    "Retention",
    "Situation",
    "Span",
    "Tokens",
    "Worth",
    "joined",
    "moved_sentence",
    "plan_overflow",
    "policy_of",
    "recomputed_sentence",
    "retention",
]

Retention = Literal["in the cache", "next", "evicted"]
"""How a message is shown: it is in the cache, it is evicted next, it was evicted."""


def _declared(name: Overflow) -> OverflowPolicy:
    policy: OverflowPolicy = import_module(f"{__name__}.{name}").POLICY
    return policy


POLICIES: Final = tuple(map(_declared, Overflow))
"""In the order in which they are offered."""

_BY_NAME: Final = {policy.name: policy for policy in POLICIES}


def policy_of(name: Overflow) -> OverflowPolicy:
    """The declaration of a policy."""
    return _BY_NAME[name]


def plan_overflow(name: Overflow, now: Situation, can: Abilities) -> OverflowPlan:
    """What is evicted so that `n_room` more tokens fit; nothing if they fit already."""
    return OverflowPlan(name, tr("There is room.")) if now.missing <= 0 else policy_of(name).plan(now, can)


def retention(name: Overflow, now: Situation, can: Abilities) -> tuple[Retention, ...]:
    """How each message is shown. `n_room`: what the next turn is expected to need."""
    leaving = set(plan_overflow(name, now, can).evicted)
    return tuple("next" if i in leaving else "in the cache" for i in range(len(now.messages)))
