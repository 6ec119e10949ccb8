"""Cuts between whole signs: emoji of several parts, flags, accents, Korean syllables, Indic conjuncts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.graphemes import boundary, cut

WHOLE = {
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "colour of skin": "\U0001f44d\U0001f3fd",
    "heart": "\u2764\ufe0f\u200d\U0001f525",
    "flag": "\U0001f1e9\U0001f1ea",
    "flag of a region": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "key": "1\ufe0f\u20e3",
    "accents": "e\u0302\u0323",
    "Arabic vowel": "\u0628\u064e\u0651",
    "Devanagari conjunct": "\u0915\u094d\u0937\u093f",
    "longer conjunct": "\u0938\u094d\u0924\u094d\u0930\u0940",
    "Bengali conjunct": "\u0995\u09cd\u09b7",
    "Sinhala conjunct": "\u0d9a\u0dca\u200d\u0dc2",
    "Tamil vowel": "\u0ba8\u0bbf",
    "Thai": "\u0e01\u0e33",
    "Korean": "\u1112\u1161\u11ab",
    "Korean syllable": "\ud558\u11ab",
    "voiced kana": "\u304b\u3099",
    "end of a line": "\r\n",
}


@pytest.mark.parametrize("sign", WHOLE.values(), ids=WHOLE)
def test_a_sign_is_not_cut(sign: str) -> None:
    for before, after in (("a", "b"), ("", sign), (sign * 3, "\u65e5"), ("\u65e5", " ")):
        text = before + sign + after
        for at in range(len(before) + 1, len(before) + len(sign)):
            assert boundary(text, at) == len(before), at
        assert boundary(text, len(before) + len(sign)) == len(before) + len(sign)


@pytest.mark.parametrize(
    "text",
    [
        "ab",
        "\u65e5\u672c\u8a9e",
        "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7"[::2] + "a",
        "\u0915\u0916",
        "\U0001f600\U0001f601",
        "\n\n",
        "\ud83d\ud83d",
    ],
)
def test_signs_that_follow_one_another_are_cut_between(text: str) -> None:
    text = text.replace("\U0001f1e9\U0001f1eb", "x")  # every second half of two flags
    assert [boundary(text, at) for at in range(len(text) + 1)] == list(range(len(text) + 1))


def test_a_virama_that_shows_itself_makes_no_conjunct() -> None:
    assert boundary("\u0915\u094d\u200c\u0937", 3) == 3


@pytest.mark.parametrize(
    ("text", "most", "end", "found"),
    [
        ("short", 5, "…", "short"),
        ("shorter", 5, "…", "shor…"),
        ("shorter", 5, "", "short"),
        ("ab" + WHOLE["family"] + "c", 6, "…", "ab…"),
        ("ab" + WHOLE["family"], 7, "…", "ab" + WHOLE["family"]),
        ("\U0001f1e9\U0001f1ea" * 3, 4, "…", "\U0001f1e9\U0001f1ea…"),
        ("e" + "\u0301" * 9, 4, "…", "e\u0301\u0301…"),
    ],
)
def test_cut(text: str, most: int, end: str, found: str) -> None:
    assert cut(text, most, end) == found


@given(st.text(st.sampled_from("ab \u0301\u200d\U0001f468\U0001f1e9\u0915\u094d\u1112\u1161\n\ud83d"), max_size=30))
def test_every_place_leads_to_the_same_cuts(text: str) -> None:
    """However far before a place one begins to look."""
    places = [boundary(text, at) for at in range(len(text) + 1)]
    cuts = {0, *(at for at in range(len(text) + 1) if places[at] == at)}
    assert places == [max(cut for cut in cuts if cut <= at) for at in range(len(text) + 1)]


def test_a_long_text_without_a_plain_place_is_cut_at_once() -> None:
    text = "\u0301" * 200_000
    assert 0 < len(cut(text, 100_000)) <= 100_000
