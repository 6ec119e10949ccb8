"""What goes over the pipes between kvdesk and the child process that runs its engine, as frames of `protocol.wire`.

The codec and not pickle: a model that takes over the engine's process must not thereby have the window's, whatever it
writes. It costs nothing that shows: text goes up some 16 times a second, and the bytes of arrays are not encoded.
"""

from __future__ import annotations

from kvdesk import translation
from kvdesk.chat import MessageId
from kvdesk.protocol.messages import Command, Event
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Submit:
    """Carry out a command that was given `age_s` seconds ago. `language` of the texts from now on: it may have been
    chosen since the child was started.
    """

    command: Command
    age_s: float
    language: str = translation.ENGLISH


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop an answer. It does not wait behind commands, and neither do the other two."""

    answer: MessageId


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the work that `Working` tells of."""


@dataclass(frozen=True, slots=True)
class Close:
    """End what runs, carry out what was submitted before, free everything and end."""


Request = Submit | Stop | Cancel | Close


@dataclass(frozen=True, slots=True)
class Report:
    """Events, oldest first. `n_handled`: commands that were handled before the last of them; `busy`: whether something
    was left to do then.
    """

    n_handled: int
    busy: bool
    events: tuple[Event, ...]
