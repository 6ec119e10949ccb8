"""All that crosses the thread: what every back end speaks, and what only one with cells does."""

from __future__ import annotations

from dataclasses import dataclass

from kvdesk.protocol.cache import CacheCommand, CacheEvent
from kvdesk.protocol.chat import ChatCommand, ChatEvent

Command = ChatCommand | CacheCommand


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """A command did not do its work; nothing was lost. `sentence` is for the person, `detail` folded."""

    command: Command
    sentence: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionDropped:
    """From the host: this subscriber read so slowly that what was waiting for it was thrown away. What is known now
    follows, if it asks for that: each answer under way with `TurnStarted` and its whole text so far.
    """

    sentence: str


Event = ChatEvent | CacheEvent | CommandFailed | SubscriptionDropped
