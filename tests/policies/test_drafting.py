"""Guesses come from the text itself, are counted, and are computed only where batches are cheap enough."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.drafting import SIZES, DraftSize, Guess
from kvdesk.policies.tuned import KEPT, TILE

TEXT = st.lists(st.integers(0, 3), max_size=60)


def followed(text: list[int]) -> list[int]:
    """What came after the last earlier place that reads as the last three tokens do."""
    for end in range(len(text) - 1, 2, -1):
        if text[end - 3 : end] == text[-3:]:
            return text[end:]
    return []


@given(TEXT)
def test_a_guess_is_what_followed_the_last_time(text: list[int]) -> None:
    assert Guess((), text).next(TILE) == (followed(text)[:TILE] if len(text) > 3 else [])


@given(TEXT, TEXT)
def test_token_by_token_it_goes_on_or_looks_anew(before: list[int], then: list[int]) -> None:
    guess, text = Guess((), before), list(before)
    for token in then:
        expected = guess.next(TILE)
        guess.add(token)
        text.append(token)
        if expected[:1] == [token] and expected[1:]:
            assert guess.next(TILE)[: len(expected) - 1] == expected[1:]
        elif len(text) > 3:
            assert guess.next(TILE) == followed(text)[:TILE]


def test_another_text_of_the_chat_may_be_repeated() -> None:
    assert Guess([[1, 2, 3, 4, 5]], [9, 1, 2, 3]).next(9) == [4, 5]


def test_how_often_guesses_hold_is_counted_without_computing_them() -> None:
    guess = Guess((), [*range(100), 0, 1, 2])
    assert guess.holds == 0.0
    for token in range(3, 3 + KEPT):
        guess.add(token)
    assert guess.holds == pytest.approx(KEPT / (KEPT + 1))
    for token in range(3 + KEPT, 99):
        guess.add(token)
    assert guess.holds > 0.9


def test_wrong_guesses_end_it() -> None:
    guess = Guess((), [7, 7, 7, 1] * 40)
    for n in range(200):
        guess.add((7, 7, 7, n + 8)[n % 4])  # after three sevens always something new
    assert guess.holds < 0.8


def expected(holds: float, size: int) -> float:
    return sum(holds**n for n in range(size))


MEASURED = {1: 1.0, 2: 1.9, 4: 3.1, 8: 5.1, 16: 6.4, 32: 11.4, 64: 16.0}
"""Steps that a batch takes, Qwen 1.5B on two cores."""
EIGHT_CORES = {1: 1.0, 2: 1.05, 4: 1.1, 8: 1.3, 16: 1.7, 32: 2.6, 64: 4.2}
"""Of a machine that waits for memory where this one computes."""


def choose(costs: dict[int, float], holds: float, most: int = TILE) -> int:
    return DraftSize().choose(holds, most, lambda n: 25.0 * costs[n]).n_tokens


@pytest.mark.parametrize("costs", [MEASURED, EIGHT_CORES])
@pytest.mark.parametrize("holds", [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0])
def test_the_size_with_most_tokens_a_second_is_chosen(costs: dict[int, float], holds: float) -> None:
    best = max((1, *SIZES), key=lambda n: expected(holds, n) / costs[n])
    gain = expected(holds, best) / costs[best]
    assert choose(costs, holds) == (best if gain > 1.25 else 1)


def test_where_batches_are_cheap_more_is_drafted() -> None:
    halves = [(choose(MEASURED, holds), choose(EIGHT_CORES, holds)) for holds in (0.5, 0.75)]
    assert all(few == 1 < many for few, many in halves)


def test_what_a_batch_took_counts_more_than_what_was_expected() -> None:
    size = DraftSize()
    usual: Callable[[int], float] = lambda n: 10.0 + n  # noqa: E731
    assert size.choose(0.9, TILE, usual).n_tokens > 1
    for n in SIZES:
        size.took(n, 10.0 * n)
    size.took(1, 10.0)
    assert size.choose(0.9, TILE, usual).n_tokens == 1


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_there_may_be_no_room_for_more(most: int) -> None:
    assert choose(EIGHT_CORES, 1.0, most) <= most


def test_before_anything_was_measured_nothing_is_drafted() -> None:
    assert DraftSize().choose(1.0, TILE, lambda _: None).n_tokens == 1
