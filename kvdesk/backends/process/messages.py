"""Messages over the pipes between kvdesk and the child process of its engine, as frames of `protocol.wire`.

They use the codec instead of pickle, so that a model that takes over the engine's process cannot take over the window's
too. The cost does not matter: text comes about 16 times a second, and bytes of arrays are not encoded.
"""

from kvdesk import translation
from kvdesk.message import MessageId
from kvdesk.protocol.messages import Command, Event
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Submit:
    """Carry out a command that was given `age_s` seconds ago. `language` of texts from now on, because the user may
    change it after the child has started.
    """

    command: Command
    age_s: float
    language: str = translation.ENGLISH


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop an answer. Like the next two, it does not wait behind commands."""

    answer: MessageId


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the work that `Working` reports."""


@dataclass(frozen=True, slots=True)
class Close:
    """Stop what runs, carry out earlier commands, free everything and exit."""


Request = Submit | Stop | Cancel | Close


@dataclass(frozen=True, slots=True)
class Report:
    """Events, oldest first. `n_handled`: commands handled before the last of them; `busy`: whether more work was left
    then.
    """

    n_handled: int
    busy: bool
    events: tuple[Event, ...]
