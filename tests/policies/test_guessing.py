"""Guesses come from what was there before, and how often they hold is counted without computing them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies import guessing
from kvdesk.policies.guessing import MOST, PORTION, Guess
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
        elif len(text) > 3 and (found := followed(text)):
            assert guess.next(TILE) == found[:TILE]
        else:  # behind the wrong one
            assert guess.next(TILE)[: len(expected) - 1] in (expected[1:], [])


def test_a_name_that_was_changed_does_not_end_it() -> None:
    guess = Guess((), [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3])
    for token in (4, 50, 6):
        guess.add(token)
    assert guess.next(3) == [7, 8, 1]
    assert guess.n_same == 2


def test_two_wrong_ones_go_on_only_while_they_are_counted_apart() -> None:
    """A guess behind a wrong token is one of its own kind: how often it holds tells nothing of others."""
    guess = Guess((), [*range(100), 0, 1, 2])
    for token in range(3, 3 + 2 * KEPT):
        guess.add(token)
    sure = guess.holds
    guess.add(-1)
    assert guess.n_same == 1
    assert guess.holds == 0.0
    assert sure > 0.8


@pytest.mark.parametrize("n", [3, PORTION - 1, PORTION, 3 * PORTION + 7])
def test_another_text_may_be_repeated_in_whatever_pieces_it_comes(n: int) -> None:
    other = list(range(100, 100 + 4 * PORTION))
    guess = Guess((other[at : at + n] for at in range(0, len(other), n)), [9, 9, 9])
    for token in [7] * (len(other) // n + KEPT):
        guess.add(token)
    for token in other[5:8]:
        guess.add(token)
    assert guess.next(9) == other[8:17]


def test_this_text_counts_before_others() -> None:
    guess = Guess([[1, 2, 3, 8]], [1, 2, 3, 4, 5, 1, 2, 3])
    assert guess.next(2) == [4, 5]


def test_no_more_of_others_is_looked_at_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guessing, "MOST", 10)
    pieces = iter([list(range(100, 108)), list(range(108, 116)), [1, 2, 3]])
    guess = Guess(pieces, [])
    for token in [7] * 9:
        guess.add(token)
    assert list(pieces) == [[1, 2, 3]], "not even made"
    for token in (104, 105, 106):
        guess.add(token)
    assert guess.next(9) == [107, 108, 109]


def test_a_long_text_is_looked_through_in_portions() -> None:
    """Its end at once; the beginning is known when as many tokens were written as there are portions."""
    text = list(range(40 * PORTION))
    guess = Guess((), text)
    n_at_once = len(guess._ends)
    assert KEPT * PORTION - 3 <= n_at_once <= KEPT * PORTION
    for _ in range(40):
        guess.add(-1)
    for token in (5, 6, 7):
        guess.add(token)
    assert guess.next(2) == [8, 9]
    assert len(text) < MOST


def test_what_must_come_is_guessed_where_nothing_was_there_before() -> None:
    forced = [[5, 6], []]
    guess = Guess((), [1, 2], lambda: forced.pop(0) if forced else [])
    assert (guess.next(9), guess.n_same, guess.holds) == ([5, 6], 0, 0.0)
    guess.add(5)
    assert guess.next(9) == [6]
    guess.add(8)
    assert guess.next(9) == [], "it goes on behind no wrong token"
    for token in range(20, 21 + KEPT):
        forced.append([token + 1])
        guess.add(token)
    assert guess.holds == pytest.approx((KEPT + 1) / (KEPT + 3)), "one of those before was wrong"


def test_how_often_guesses_hold_is_counted_without_computing_them() -> None:
    guess = Guess((), [*range(100), 0, 1, 2])
    assert guess.holds == 0.0
    for token in range(3, 3 + KEPT):
        guess.add(token)
    assert guess.holds == pytest.approx(KEPT / (KEPT + 1))
    for token in range(3 + KEPT, 99):
        guess.add(token)
    assert guess.holds > 0.9


def test_guesses_that_fail_are_counted_too() -> None:
    """After three sevens always something new; behind that the sevens are foreseen."""
    guess = Guess((), [7, 7, 7, 1] * 40)
    for n in range(203):
        guess.add((7, 7, 7, n + 8)[n % 4])
    assert guess.holds < 0.2
    guess.add(300)
    assert guess.holds > 0.8
