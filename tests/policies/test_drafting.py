"""Guessed tokens are computed only where batches are cheap enough, for one answer and for several."""

import random
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.drafting import SIZES, Chance, Drafts, DraftSize
from kvdesk.policies.tuned import KEPT, SCATTER, TILE


def expected(holds: float, size: int) -> float:
    return sum(holds**n for n in range(size))


MEASURED = {1: 1.0, 2: 1.9, 4: 3.1, 8: 5.1, 16: 6.4, 32: 11.4, 64: 16.0}
"""Steps that a batch takes, Qwen 1.5B on two cores."""
EIGHT_CORES = {1: 1.0, 2: 1.05, 4: 1.1, 8: 1.3, 16: 1.7, 32: 2.6, 64: 4.2}
"""Of a machine that waits for memory where this one computes."""


def of(costs: dict[int, float]) -> Callable[[int], float]:
    """ms of a batch, between the sizes that were measured in proportion."""
    known = sorted(costs)

    def ms(n: int) -> float:
        low, high = max(k for k in known if k <= n), min(k for k in known if k >= n)
        share = (n - low) / (high - low) if high > low else 0.0
        return 25.0 * (costs[low] + share * (costs[high] - costs[low]))

    return ms


def measured(costs: dict[int, float], n_answers: int = 1) -> DraftSize:
    """Batches of each size were measured."""
    size, ms = DraftSize(), of(costs)
    for n in (n_answers, *(n for n in SIZES if n > n_answers)):
        size.took(n_answers, n, ms(n))
    return size


def choose(costs: dict[int, float], holds: float, most: int = TILE) -> int:
    return measured(costs).choose([Chance(holds, most)], TILE, of(costs)).sizes[0]


@pytest.mark.parametrize("costs", [MEASURED, EIGHT_CORES])
@pytest.mark.parametrize("holds", [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0])
def test_the_size_with_most_tokens_a_second_is_chosen(costs: dict[int, float], holds: float) -> None:
    best = max((1, *SIZES), key=lambda n: expected(holds, n) / costs[n])
    gain = expected(holds, best) / costs[best]
    assert choose(costs, holds) == (best if gain > SCATTER else 1)


def test_where_batches_are_cheap_more_is_drafted() -> None:
    """With eight cores from one guess in three on; with two only where nine of ten hold."""
    halves = [(choose(MEASURED, holds), choose(EIGHT_CORES, holds)) for holds in (0.5, 0.75)]
    assert all(few == 1 < many for few, many in halves)
    first = [min(h for h in range(100) if choose(costs, h / 100) > 1) for costs in (EIGHT_CORES, MEASURED)]
    assert first[0] < 35
    assert first[1] > 75


def test_what_a_batch_took_counts_more_than_what_was_expected() -> None:
    size = DraftSize()
    usual: Callable[[int], float] = lambda n: 10.0 + n  # noqa: E731
    chances = [Chance(0.9, TILE)]
    assert size.choose(chances, TILE, usual).sizes[0] > 1
    for n in (1, *SIZES):
        size.took(1, n, 10.0 * n)
    assert size.choose(chances, TILE, usual).sizes == (1,)
    assert size.step_ms(1) == 10.0
    assert size.step_ms(2) is None


def test_no_batch_is_cheaper_than_one_token() -> None:
    """On a busy machine it may seem so."""
    size = DraftSize()
    for n in (1, 1, 2, 4):
        size.took(1, n, 25.0 / n)
    assert size.steps(1, 4) == 1.0
    assert size.choose([Chance(0.1, TILE)], TILE, of(MEASURED)).sizes == (1,)


def test_what_was_measured_beside_others_counts_when_they_are_gone() -> None:
    """Batches are compared with steps of then, not with those of now."""
    size = DraftSize()
    for _ in range(KEPT):
        for n in (1, *SIZES):
            size.took(1, n, 100.0 * EIGHT_CORES[n])
    for _ in range(KEPT):
        size.took(1, 1, 25.0)
    assert size.choose([Chance(0.9, TILE)], TILE, lambda _: None).sizes == (choose(EIGHT_CORES, 0.9),)


