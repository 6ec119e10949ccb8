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


Event = ChatEvent | CacheEvent | CommandFailed
