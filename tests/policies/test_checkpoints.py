"""Where a prefill pauses for a checkpoint, what one may cost, and which goes for another."""

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.checkpoints import Checkpoint, give_way, pauses, pays
from kvdesk.policies.swap import Limits, StateInfo, place
from kvdesk.policies.tuned import CHECKPOINT_EVERY as EVERY
from kvdesk.policies.tuned import CHECKPOINT_MOST, MIN_REUSE_TOKENS
from tests.policies.test_swap import ALICE

MB = 1_000_000


def checkpoint(i: int, gap: int = 100, *, who: str = "one", n_bytes: int = MB, age: int = 1) -> Checkpoint:
    return Checkpoint(f"{who}{i}", who, gap, n_bytes, age)


def test_a_pause_before_the_last_message_and_before_the_last_token() -> None:
    assert pauses(0, 0, 300, [200], 1.0, 4.0) == [200, 299]


def test_no_pause_where_little_would_be_read_again() -> None:
    assert pauses(190, 195, 300, [200], 1.0, 4.0) == [299]
    assert pauses(0, 0, 210, [200], 1.0, 4.0) == [200], "the last token is near enough"
    assert pauses(0, 0, MIN_REUSE_TOKENS, [], 0.0, 4.0) == []


def test_a_dear_pause_needs_more_tokens() -> None:
    """A batch more takes 200 ms, a token of a prompt 50 ms: 5 % of 80 tokens."""
    assert pauses(0, 0, 81, [], 200.0, 50.0) == [80]
    assert pauses(0, 0, 80, [], 200.0, 50.0) == []


def test_long_prompts_pause_now_and_then() -> None:
    assert pauses(0, 5, 2 * EVERY + 100, [], 0.0, 1.0) == [EVERY, 2 * EVERY, 2 * EVERY + 99]
    assert pauses(0, EVERY, 2 * EVERY, [], 0.0, 1.0) == [2 * EVERY - 1]


@given(*[st.integers(0, 20_000)] * 3, st.lists(st.integers(0, 20_000), max_size=3), st.floats(0, 500), st.floats(0, 90))
def test_pauses_are_inside_what_is_read_and_leave_a_token_for_the_logits(
    n_kept: int, n_held: int, n_prompt: int, marks: list[int], pause_ms: float, token_ms: float
) -> None:
    found = pauses(n_kept, n_held, n_prompt, marks, pause_ms, token_ms)
    assert found == sorted(set(found))
    assert all(n_held < at < n_prompt for at in found)
    assert all(pays((b - a) * token_ms, pause_ms) for a, b in zip([n_kept, *found], found, strict=False) if token_ms)


def test_a_few_percent_and_no_more() -> None:
    assert pays(1000.0, 50.0)
    assert not pays(1000.0, 51.0)
    assert not pays(0.0, 1.0)


def test_of_one_conversation_the_least_useful_goes() -> None:
    there = [checkpoint(i, gap) for i, gap in enumerate((4000, 50, 60, 20, 50, 60, 70, 80))]
    assert len(there) == CHECKPOINT_MOST
    assert give_way(there, "one", MB, 1000 * MB) == ["one3"]
    assert give_way(there, "two", MB, 1000 * MB) == []
    alike = [checkpoint(i, age=9 - i) for i in range(CHECKPOINT_MOST)]
    assert give_way(alike, "one", MB, 1000 * MB) == ["one0"], "the longest unused"


def test_together_they_take_half_of_the_memory() -> None:
    there = [checkpoint(i, 100 + i, who="two", n_bytes=20 * MB) for i in range(3)]
    assert give_way(there, "one", 20 * MB, 160 * MB) == []
    assert give_way(there, "one", 25 * MB, 160 * MB) == ["two0"]
    assert give_way(there, "one", 80 * MB, 160 * MB) == ["two0", "two1", "two2"]
    assert give_way(there, "one", 81 * MB, 160 * MB) is None


def test_for_a_conversation_that_leaves_they_are_dropped_and_not_written_to_disk() -> None:
    limits = Limits(100 * MB, 100 * MB)
    held = [StateInfo("state", "memory", 40 * MB, 10, 9000.0), StateInfo("way", "memory", 40 * MB, 10, 90.0, True)]
    placed = place(ALICE, held, limits)
    assert (placed.to, placed.demote, placed.drop) == ("memory", (), ("way",))
