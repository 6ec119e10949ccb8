"""What a search found, as rows: each conversation once, below it the messages."""

from collections.abc import Iterable

from kvdesk.message import ConversationId, MessageId
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A conversation (`message` is None), or a message of the one above it. `is_hit`: the words are in it."""

    conversation: ConversationId
    message: MessageId | None
    text: str
    is_hit: bool = True


def found_rows(hits: Iterable[tuple[ConversationId, MessageId | None, str, str]]) -> tuple[FoundRow, ...]:
    """Rows of hits: conversation, message (None: its title), title and the text around the words. Conversations stand
    in the order of their first hit.
    """
    heads: dict[ConversationId, FoundRow] = {}
    below: dict[ConversationId, list[FoundRow]] = {}
    for conversation, message, title, excerpt in hits:
        if message is None or conversation not in heads:
            heads[conversation] = FoundRow(conversation, None, title, is_hit=message is None)
        if message is not None:
            below.setdefault(conversation, []).append(FoundRow(conversation, message, excerpt))
    return tuple(row for name, head in heads.items() for row in (head, *below.get(name, ())))
