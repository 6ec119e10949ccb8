"""What an import finds, and the small rules that all formats share: ids, times, titles, limits."""

import math
from collections import Counter
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, Literal

from kvdesk.chat import Conversation
from kvdesk.errors import UserError
from kvdesk.graphemes import cut
from kvdesk.message import ConversationId, MessageId, storable
from kvdesk.quantities import LAST_MS
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

LARGEST_FILE: Final = 512 << 20
"""Most bytes of JSON in one file, in a ZIP those of its JSON files together."""
LARGEST_VALUE: Final = 64 << 20
"""Most characters of JSON in one conversation: so much of a file is in memory at once."""
MOST_CONVERSATIONS: Final = 100_000
MOST_MESSAGES: Final = 1_000_000
LONGEST_TITLE: Final = 1_000

Kind = Literal[
    "pictures",
    "sound",
    "files",
    "tool calls",
    "tool results",
    "hidden messages",
    "system messages",
    "citations",
    "empty chats",
    "damaged chats",
    "other content",
]
"""What kvdesk cannot show or continue, and therefore leaves out."""
LeftOut = Counter[Kind]


@dataclass(frozen=True, slots=True)
class Found:
    """One conversation of a file, with its messages, and how much of it is left out. An empty one is not imported."""

    format: str  # `Format.name`
    conversation: Conversation
    left_out: LeftOut = field(default_factory=Counter)


class Malformed(UserError):
    """A file, or a chat of it, that is not what it seems to be: one sentence."""


class TooLarge(Malformed):
    """A file that exceeds a limit: nothing of it is imported."""


def items(value: Any) -> list[Any]:
    """The value where it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def text_in(value: Any) -> str:
    """The value where it is text, as UTF-8 can hold it; else ""."""
    return storable(value) if isinstance(value, str) else ""


def identity(*parts: str) -> str:
    """An id that is the same whenever the same thing is imported: 32 hexadecimal digits, like those of kvdesk."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = storable(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def conversation_id(*parts: str) -> ConversationId:
    return ConversationId(identity("conversation", *parts))


def message_id(conversation: ConversationId, name: str) -> MessageId:
    return MessageId(identity("message", conversation, name))


def time_ms(value: Any, unit_ms: float = 1.0) -> int:
    """A JSON number of `unit_ms` or a date in ISO 8601 as Unix time in milliseconds; 0 for what is no time. A number
    that is after the year 9999 in `unit_ms` is of milliseconds.
    """
    if isinstance(value, str):
        return _time_in(value, unit_ms)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    try:
        found = value * unit_ms
    except OverflowError:
        return 0
    found = value if found > LAST_MS else found
    return int(found) if math.isfinite(found) and 0 < found <= LAST_MS else 0


def _time_in(text: str, unit_ms: float) -> int:
    try:
        return time_ms(float(text), unit_ms)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text.strip())
        return time_ms(round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


def title_in(value: Any) -> str:
    """A title on one line; "" if there is none."""
    return cut(" ".join(text_in(value).split()), LONGEST_TITLE, "")


def circle(title: str) -> Malformed:
    """The error for messages that have no first one."""
    return Malformed(
        tr("The chat “{title}” is damaged: its messages follow one another in a circle.").format(title=short(title))
    )


def short(text: str, n: int = 60) -> str:
    """At most `n` characters of a text, on one line, for a sentence."""
    return cut(" ".join(text.split()), n)
