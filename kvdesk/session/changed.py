"""What a `Store` tells its listeners: the parts of the state that have changed, and values that pass through it."""

from enum import Flag, auto
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from kvdesk.conversations.changes import AnswerEnded, BranchChanged, MessagesAdded, MessagesChanged, MessagesDeleted
from kvdesk.protocol.cache import CacheView, LoadSample, SpeedSample, TokenTexts
from kvdesk.protocol.chat import TextDelta
from kvdesk.protocol.messages import Event
from kvdesk.values import dataclass

Tone = Literal["", "good", "warning", "danger"]


class Changed(Flag):
    """The parts of the state."""

    NOTHING = 0
    CONVERSATIONS = auto()  # their titles, order, folders, drafts or queues
    SELECTED = auto()  # which conversation is shown
    RUNNING = auto()  # which conversations are being answered
    FEATURES = auto()  # what the back end has
    MODEL = auto()
    CONTEXT = auto()  # another context, or none
    VIEW = auto()  # the cells
    NUMBERS = auto()  # what need not follow every view is to be written now
    CELLS = auto()  # how many cells each conversation holds
    USE = auto()  # how full the context of a conversation is
    GROWTH = auto()  # the same, by the tokens of an answer: many times a second
    SPANS = auto()  # where the messages of a conversation lie
    RETENTION = auto()  # which messages are near the end of the context, or evicted
    FORKS = auto()  # which shown messages have others at their place
    DELETED = auto()  # what can be brought back
    RANGE = auto()  # the positions that are selected, or chosen for an operation by hand
    ATTENTION = auto()  # which token is looked from, and what it looked at
    REBUILDING = auto()  # whether another context is being made
    UNSAVED = auto()  # what the disk does not take
    SERVED = auto()  # whether other programs are served
    EMBEDDED = auto()  # whether there is an embedded model, and whether it is open
    EFFECTS = auto()  # what operations by hand did
    TOOLS = auto()  # tool servers, their prices, and calls that wait for a user
    DEAD = auto()  # the engine has stopped for good

    def __and__(self, other: Self) -> bool:  # type: ignore[override] # often asked: enum's own takes six calls
        return bool(self._value_ & other._value_)


@dataclass(frozen=True, slots=True)
class Notice:
    """The outcome of a command; see `Store.notify`."""

    sentence: str
    tone: Tone = ""
    file: str = ""
    ends: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error shown in the message box."""

    sentence: str
    detail: str = ""


class Served(NamedTuple):
    """The address at which other programs are served, "" while none are; and how many of their requests run."""

    address: str = ""
    n_running: int = 0


class Range(NamedTuple):
    """Positions `[p0, p1)` of a sequence; -1: start, end."""

    seq_id: int
    p0: int
    p1: int


MEASURED: Final = (SpeedSample, LoadSample, TokenTexts)
"""Events with measurements and names of tokens, which concern no message."""
OFTEN: Final = (*MEASURED, TextDelta, CacheView)
"""Events that come with nearly every token. A listener says which of them it needs (`Store.listen`)."""

MessageChange: TypeAlias = BranchChanged | MessagesAdded | MessagesChanged | AnswerEnded | MessagesDeleted
Update: TypeAlias = Event | MessageChange | Notice | Problem
