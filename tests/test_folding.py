"""What does not count when a person looks for something, and where it then stands in the original."""

from random import Random
from typing import Literal
from unicodedata import normalize

import pytest

from kvdesk.folding import Folded, fold, holds_all, places

SAME = [
    ("Größe", "GRÖSSE"),
    ("ẞ", "ss"),
    ("ΟΔΌΣ", "οδός"),
    ("οδοσ", "οδός"),
    ("İstanbul", "istanbul"),
    ("IŞIK", "ışık"),
    ("ＡＢＣ１２３", "abc123"),
    ("ｶﾞｲﾄﾞ", "ガイド"),
    ("don’t", "DON'T"),
    ("“quoted”", '"quoted"'),
    ("Ёж", "ЕЖ"),
    ("ﬁne", "fine"),
    ("co\u00adoperate", "cooperate"),
    ("well–known", "well-known"),
    ("शक्ति", "शक्ति"),
    ("Łódź", "lodz"),
    ("Smørrebrød, Æbler", "smorrebrod, aebler"),
    ("Đặng", "dang"),
    ("Œuvre", "oeuvre"),
]
APART = [("か", "が"), ("하", "한"), ("กา", "ก่า"), ("का", "की"), ("a", "b")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_a_person_takes_for_the_same_is_the_same(one: str, other: str) -> None:
    forms = {fold(normalize(form, text)) for text in (one, other) for form in ("NFC", "NFD")}
    assert len(forms) == 1
    assert {fold(text) for text in forms} == forms, "folded twice is folded once"


@pytest.mark.parametrize(("one", "other"), APART)
def test_marks_that_make_another_letter_count(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert places(other, (one,)) == []


def test_a_text_with_places_is_folded_as_one_without() -> None:
    letters = "".join(one + normalize("NFD", other) for one, other in (*SAME, *APART)) + " \n𝔸👩‍👩‍👧´¨ﷺ"
    random = Random(1)
    for _ in range(2_000):
        text = "".join(random.choices(letters, k=random.randint(0, 12)))
        assert Folded(text).text == fold(text), ascii(text)


def test_words_are_found_whatever_their_case_and_never_twice() -> None:
    assert places("A light, a LIGHTHOUSE.", ("light", "lighthouse")) == [(2, 7), (11, 21)]
    assert places("(a+b)* [x]", ("(a+b)*", "[x]")) == [(0, 6), (7, 10)]
    assert places("Straße der Häuser", ("HÄUSER", "")) == [(11, 17)]
    assert places("nothing", ()) == []
    assert places("nothing", ("\u0301",)) == [], "nothing is left of the word"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("word", "place"), [("strasse", "Straße"), ("ISTANBUL", "İstanbul"), ("creme", "crème"), ("it's", "it’s")]
)
def test_places_are_those_of_the_original(form: Literal["NFC", "NFD"], word: str, place: str) -> None:
    text = normalize(form, "\u0301ﬁ İn der Straße, İstanbul: crème. 𝔸 it’s")
    ((first, last),) = places(text, (word,))
    assert text[first:last] == normalize(form, place)


def test_every_word_may_stand_in_another_text() -> None:
    assert holds_all(["Un café", "ΟΔΟΣ"], ("CAFÉ", "οδός"))
    assert not holds_all(["Un café"], ("café", "οδός"))
