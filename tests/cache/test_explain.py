"""Why a turn prefilled: every cause once, and numbers that always add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.reuse.explain import Cause, Facts, explain

WORDS = {1: "Hello", 2: " world", 3: "!", 4: " there", 5: "He", 6: "llo", 7: "\n", 8: "\n\n"}


def text(token: int) -> str:
    return WORDS.get(token, f"<{token}>")


@pytest.mark.parametrize(
    ("held", "prompt", "facts", "cause", "numbers"),
    [
        ([], [1, 2], Facts(), Cause.FIRST, (0, 2, 0, -1)),
        ([], [1, 2], Facts(evicted="least recently used"), Cause.EVICTED, (0, 2, 0, -1)),
        ([1], [1, 2], Facts(evicted="by hand"), Cause.EVICTED, (1, 1, 0, -1)),
        ([1, 2], [1, 2, 3], Facts(), Cause.CONTINUED, (2, 1, 0, -1)),
        ([1, 2], [1, 2, 3], Facts(recurrent=True, window_lost=True), Cause.CONTINUED, (2, 1, 0, -1)),
        ([1, 2, 3], [1, 2], Facts(), Cause.REGENERATED, (1, 1, 2, -1)),
        ([1, 2], [1, 2], Facts(), Cause.REGENERATED, (1, 1, 1, -1)),
        ([1, 2], [1, 4], Facts(recurrent=True), Cause.RECURRENT, (0, 2, 2, 1)),
        (
            [1, 2],
            [1, 4],
            Facts(checkpoint=True, taken="its saved state", edited="yours"),
            Cause.CHECKPOINT,
            (1, 1, 1, 1),
        ),
        ([1, 2], [1, 4], Facts(window_lost=True, edited="yours"), Cause.WINDOW, (0, 2, 2, 1)),
        ([1, 2], [1, 4], Facts(thinking=True, template="date"), Cause.THINKING, (1, 1, 1, 1)),
        ([1, 2], [1, 4], Facts(edited="your first message"), Cause.EDITED, (1, 1, 1, 1)),
        ([1, 2], [1, 4], Facts(template="today's date"), Cause.TEMPLATE, (1, 1, 1, 1)),
        ([1, 2], [1, 4], Facts(evicted="window"), Cause.EVICTED, (1, 1, 1, 1)),
        ([3, 1, 2], [3, 5, 6, 2], Facts(), Cause.RETOKENIZED, (1, 3, 2, 1)),
        ([3, 1, 2], [3, 5, 6, 2], Facts(thinking=True), Cause.RETOKENIZED, (1, 3, 2, 1)),
        ([3, 8, 1, 2], [3, 7, 1, 2], Facts(thinking=True), Cause.BLANKS, (1, 3, 3, 1)),
        ([3, 8, 1, 2], [3, 7, 1, 2], Facts(), Cause.UNKNOWN, (1, 3, 3, 1)),
        ([1, 2], [1, 4], Facts(), Cause.UNKNOWN, (1, 1, 1, 1)),
    ],
)
def test_causes(
    held: list[int], prompt: list[int], facts: Facts, cause: Cause, numbers: tuple[int, int, int, int]
) -> None:
    found = explain(held, prompt, text, facts)
    assert found.cause is cause
    assert (found.reused, len(prompt) - found.reused, found.lost, found.position) == numbers
    assert found.sentence.endswith((".", "”"))


def test_both_texts() -> None:
    found = explain([1, 7, 3], [1, 4, 3], text)
    assert found.sentence == (
        "The prompt differs from what was in the cache: 1 of 3 tokens were in the cache, 2 prefilled."
        " The cache held “↵” at position 1, the prompt has “ there”."
    )


def test_long_and_strange_texts_stay_on_one_line() -> None:
    found = explain([1], [2], lambda token: "\x00" if token == 1 else "x" * 500)
    assert "\x00" not in found.sentence
    assert len(found.sentence) < 250


def test_what_was_really_reused_counts() -> None:
    found = explain([1, 2, 3, 4], [1, 2, 3, 5], text, reused=2)
    assert (found.reused, found.lost, found.position) == (2, 2, 3)


TOKENS = st.lists(st.integers(1, 4), max_size=8)


@given(TOKENS, TOKENS.filter(bool), st.builds(Facts, st.sampled_from(["", "x"]), st.sampled_from(["", "y"])))
def test_numbers_add_up(held: list[int], prompt: list[int], facts: Facts) -> None:
    found = explain(held, prompt, text, facts)
    assert 0 <= found.reused < len(prompt)
    assert held[: found.reused] == prompt[: found.reused]
    if found.position >= 0:
        assert held[: found.position] == prompt[: found.position]
        assert held[found.position] != prompt[found.position]
