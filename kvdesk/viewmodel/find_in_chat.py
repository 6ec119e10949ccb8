"""Where a text stands in the messages of one chat: what its find bar counts and goes through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kvdesk import folding
from kvdesk.chat import Message, MessageId

SEARCHED: Final = 30_000
"""Characters of an attachment that are searched: all of a long one would be laid out to mark what is found in it."""
_UNSEEN: Final = str.maketrans("", "", "*`~")  # of Markdown, in the middle of a text that is read as one


@dataclass(frozen=True, slots=True)
class Hit:
    """Place number `at` of a message, of those in what is attached and in its text, in the order in which one reads."""

    message: MessageId
    at: int


def hits(messages: Iterable[Message], text: str) -> tuple[Hit, ...]:
    """All places where a text stands, from the first message to the last."""
    found: list[Hit] = []
    for message in messages:
        n = sum(len(folding.places(attached.text[:SEARCHED], (text,))) for attached in message.attachments)
        found += (Hit(message.id, at) for at in range(n + _n_places(message, text)))
    return tuple(found)


def _n_places(message: Message, text: str) -> int:
    """In an answer as it is read, without the marks of Markdown; in a question as it was typed."""
    if message.role != "assistant":
        return len(folding.places(message.text, (text,)))
    return len(folding.places(message.text.translate(_UNSEEN), (text.translate(_UNSEEN),)))


def nearest(found: Sequence[Hit], messages: Sequence[Message], first: MessageId | None) -> int:
    """The first hit in this message or behind it, else the first of all; -1 where nothing was found."""
    names = [message.id for message in messages]
    behind = set(names[names.index(first) :]) if first in names else set(names)
    return next((number for number, hit in enumerate(found) if hit.message in behind), 0 if found else -1)
