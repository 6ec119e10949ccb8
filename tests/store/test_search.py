"""Search finds each word of titles, texts and attachments, and takes any text for one."""

from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.message import Attachment, Message
from kvdesk.store import Store
from kvdesk.values import replace
from tests.store.values import C, conversation, message


@pytest.fixture
def library(store: Store) -> Store:
    store.put_conversation(conversation("c", "Cooking pasta"))
    store.put_message(message("a", "How long does spaghetti boil?"))
    store.put_message(
        message("b", 'Nine minutes. 九分钟就好。 100% "al dente", c:\\pot_1', parent="a", role="assistant")
    )
    store.put_message(message("s", "Spaghetti still stream", parent="b", role="assistant", state="streaming"))
    return store


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spaghetti", ["a"]),
        ("SPAGH boil", ["a"]),
        ("spaghetti minutes", []),
        ("分钟", ["b"]),
        ("九分钟就", ["b"]),
        ("0%", ["b"]),
        ("t_1", ["b"]),
        ("t_", ["b"]),
        ("\\p", ["b"]),
        ('"al', ["b"]),
        ("pasta", [None]),
        ("co", [None]),
        ("", []),
        ("   ", []),
        ("\0\ud800", []),
    ],
)
def test_search_finds_every_word_anywhere(library: Store, text: str, found: list[str | None]) -> None:
    assert [hit.message for hit in library.search(text)] == found


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_no_text_is_a_syntax_error(text: str) -> None:
    store = Store(Path(":memory:"))
    store.put_conversation(conversation(title=text))
    store.put_message(message("a", text))
    store.search(text)
    store.close()


@pytest.mark.parametrize(
    "text",
    [
        "\u00ad",
        "\u200b \ufe0f",
        '""',
        "a OR",
        "NEAR(",
        "text:spaghetti",
        "*",
        "-boil",
        "AND",
        "^how",
        "'; DROP TABLE message; --",
    ],
)
def test_query_syntax_is_only_text(library: Store, text: str) -> None:
    assert library.search(text) == ()


def test_a_message_is_found_once_it_is_complete_and_by_its_last_text_only(library: Store) -> None:
    library.put_message(message("s", "Spaghetti finished", parent="b", role="assistant"))
    assert [hit.message for hit in library.search("finished")] == ["s"]
    library.put_message(message("s", "Macaroni", parent="b", role="assistant"))
    assert library.search("finished") == ()
    assert [hit.message for hit in library.search("macaroni")] == ["s"]
    library.put_message(message("s", "Macaroni again", parent="b", role="assistant", state="streaming"))
    assert library.search("macaroni") == ()


def test_an_excerpt_shows_the_surroundings(library: Store) -> None:
    library.put_message(message("long", "before " * 50 + "\nneedle\n" + "after " * 50))
    (hit,) = library.search("needle")
    assert hit.title == "Cooking pasta"
    assert hit.excerpt.startswith("…")
    assert "before needle after" in hit.excerpt
    assert hit.excerpt.endswith("…")


@pytest.mark.parametrize("n", range(4))
def test_an_excerpt_has_whole_signs(library: Store, n: int) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    library.put_message(message("long", "x" * n + family * 30 + " needle " + "y" * n + family * 30))
    (hit,) = library.search("needle")
    before, after = hit.excerpt.strip("…").split(" needle ")
    assert before == family * (len(before) // len(family))
    assert after == "y" * n + family * ((len(after) - n) // len(family))


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("several", 1),
        ('"long"', 1),
        ("\\several", 1),
        ("PAPER.PDF", 1),
        ("what pages", 1),  # one in the text, one in what is attached
        ("of", 1),  # too short for the index
        ("text", 1),
        ("nothing", 0),
        ("else pages", 0),
        ("[[", 0),  # how it is packed is nobody's text
        ("pdf,", 0),
    ],
)
@pytest.mark.usefixtures("attached")
def test_search_finds_what_is_attached(store: Store, text: str, n_found: int) -> None:
    assert [hit.message for hit in store.search(text)] == ["a"] * n_found
    assert all(hit.excerpt for hit in store.search(text))


def test_what_is_attached_is_found_no_more_once_it_is_gone(store: Store, attached: Message) -> None:
    store.put_message(replace(attached, attachments=()))
    assert store.search("several") == ()
    store.put_message(attached)
    store.delete_conversation(C)
    assert store.search("several") == ()
    found = "SELECT count(*) FROM message_index WHERE message_index MATCH 'several'"
    assert store._connection.execute(found).fetchall() == [(0,)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("text", ["GRÖSSE", "öl", "ЕЖ", "don't", "Οδός", "übung", "ÇA", "ÇA größe"])
def test_case_accents_and_apostrophes_do_not_count(store: Store, text: str, form: Literal["NFC", "NFD"]) -> None:
    store.put_conversation(replace(conversation(), title="Übung"))
    kept = Attachment("Ça.txt", "text", normalize("NFD", "ça va"))
    store.put_message(replace(message("a", "Größe ÖL Ёж don’t ΟΔΌΣ"), attachments=(kept,)))
    assert [hit.message for hit in store.search(normalize(form, text))] == [None if text == "übung" else "a"]
