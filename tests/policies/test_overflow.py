"""Plans for a full context, carried out on a list of tokens: whole messages go, the announced room is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk import translation
from kvdesk.policies.overflow import (
    POLICIES,
    Abilities,
    OverflowPlan,
    Situation,
    Span,
    moved_sentence,
    plan_overflow,
    policy_of,
    recomputed_sentence,
    retention,
)
from kvdesk.policies.overflow.oldest import stop
from kvdesk.policies.tuned import N_SINKS
from kvdesk.settings import Overflow

ANY = Abilities()
STOP, SLIDE, RECOMPUTE, SINKS = Overflow.STOP, Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS


def situation(lengths: list[int], n_ctx: int, n_room: int = 1, n_keep: int = 0, *, system: bool = True) -> Situation:
    spans, start = [], 0
    for i, n in enumerate(lengths):
        spans.append(Span(start, start + n, is_system=system and i == 0))
        start += n
    return Situation(tuple(spans), start, n_room, n_ctx, n_keep)


def kept_by(plan: OverflowPlan, now: Situation) -> list[int]:
    """The tokens that stay, in order."""
    return [i for i in range(now.n_held) if not plan.removed[0] <= i < plan.removed[1]]


@given(
    st.sampled_from(Overflow),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 30),
    st.integers(0, 60),
    st.integers(0, 30),
    st.booleans(),
    st.booleans(),
)
def test_every_plan_holds_what_it_says(
    policy: Overflow, lengths: list[int], room: int, keep: int, over: int, part: bool, shift: bool
) -> None:
    now = situation(lengths, max(1, sum(lengths) + room - over), room, keep)
    can = Abilities(can_remove_part=part, can_shift=shift)
    plan = plan_overflow(policy, now, can)
    kept = set(kept_by(plan, now))
    assert plan.sentence.endswith(".")
    if plan.stops or not plan.evicted:
        assert plan.removed == (0, 0)
        return
    assert plan.policy == policy
    assert len(kept) + room <= now.n_ctx_seq
    assert len(lengths) - 1 not in plan.evicted
    for index, message in enumerate(now.messages):
        tokens = set(range(message.start, message.end))
        if index in plan.evicted:
            assert policy is SINKS or not (message.is_system or message.start < keep)
            assert not kept & {t for t in tokens if policy is not SINKS or t >= max(N_SINKS, keep)}
        else:
            assert tokens <= kept


def test_no_message_is_evicted_while_there_is_room() -> None:
    for policy in Overflow:
        plan = plan_overflow(policy, situation([10, 20, 30], 100, 40), ANY)
        assert not plan.evicted
        assert plan.removed == (0, 0)


def test_slide_keeps_the_system_prompt_and_moves_the_rest() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    plan = plan_overflow(SLIDE, now, ANY)
    assert plan.evicted == (1,)
    assert plan.removed == (10, 30)
    assert "oldest message" in plan.sentence
    assert "not exact" in plan.sentence


def exchanges(n_held: int, n_ctx: int, *, answering: bool) -> Situation:
    """System prompt, two exchanges, and a question with its answer up to `n_held`."""
    ends = (10, 20, 40, 50, 70, 80, n_held)
    starts = (0, *ends[:-1])
    spans = tuple(Span(a, b, i == 0, i in (2, 4, 6)) for i, (a, b) in enumerate(zip(starts, ends, strict=True)))
    return Situation(spans if answering else spans[:-1], n_held, 1, n_ctx, answering=answering)


def test_an_answer_is_evicted_with_its_question() -> None:
    assert plan_overflow(SLIDE, exchanges(100, 100, answering=True), ANY).evicted == (1, 2)
    assert plan_overflow(RECOMPUTE, exchanges(300, 300, answering=True), ANY).evicted == (1, 2, 3, 4)


@pytest.mark.parametrize("policy", [SLIDE, RECOMPUTE])
def test_the_question_stays_while_it_is_answered(policy: Overflow) -> None:
    now = exchanges(100, 100, answering=True)
    plan = plan_overflow(policy, Situation((now.messages[0], *now.messages[5:]), 100, 1, 100, answering=True), ANY)
    assert plan.stops
    assert plan.sentence.endswith("The answer ends here.")


def test_sinks_part_the_answer_when_nothing_else_is_left() -> None:
    now = Situation((Span(0, 10), Span(10, 200, follows=True)), 200, 1, 200, answering=True)
    plan = plan_overflow(SINKS, now, ANY)
    assert plan.cuts_answer
    assert plan.removed == (N_SINKS, N_SINKS + 25)
    assert plan.evicted == (0,)
    assert "the beginning of this answer" in plan.sentence
    assert not plan_overflow(SINKS, Situation(now.messages, 200, 1, 200), ANY).cuts_answer


def test_recompute_tells_how_much_is_read_again() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    assert "70 tokens are computed again" in plan_overflow(RECOMPUTE, now, ANY).sentence
    from_nothing = plan_overflow(RECOMPUTE, now, Abilities(can_remove_part=False))
    assert "80 tokens are computed again" in from_nothing.sentence


@pytest.mark.parametrize("policy", [SLIDE, SINKS])
def test_the_impossible_stops_and_says_why(policy: Overflow) -> None:
    plan = plan_overflow(
        policy, situation([10, 20, 30, 40], 100, 10), Abilities(can_shift=False, why_not_shift="M-RoPE.")
    )
    assert plan.stops
    assert "M-RoPE." in plan.sentence


def test_a_message_longer_than_the_context_stops() -> None:
    assert plan_overflow(RECOMPUTE, situation([10, 200], 128), ANY).stops


def test_retention() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    assert retention(SLIDE, now, ANY) == ("in the cache", "next", "in the cache", "in the cache")
    assert set(retention(STOP, now, ANY)) == {"in the cache"}


def test_every_policy_is_declared_once() -> None:
    assert [policy.name for policy in POLICIES] == list(Overflow)
    assert [policy_of(name).name for name in Overflow] == list(Overflow)
    assert all(policy.label and policy.description.endswith(".") for policy in POLICIES)


def test_a_policy_stops_exactly_where_what_it_requires_is_missing() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    for policy in POLICIES:
        missing = plan_overflow(policy.name, now, Abilities(can_shift=False))
        assert missing.stops == ("seq_add" in policy.requires or not policy.evicts)


@pytest.mark.parametrize(
    ("n_messages", "cuts_answer", "removed"),
    [
        (1, False, "the oldest message (90 tokens) was removed"),
        (2, False, "the 2 oldest messages (90 tokens) were removed"),
        (0, True, "the beginning of this answer (90 tokens) was removed"),
        (1, True, "the beginning of this answer and the oldest message (90 tokens) were removed"),
    ],
)
def test_one_sentence_tells_what_was_removed(n_messages: int, cuts_answer: bool, removed: str) -> None:
    told = moved_sentence("The context", n_messages, 90, 4, cuts_answer=cuts_answer)
    assert told.startswith(f"The context was full: {removed}, the first 4 tokens stay, ")
    if not cuts_answer:
        told = recomputed_sentence("The context", n_messages, 90, 50)
        assert told.startswith(f"The context was full: {removed}, and 50 tokens are computed again")


def test_what_is_said_is_in_the_language_of_the_person() -> None:
    translation.install(lambda text, _n: f"<{text}>")
    try:
        plan = stop(Situation((), 10, 5, 12, answering=True))
    finally:
        translation.install(translation.english)
    assert plan.sentence == "<<The context of 12 tokens> is full.> <The answer ends here.>"
    assert plan.why == ""
