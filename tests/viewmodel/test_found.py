"""Rows of what a search found."""

from kvdesk.message import ConversationId, MessageId
from kvdesk.viewmodel.chat.found import FoundRow, found_rows

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
