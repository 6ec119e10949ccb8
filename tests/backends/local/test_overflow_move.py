"""An overflow plan is carried out as planned: which tokens are removed is decided once."""

from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.backends.local.scheduler.evicted_tokens import removed_tokens
from kvdesk.backends.local.scheduler.overflow_manager import Step
from kvdesk.backends.local.scheduler.overflow_move import Move, move_for
from kvdesk.chat import NONE_EVICTED
from kvdesk.policies.overflow import OverflowPlan, policy_of
from kvdesk.settings import Overflow

MARK = [1, 2]
BEFORE = [9, *MARK, 30, 31, *MARK, 40, 41, 42, *MARK, 50]
AFTER = [9, *MARK, 40, 41, 42, *MARK, 50]
PLAN = OverflowPlan(Overflow.SLIDE, "", (1,), ((1, 5),))


def step(after: list[int], policy: Overflow = Overflow.SLIDE) -> Step:
    removed = removed_tokens([PLAN], policy_of(policy), BEFORE, after)
    return Step(PLAN, "", NONE_EVICTED, (), Prompt(after, ()), BEFORE, after, removed)


def test_what_is_planned_is_removed() -> None:
    """Also where the tokens after the gap begin like those in it: then a comparison would find another gap, [3, 7)."""
    assert step(AFTER).removed == PLAN.removed
    assert move_for(BEFORE, step(AFTER)) == Move(len(BEFORE), ((1, 5),))
    assert Move(len(BEFORE), ((1, 5),)).n_kept == len(AFTER)


def test_nothing_moves_that_is_rendered_otherwise_or_computed_again() -> None:
    assert step([9, 8, 40, 41, 42, *MARK, 50]).removed == ()
    assert step(AFTER, Overflow.RECOMPUTE).removed == ()


def test_what_a_sequence_does_not_hold_does_not_move() -> None:
    assert move_for(BEFORE[:5], step(AFTER)) is None
    assert move_for(BEFORE[:8], step(AFTER)) == Move(8, ((1, 5),))
    assert move_for([9, 7, *BEFORE], step(AFTER)) is None