def test_a_batch_that_was_measured_in_a_bad_moment_is_tried_again() -> None:
    size, usual = DraftSize(), of(EIGHT_CORES)
    size.took(1, 1, 25.0)
    for n in SIZES:
        size.took(1, n, 1000.0)
    chosen = [size.choose([Chance(0.9, TILE)], TILE, usual).sizes[0] for _ in range(20 * TILE)]
    assert set(chosen[: 16 * TILE]) == {1}
    assert chosen[-1] > 1


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_there_may_be_no_room_for_more(most: int) -> None:
    assert choose(EIGHT_CORES, 1.0, most) <= most
    assert sum(measured(EIGHT_CORES, 2).choose([Chance(1.0, TILE)] * 2, most, of(EIGHT_CORES)).sizes) <= max(2, most)


def test_before_anything_was_measured_nothing_is_drafted() -> None:
    assert DraftSize().choose([Chance(1.0, TILE)], TILE, lambda _: None).sizes == (1,)


CHANCES = st.lists(
    st.builds(Chance, st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0]), st.integers(1, 6)), min_size=1, max_size=3
)


@given(CHANCES)
def test_several_answers_share_a_batch_so_that_most_is_right(chances: list[Chance]) -> None:
    """No other way to share as many tokens promises more."""
    sizes = measured(EIGHT_CORES, len(chances)).choose(chances, TILE, of(EIGHT_CORES)).sizes
    assert all(1 <= size <= chance.most for size, chance in zip(sizes, chances, strict=True))
    total = sum(expected(c.holds, n) for c, n in zip(chances, sizes, strict=True))
    others = (
        sum(expected(c.holds, n) for c, n in zip(chances, other, strict=True))
        for other in product(*(range(1, c.most + 1) for c in chances))
        if sum(other) == sum(sizes)
    )
    assert total == pytest.approx(max(others))


def test_several_answers_draft_where_their_summed_cost_promises_it() -> None:
    """On two cores a sure answer drafts alone and beside others as sure, but not at the cost of three without."""
    sure, none = Chance(1.0, TILE), Chance(0.0, 1)
    assert choose(MEASURED, 1.0) > 1
    beside = measured(MEASURED, 4).choose([sure, none, none, none], 16, of(MEASURED))
    assert beside.sizes == (1, 1, 1, 1)
    assert beside.price.n_tokens == 8
    assert beside.price.steps == pytest.approx(5.1 / 3.1)
    assert beside.price.at_best < SCATTER, "that is why, not the guesses"
    assert measured(MEASURED, 4).choose([sure] * 4, TILE, of(MEASURED)).sizes == (16,) * 4
    sizes = measured(EIGHT_CORES, 4).choose([sure, none, none, none], TILE, of(EIGHT_CORES)).sizes
    assert sizes[0] > 1
    assert sizes[1:] == (1, 1, 1)


# --- why none, and rests ----------------------------------------------------------------------------------------------


def written(costs: dict[int, float], holds: float, n_guessed: int, n_steps: int = 40) -> str:
    drafts, size = Drafts(), measured(costs)
    for _ in range(n_steps):
        chance = drafts.chance(holds, n_guessed, TILE)
        draft = size.choose([chance], TILE, of(costs))
        if draft.sizes == (1,):
            drafts.none(chance, draft.price)
        else:
            drafts.verified(draft.sizes[0] - 1, 1)
    return drafts.sentence


def test_why_there_are_no_drafts_is_said_with_what_a_batch_costs() -> None:
    slow = {n: 1.05 * n for n in (1, *SIZES)}
    slow[1] = 1.0
    assert written(slow, 1.0, 7) == "No drafts: a batch of 8 costs 8.4 steps here."
    assert written(MEASURED, 0.3, 7) == "No drafts: too few guesses held, and a batch of 8 costs 5.1 steps here."
    assert "nothing that was there before" in written(MEASURED, 0.9, 0)
    assert written(EIGHT_CORES, 0.9, TILE).startswith("Drafts: 40 of ")
    assert Drafts("No drafts: so it is.").sentence == "No drafts: so it is."
    assert Drafts().sentence == ""


