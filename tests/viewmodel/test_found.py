"""Rows of what a search found."""

from __future__ import annotations

from kvdesk.chat import ConversationId, MessageId
from kvdesk.viewmodel.found import FoundRow, found_rows, words_in

A, B = ConversationId("a"), ConversationId("b")
ONE, TWO = MessageId("1"), MessageId("2")


def test_each_chat_stands_once_over_its_messages() -> None:
    hits = [(B, None, "Lighthouses", "Lighthouses"), (A, ONE, "Coast", "a lighthouse"), (B, TWO, "Lighthouses", "its")]
    assert found_rows(hits) == (
        FoundRow(B, None, "Lighthouses"),
        FoundRow(B, TWO, "its"),
        FoundRow(A, None, "Coast", is_hit=False),
        FoundRow(A, ONE, "a lighthouse"),
    )


def test_words_are_found_whatever_their_case_and_never_twice() -> None:
    assert words_in("A light, a LIGHTHOUSE.", ("light", "lighthouse")) == [(2, 7), (11, 21)]
    assert words_in("(a+b)* [x]", ("(a+b)*", "[x]")) == [(0, 6), (7, 10)]
    assert words_in("Straße der Häuser", ("HÄUSER", "")) == [(11, 17)]
    assert words_in("nothing", ()) == []
