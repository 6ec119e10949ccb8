"""An automaton accepts the texts in which Python's own engine finds the expression."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvdesk.grammar.automaton import Automaton, Work
from kvdesk.grammar.patterns import WrongPattern, automaton_of

SIGNS = st.sampled_from(
    [
        *("a", "b", "1", ".", "[ab]", "[^a]", r"\d", r"\W", "(", "(?:", ")", "|"),
        *("*", "+", "?", "{1,2}", "{2}", "^", "$"),
    ]
)


def accepts(automaton: Automaton, text: str) -> bool:
    if not automaton:
        return False
    at = 0
    for char in text:
        targets = [to for ranges, to in automaton[at].edges if any(low <= ord(char) <= high for low, high in ranges)]
        if not targets:
            return False
        (at,) = targets  # never two ways
    return automaton[at].accepts


@given(st.lists(SIGNS, max_size=8).map("".join), st.lists(st.text("ab1-", max_size=6), min_size=1, max_size=8))
def test_it_accepts_what_matches(pattern: str, texts: list[str]) -> None:
    try:
        expression = re.compile(pattern, re.ASCII)
        automaton = automaton_of(pattern, Work())
    except (re.error, WrongPattern):
        assume(False)
        raise
    assert automaton is not None
    for text in texts:
        assert accepts(automaton, text) == bool(expression.search(text)), text


@pytest.mark.parametrize(
    "pattern",
    [".*a.{20}b", "^(a{1,60}b?){1,60}$", "^(((a{1,30}){1,30}){1,30}){1,30}$", "^a{0,2000}b{0,2000}c{0,2000}$"],
)
def test_one_that_would_take_too_long_is_given_up(pattern: str) -> None:
    began = time.monotonic()
    assert automaton_of(pattern, Work()) is None
    assert time.monotonic() - began < 10.0


def test_all_expressions_of_a_schema_share_their_time() -> None:
    work = Work()
    assert automaton_of("^a$", work) is not None
    assert automaton_of(".*a.{20}b", work) is None
    work.left = 0
    assert automaton_of("^a$", work) is None