def n_rested(drafts: Drafts) -> int:
    """Steps without a guess from here on."""
    return next(n for n in range(100 * TILE) if drafts.chance(0.9, 9, 9).most > 1)


def test_as_soon_as_guesses_have_cost_a_step_it_rests_each_time_twice_as_long() -> None:
    drafts = Drafts()
    drafts.gave(1, 1.9)
    assert n_rested(drafts) == 0, "one may be bad luck"
    for rest in (16, 32, 64):
        drafts.gave(1, 1.9)
        assert n_rested(drafts) == rest
    drafts.verified(9, 1)
    assert "rested" in drafts.sentence


def test_after_several_batches_that_gave_less_it_rests_though_others_gained() -> None:
    drafts = Drafts()
    for n_new, steps in [(16, 6.4), *[(1, 1.9)] * (2 * KEPT - 2)]:
        drafts.gave(n_new, steps)
        assert n_rested(drafts) == 0
    drafts.gave(1, 1.9)
    assert n_rested(drafts) == 16


def test_batches_that_gain_bring_no_rest_and_make_the_next_one_short_again() -> None:
    drafts = Drafts()
    for n_new in (1, 1):
        drafts.gave(n_new, 1.9)
    assert n_rested(drafts) == 16
    for n in range(1000):
        drafts.gave((7, 1, 1)[n % 3], 1.9)
        assert n_rested(drafts) == 0
    while not (rest := n_rested(drafts)):
        drafts.gave(1, 1.9)
    assert rest == 16


@pytest.mark.parametrize("holds", [0.3, 0.5, 0.8])
@pytest.mark.parametrize(("costs", "most"), [(MEASURED, 1.0), (EIGHT_CORES, 2.0)])
def test_guesses_never_cost_an_answer_much(costs: dict[int, float], most: float, holds: float) -> None:
    """Though it always believes that nine of ten hold, on a machine of which only the cost of a prompt is known."""
    luck, size, ms = random.Random(f"{holds}"), DraftSize(), of(costs)
    usual: Callable[[int], float] = lambda n: max(25.0, n * ms(TILE) / TILE)  # noqa: E731
    drafts, n_written, spent = Drafts(), 0, 0.0
    size.took(1, 1, ms(1))
    while n_written < 400:
        chance = drafts.chance(0.9, TILE, TILE)
        (n,) = size.choose([chance], TILE, usual).sizes
        right = next((i for i in range(n - 1) if luck.random() >= holds), n - 1)
        size.took(1, n, ms(n))
        n_written, spent = n_written + right + 1, spent + costs[n]
        if n > 1:
            drafts.gave(right + 1, size.steps(1, n) or 0.0)
    assert n_written / spent > (0.95 if holds < 0.8 else 0.97 * most)


def test_a_size_is_tried_where_it_would_lose_little_if_it_were_dear() -> None:
    """Two tokens at once; more where the half of them was cheap, or where nearly all guesses hold. What is known of 16
    is the bound of fewer.
    """
    usual: Callable[[int], float] = lambda n: max(25.0, 6.25 * n)  # noqa: E731

    def first(holds: float, size: DraftSize) -> int:
        return size.choose([Chance(holds, TILE)], TILE, usual).sizes[0]

    assert [first(holds, DraftSize()) for holds in (0.2, 0.5, 0.7, 0.9)] == [1, 2, 2, 4]
    for steps, n in ((1.9, 1), (1.05, 4)):
        size = DraftSize()
        size.took(1, 1, 25.0)
        size.took(1, 2, 25.0 * steps)
        assert first(0.6, size) == n
    size.took(1, 4, 100.0)
    assert first(0.8, size) == 8, "no more than 16, whatever four were"
