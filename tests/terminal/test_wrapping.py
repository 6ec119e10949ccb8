"""Lines break between words, however the text is cut into pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.terminal.wrapping import Wrapping

TEXT = st.text(st.sampled_from("ab 的文\n"), max_size=60)


def wrapped(pieces: list[str], width: int) -> str:
    wrapping = Wrapping()
    return "".join([*(wrapping.feed(piece, width) for piece in pieces), wrapping.end(width)])


@given(TEXT, st.lists(st.integers(0, 60), max_size=8), st.integers(4, 12))
def test_pieces_do_not_matter(text: str, cuts: list[int], width: int) -> None:
    ends = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    pieces = [text[a:b] for a, b in pairwise(ends)]
    assert wrapped(pieces, width) == wrapped([text], width)


def test_a_word_is_not_cut() -> None:
    assert wrapped(["one two th", "ree"], 10) == "one two \nthree"


def test_a_wide_character_takes_two_columns() -> None:
    assert wrapped(["的文字"], 4) == "的文\n字"


def test_a_long_word_is_the_terminals_to_cut() -> None:
    assert wrapped(["x " + "y" * 12], 5) == "x \n" + "y" * 12
