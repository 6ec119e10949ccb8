"""Fewer events that say the same: text joined for each answer, of views and samples only the latest."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

from kvdesk.message import MessageId
from kvdesk.protocol import chat
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.cache import CacheView, LoadSample, MemoryLedger, MessageSpans, TokenTexts
from kvdesk.protocol.messages import Event

_SUBJECT: dict[type, Callable[[Any], Hashable]] = {
    CacheView: lambda _: None,
    BlockMapView: lambda _: None,
    LoadSample: lambda _: None,
    MemoryLedger: lambda _: None,
    chat.Working: lambda _: None,
    chat.ModelLoading: lambda event: event.source,
    chat.PrefillProgress: lambda event: event.answer,
    **dict.fromkeys(
        (MessageSpans, chat.MessageRetention, chat.MessagesEvicted, chat.ContextUse), lambda event: event.conversation
    ),
    chat.TurnPreview: lambda event: (event.conversation, event.replaced),
}
"""Events of which the latest says all that an earlier one of the same subject did."""


def join(events: Sequence[Event]) -> list[Event]:
    """The same events in the same order, but one `TextDelta` an answer, where its first was, and of each view and each
    sample the last.
    """
    deltas: dict[MessageId, list[chat.TextDelta]] = {}
    last: dict[tuple[type, Hashable], int] = {}
    for i, event in enumerate(events):
        if isinstance(event, chat.TextDelta):
            deltas.setdefault(event.answer, []).append(event)
        elif (subject := _SUBJECT.get(type(event))) is not None:
            last[type(event), subject(event)] = i
    kept = set(last.values())
    joined: list[Event] = []
    for i, event in enumerate(events):
        if isinstance(event, chat.TextDelta):
            if (parts := deltas.pop(event.answer, None)) is not None:
                joined.append(join_text(parts))
        elif i in kept or type(event) not in _SUBJECT:
            joined.append(event)
    return joined


def join_text(parts: Sequence[chat.TextDelta]) -> chat.TextDelta:
    """Pieces of one answer as one. `parts`: at least one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    tokens = tuple(chain.from_iterable(part.tokens for part in parts))
    logprobs = tuple(chain.from_iterable(part.logprobs for part in parts))
    return chat.TextDelta(first.conversation, first.answer, "".join(part.text for part in parts), tokens, logprobs)


def bytes_of(events: Iterable[Event]) -> int:
    """About how much memory they take. What they share with their maker (a recording, a snapshot) does not count."""
    return sum(map(_bytes_of, events))


def _bytes_of(event: Event) -> int:
    match event:
        case chat.TextDelta():
            n_probs = sum(1 + len(token.top) for token in event.logprobs)
            return 200 + 2 * len(event.text) + 8 * len(event.tokens) + 200 * n_probs
        case chat.LogLine():
            return 100 + 2 * len(event.text)
        case TokenTexts():
            return 200 + 150 * len(event.texts)
        case _:
            return 400
