"""Plans for a full context, carried out on a list of tokens: whole messages leave, the announced room is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.overflow import (
    N_SINKS,
    WHY,
    Abilities,
    OverflowPlan,
    OverflowPolicy,
    SeqRm,
    Situation,
    Span,
    plan_overflow,
    shades,
)

ANY = Abilities()
POLICIES: tuple[OverflowPolicy, ...] = ("stop", "slide", "recompute", "sinks")


def situation(lengths: list[int], n_ctx: int, n_room: int = 1, n_keep: int = 0, *, system: bool = True) -> Situation:
    spans, start = [], 0
    for i, n in enumerate(lengths):
        spans.append(Span(start, start + n, is_system=system and i == 0))
        start += n
    return Situation(tuple(spans), start, n_room, n_ctx, n_keep)


def carry_out(plan: OverflowPlan, now: Situation) -> list[tuple[int, int]]:
    """(position, original token index) of what the sequence holds after the plan, prefill included."""
    held = [(i, i) for i in range(now.n_held)]
    gone = {i for p0, p1 in plan.ranges for i in range(p0, p1)}
    for call in plan.calls:
        p1 = now.n_held if call.p1 == -1 else call.p1
        if isinstance(call, SeqRm):
            held = [(pos, i) for pos, i in held if not max(0, call.p0) <= pos < p1]
        else:
            held = [(pos + call.delta if call.p0 <= pos < p1 else pos, i) for pos, i in held]
    stays = [i for i in range(now.n_held) if i not in gone]
    return held + [(pos, stays[pos]) for pos in range(*plan.prefill)]


@given(
    st.sampled_from(POLICIES),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 30),
    st.integers(0, 60),
    st.integers(0, 30),
    st.booleans(),
    st.booleans(),
)
def test_every_plan_holds_what_it_says(
    policy: OverflowPolicy, lengths: list[int], room: int, keep: int, over: int, part: bool, shift: bool
) -> None:
    now = situation(lengths, max(1, sum(lengths) + room - over), room, keep)
    can = Abilities(can_remove_part=part, can_shift=shift)
    plan = plan_overflow(policy, now, can)
    held = carry_out(plan, now)
    assert [pos for pos, _ in held] == list(range(plan.n_held))
    assert len(held) == now.n_held - sum(p1 - p0 for p0, p1 in plan.ranges)
    assert plan.sentence.endswith(".")
    if plan.stops or not plan.gone:
        assert not plan.calls
        return
    assert plan.policy == policy
    assert plan.n_held + room <= now.n_ctx_seq
    assert len(lengths) - 1 not in plan.gone
    kept = {i for _, i in held}
    for index, message in enumerate(now.messages):
        tokens = set(range(message.start, message.end))
        if index in plan.gone:
            assert policy == "sinks" or not (message.is_system or message.start < keep)
            assert not kept & {t for t in tokens if policy != "sinks" or t >= max(N_SINKS, keep)}
        else:
            assert tokens <= kept
    assert plan.exact == (policy == "recompute")


def test_no_message_leaves_while_there_is_room() -> None:
    for policy in POLICIES:
        plan = plan_overflow(policy, situation([10, 20, 30], 100, 40), ANY)
        assert not plan.gone
        assert not plan.calls


def test_slide_keeps_the_system_prompt_and_moves_the_rest() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    plan = plan_overflow("slide", now, ANY)
    assert plan.gone == (1,)
    assert [str(call) for call in plan.calls] == ["SeqRm(p0=10, p1=30)", "SeqAdd(p0=30, p1=-1, delta=-20)"]
    assert "oldest message" in plan.sentence
    assert "not exact" in plan.sentence


def exchanges(n_held: int, n_ctx: int, *, answering: bool) -> Situation:
    """System prompt, two exchanges, and a question with its answer up to `n_held`."""
    ends = (10, 20, 40, 50, 70, 80, n_held)
    starts = (0, *ends[:-1])
    spans = tuple(Span(a, b, i == 0, i in (2, 4, 6)) for i, (a, b) in enumerate(zip(starts, ends, strict=True)))
    return Situation(spans if answering else spans[:-1], n_held, 1, n_ctx, answering=answering)


def test_an_answer_leaves_with_its_question() -> None:
    assert plan_overflow("slide", exchanges(100, 100, answering=True), ANY).gone == (1, 2)
    assert plan_overflow("recompute", exchanges(300, 300, answering=True), ANY).gone == (1, 2, 3, 4)


@pytest.mark.parametrize("policy", ["slide", "recompute"])
def test_the_question_stays_while_it_is_answered(policy: OverflowPolicy) -> None:
    now = exchanges(100, 100, answering=True)
    plan = plan_overflow(policy, Situation((now.messages[0], *now.messages[5:]), 100, 1, 100, answering=True), ANY)
    assert plan.stops
    assert plan.sentence.endswith("The answer ends here.")


def test_sinks_part_the_answer_when_nothing_else_is_left() -> None:
    now = Situation((Span(0, 10), Span(10, 200, follows=True)), 200, 1, 200, answering=True)
    plan = plan_overflow("sinks", now, ANY)
    assert plan.parted
    assert plan.ranges == ((N_SINKS, N_SINKS + 25),)
    assert plan.gone == (0,)
    assert "the beginning of this answer" in plan.sentence
    assert not plan_overflow("sinks", Situation(now.messages, 200, 1, 200), ANY).parted


def test_recompute_without_partial_removal_starts_from_nothing() -> None:
    plan = plan_overflow("recompute", situation([10, 20, 30, 40], 100, 10), Abilities(can_remove_part=False))
    assert plan.calls == (SeqRm(-1, -1),)
    assert plan.prefill == (0, 80)


@pytest.mark.parametrize("policy", ["slide", "sinks"])
def test_the_impossible_stops_and_says_why(policy: OverflowPolicy) -> None:
    plan = plan_overflow(
        policy, situation([10, 20, 30, 40], 100, 10), Abilities(can_shift=False, why_not_shift="M-RoPE.")
    )
    assert plan.stops
    assert "M-RoPE." in plan.sentence


def test_a_message_longer_than_the_context_stops() -> None:
    assert plan_overflow("recompute", situation([10, 200], 128), ANY).stops


def test_shades() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    assert shades("slide", now, ANY, n_gone=2) == (
        *("gone", "gone"),
        *("in the cache", "next", "in the cache", "in the cache"),
    )
    assert set(shades("stop", now, ANY)) == {"in the cache"}


def test_every_policy_is_explained() -> None:
    assert set(WHY) == set(POLICIES)
