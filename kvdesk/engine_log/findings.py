"""The causes by name, and what was found of a request or a server."""

from enum import StrEnum
from typing import Final

from kvdesk.engine_log.cures import Cure
from kvdesk.values import dataclass


class Cause(StrEnum):
    """Why the cached tokens ended where they did. The value is its name in JSON."""

    UNKNOWN = "unknown"
    REFUSED = "refused"
    NEW = "new conversation"
    CONTINUED = "continued"
    REGENERATED = "regenerated"
    STATELESS = "embedding"
    LOADED = "loaded from memory"
    SHIFTED_CHUNKS = "chunks reused"
    TOO_LONG = "context full"
    TRUNCATED = "prompt truncated"
    WINDOW = "window lost"
    RECURRENT = "recurrent state"
    FORCED = "full re-processing"
    NO_CHECKPOINT_IN_FILE = "no checkpoint in slot file"
    CHECKPOINT = "checkpoint restored"
    NOT_CACHED = "cache_prompt off"
    ADAPTERS = "adapters changed"
    BUSY = "slot busy"
    LOW_SIMILARITY = "low similarity"
    OTHER_SLOT = "another slot"
    EVICTED = "evicted"
    IDLE = "idle slot cleared"
    AFTER_SHIFT = "context shift"
    THINKING = "thinking removed"
    ATTRIBUTION = "attribution header"
    TOOLS = "tools changed"
    ROLE = "role changed"
    FRONT_CUT = "front cut"
    BLOCK_MOVED = "block moved"
    COMPACTED = "compacted"
    ANSWER = "answer changed"
    TEMPLATE = "template"
    EDITED = "prompt changed"
    DIVERGED = "diverged"
    TOO_SMALL = "cache too small"
    NO_ROOM = "no free cells"
    PREEMPTED = "preempted"
    POOL_FULL = "cache full"
    REUSE_OFF = "prefix cache off"
    NOTHING = "nothing reused"
    CHUNKS_OFF = "cache reuse off"


HITS: Final = frozenset(
    {
        *(Cause.NEW, Cause.CONTINUED, Cause.REGENERATED, Cause.LOADED, Cause.SHIFTED_CHUNKS, Cause.STATELESS),
        Cause.UNKNOWN,
    }
)
"""Causes that lose nothing worth a cure."""
UNUSED: Final = frozenset(
    {Cause.WINDOW, Cause.RECURRENT, Cause.FORCED, Cause.NO_CHECKPOINT_IN_FILE, Cause.CHECKPOINT, Cause.NOT_CACHED}
)
"""Causes that lose what was the same; the others lose what was changed too."""
ELSEWHERE: Final = frozenset({Cause.BUSY, Cause.LOW_SIMILARITY, Cause.OTHER_SLOT, Cause.EVICTED, Cause.IDLE})
"""Causes that lose what one of the slots is known to have had."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One request explained. `lost`: tokens read again that had been in a cache, at most; lost_s: seconds for them.

    notes   what else happened to the slot
    more    how to log so that the next log says more, "" if this one says all
    """

    cause: Cause
    sentence: str
    lost: int = 0
    lost_s: float = 0.0
    cures: tuple[Cure, ...] = ()
    notes: tuple[str, ...] = ()
    more: str = ""
