"""Plans for a full context, carried out on a list of tokens: whole messages go, the announced room is there."""

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
    Worth,
    moved_sentence,
    plan_overflow,
    policy_of,
    recomputed_sentence,
    retention,
)
from kvdesk.policies.overflow.oldest import stop
from kvdesk.policies.tuned import N_SINKS, RESERVE
from kvdesk.settings import Overflow
from kvdesk.values import replace

ANY = Abilities()
STOP, SLIDE, RECOMPUTE, SINKS = Overflow.STOP, Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS
LEAST, LOW_NORM = Overflow.LEAST_ATTENDED, Overflow.LOW_NORM_KEYS


def situation(lengths: list[int], n_ctx: int, n_room: int = 1, n_keep: int = 0, *, system: bool = True) -> Situation:
    spans, start = [], 0
    for i, n in enumerate(lengths):
        spans.append(Span(start, start + n, is_system=system and i == 0))
        start += n
    return Situation(tuple(spans), start, n_room, n_ctx, n_keep)


def kept_by(plan: OverflowPlan, now: Situation) -> list[int]:
    """The tokens that stay, in order."""
    return [i for i in range(now.n_held) if not any(p0 <= i < p1 for p0, p1 in plan.removed)]


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
    if plan.stops or not plan.removed:
        assert plan.removed == ()
        return
    if policy_of(policy).measures:
        assert plan.policy in (policy, SLIDE)
    else:
        assert plan.policy == policy
    assert len(kept) + room <= now.n_ctx_seq
    assert len(lengths) - 1 not in plan.evicted
    for index, message in enumerate(now.messages):
        tokens = set(range(message.start, message.end))
        if policy_of(plan.policy).measures:
            assert tokens <= kept or not message.is_system
        elif index in plan.evicted:
            assert policy is SINKS or not (message.is_system or message.start < keep)
            assert not kept & {t for t in tokens if policy is not SINKS or t >= max(N_SINKS, keep)}
        else:
            assert tokens <= kept


def test_no_message_is_evicted_while_there_is_room() -> None:
    for policy in Overflow:
        plan = plan_overflow(policy, situation([10, 20, 30], 100, 40), ANY)
        assert not plan.evicted
        assert plan.removed == ()


def test_slide_keeps_the_system_prompt_and_moves_the_rest() -> None:
    now = situation([10, 20, 30, 40], 100, 10)
    plan = plan_overflow(SLIDE, now, ANY)
    assert plan.evicted == (1,)
    assert plan.removed == ((10, 30),)
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
    assert plan.removed == ((N_SINKS, N_SINKS + 25),)
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


# --- single tokens ----------------------------------------------------------------------------------------------------

LONG = Situation(
    (Span(0, 10, is_system=True), Span(10, 100, first=13), Span(100, 200, follows=True, first=105)), 200, 6, 200
)


def worth(**of: float) -> Worth:
    """Tokens are worth 1 each, but for some."""
    values = [1.0] * LONG.n_held
    for token, value in of.items():
        values[int(token[1:])] = value
    return Worth(values)


@pytest.mark.parametrize("policy", [LEAST, LOW_NORM])
def test_the_tokens_worth_least_leave_wherever_they_are(policy: Overflow) -> None:
    """Not the system prompt, the template's marks and the last tokens, however little they are worth."""
    cheap = worth(t3=0, t11=0, t101=0, t199=0, t20=0.1, t21=0.1, t50=0.2, t120=0.3)
    plan = plan_overflow(policy, replace(LONG, worth=cheap), ANY)
    assert plan.policy is policy
    removed = {i for p0, p1 in plan.removed for i in range(p0, p1)}
    assert removed >= {20, 21, 50, 120}
    assert len(removed) == 200 // RESERVE
    assert not {3, 11, 101, 199} & removed
    assert plan.evicted == ()
    assert "the 25 tokens" in plan.sentence
    assert "not exact" in plan.sentence


def test_what_was_lost_is_said() -> None:
    cheap = Worth([0.001] * LONG.n_held, ms=12)
    said = plan_overflow(LEAST, replace(LONG, worth=cheap), ANY).sentence
    assert "looked at least (2.5% of their attention)" in said
    assert "found in 12 ms" in said


def test_first_tokens_and_those_to_keep_stay() -> None:
    now = replace(LONG, messages=(Span(0, 200),), n_keep=30, worth=Worth([float(i) for i in range(200)]))
    assert plan_overflow(LEAST, now, ANY).removed == ((30, 55),)
    assert plan_overflow(LEAST, replace(now, n_keep=0), ANY).removed == ((N_SINKS, N_SINKS + 25),)


def test_the_answer_in_the_making_stays() -> None:
    now = replace(LONG, answering=True, worth=Worth([1.0] * 100 + [0.0] * 100))
    removed = plan_overflow(LEAST, now, ANY).removed
    assert removed[-1][1] <= 100


def test_what_is_not_known_slides_and_says_why() -> None:
    messages = (Span(0, 10, is_system=True), Span(10, 60), Span(60, 100, follows=True), Span(100, 200))
    for unknown in (Worth(why="It is recurrent."), Worth([1.0] * 70)):
        plan = plan_overflow(LEAST, replace(LONG, messages=messages, worth=unknown), ANY)
        assert (plan.policy, plan.removed) == (SLIDE, ((10, 100),))
        assert unknown.why in plan.why
        assert plan.why.startswith("Which tokens matter least is not known: ")
    stuck = plan_overflow(LEAST, replace(LONG, messages=messages[:1], worth=Worth(why="It is recurrent.")), ANY)
    assert stuck.stops
    assert "It is recurrent." in stuck.sentence


def test_before_it_is_measured_only_the_number_is_known() -> None:
    plan = plan_overflow(LEAST, LONG, ANY)
    assert sum(p1 - p0 for p0, p1 in plan.removed) == 25
    assert set(retention(LEAST, LONG, ANY)) == {"in the cache"}


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
    translation.install(lambda one, _many, _n: f"<{one}>")
    try:
        plan = stop(Situation((), 10, 5, 12, answering=True))
    finally:
        translation.install(translation.english)
    assert plan.sentence == "<<The context of 12 tokens> is full.> <The answer ends here.>"
    assert plan.why == ""
