"""Where a text is in the messages of one chat: the matches that its find bar counts and steps through."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kvdesk import folding
from kvdesk.message import Message, MessageId
from kvdesk.values import dataclass

SEARCHED: Final = 30_000
"""Characters of an attachment that are searched: all of a long one would be laid out to mark what is found in it."""
MOST: Final = 10_000
"""Hits that are counted."""
_LINK: Final = re.compile(r'!?\[([^\[\]\n]*+)\]\((?:[^()\s]|\([^()\s]*\))*+(?:[ ]+"[^"\n]*")?\)')
_UNSEEN: Final = "*`~"  # of Markdown, in the middle of a text that is read as one


@dataclass(frozen=True, slots=True)
class Hit:
    """Place number `at` of a message, of those in what is attached and in its text, in the order in which one reads."""

    message: MessageId
    at: int


class Finder:
    """Keeps what it has folded: a text is looked for with each letter that is typed."""

    def __init__(self) -> None:
        self._folded: dict[MessageId, tuple[Message, tuple[str, ...], str]] = {}

    def hits(self, messages: Iterable[Message], text: str) -> tuple[Hit, ...]:
        """The places where a text is, from the first message to the last, at most `MOST`."""
        typed = _folded(text)
        wanted = {"assistant": _folded(_seen(text))}
        found: list[Hit] = []
        for message in messages if typed else ():
            attached, said = self._texts(message)
            n = sum(one.count(typed) for one in attached)
            if here := wanted.get(message.role, typed):
                n += said.count(here)
            found += (Hit(message.id, at) for at in range(n))
            if len(found) >= MOST:
                break
        return tuple(found[:MOST])

    def _texts(self, message: Message) -> tuple[tuple[str, ...], str]:
        """What is attached, and the text, folded: of an answer as it is read, of a question as it was typed."""
        known = self._folded.get(message.id)
        if known is None or known[0] is not message:
            attached = tuple(folding.fold(one.text[:SEARCHED]) for one in message.attachments)
            said = _seen(message.text) if message.role == "assistant" else message.text
            known = self._folded[message.id] = message, attached, folding.fold(said)
        return known[1], known[2]

    def forget(self) -> None:
        """Nothing is looked for any more."""
        self._folded.clear()


def nearest(found: Sequence[Hit], messages: Sequence[Message], first: MessageId | None) -> int:
    """The first hit in this message or behind it, else the first of all; -1 if nothing was found."""
    names = [message.id for message in messages]
    behind = set(names[names.index(first) :]) if first in names else set(names)
    return next((number for number, hit in enumerate(found) if hit.message in behind), 0 if found else -1)


def _folded(text: str) -> str:
    """As `folding.places` looks for it; empty if nothing is left of it."""
    return next(iter(folding.fold_words((text,))), "")


def _seen(text: str) -> str:
    text = _LINK.sub(r"\1", text)
    for mark in _UNSEEN:
        text = text.replace(mark, "")
    return text
