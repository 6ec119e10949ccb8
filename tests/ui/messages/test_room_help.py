"""What another version of a message costs, in words."""

from kvdesk.message import ConversationId
from kvdesk.protocol.chat import TurnPreview
from kvdesk.ui.messages.room_help import edit_words


def test_documents_that_are_not_read_again_are_counted_and_said() -> None:
    preview = TurnPreview(ConversationId("c"), 100, 90, None, "", n_put=1968)
    said = "90 of 2,158 tokens to read, 1,968 of documents read elsewhere, not exact"
    assert edit_words(preview, is_answer=False) == (said, "secondary")
