"""A saved state and its row in the folder's index; a file is loaded only if both agree.

Knows nothing of limits, memory and threads (`saved_states`).
"""

import hashlib
import logging
import math
import re
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT
from kvdesk.cache.state.blob import Blob
from kvdesk.codec import decode, from_builtins
from kvdesk.message import ConversationId, MessageId
from kvdesk.paths import read_regular
from kvdesk.policies.swap import StateKind, state_key
from kvdesk.protocol.cache import MessageSpan
from kvdesk.values import dataclass

_log = logging.getLogger(__name__)
INDEX, SUFFIX = "index.json", ".kvstate"
_KEY = re.compile("[0-9a-f]{64}")
_FINGERPRINT = re.compile("[0-9a-f]{16}")
MOST_INDEX = 1 << 30  # bytes
_MOST_POSITIONS = 1 << 24  # more than any context has


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the index stores of a saved state.

    key, n_bytes   of the state; prefill_ms: the time it saves
    used           number of its last use, counted over the folder because a clock may be set back
    checkpoint     kept to return to, unlike the state of a conversation when it was evicted
    exact          leading tokens whose K and V are as a prefill makes them; later ones were moved, so only its own
                   conversation can use the state
    client         name of the program that sent the request; "": a chat
    sharing        as `Client.sharing`: used only by requests of the same value, and never written to disk
    first          position of its first token: above 0 only for a document
    chats          of a document, which belongs to no one conversation: the chats that have it. () for any other state
    messages       of a document: the message of each chat that has it; of a checkpoint: those it was computed from
    texts          as `CacheSequence.texts`; spans: where its messages lie
    rounded        its K and V are kept as q8_0, unlike those of the cache
    """

    key: str
    conversation: ConversationId
    tokens: tuple[int, ...]
    n_bytes: int
    prefill_ms: float
    used: int
    texts: tuple[str, ...]
    spans: tuple[MessageSpan, ...]
    digest: str
    packed: bool
    checkpoint: bool = False
    exact: int = ALL_EXACT
    client: str = ""
    sharing: str = ""
    first: int = 0
    chats: tuple[ConversationId, ...] = ()
    rounded: bool = False
    messages: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedState(_Entry):
    """A conversation outside the cache: its tokens, the state of its sequence (None: on disk), and their facts.

    used_s   time.monotonic() of its last use; -inf: before this start of kvdesk
    """

    blob: Blob | None = None
    used_s: float = -math.inf

    def may_go_to(self, conversation: ConversationId | None, sharing: str) -> bool:
        """Whether the conversation may use the state: it is as a prefill makes it or its own, and sharing allows it."""
        return self.sharing == sharing and (self.exact >= len(self.tokens) or self.conversation == conversation)

    @property
    def computed_from(self) -> set[MessageId]:
        """The messages of its conversation; none if that was not written down, as in earlier versions."""
        return {*self.messages, *(span.message for span in self.spans)}

    def has(self, messages: Collection[MessageId] | None) -> bool:
        """Whether it may have been computed from one of these messages; None: from any."""
        return messages is None or not self.computed_from or not self.computed_from.isdisjoint(messages)

    def homes_without(self, conversation: ConversationId) -> tuple[tuple[ConversationId, MessageId], ...]:
        """The other chats that have the document, each with its message."""
        return tuple(home for home in zip(self.chats, self.messages, strict=True) if home[0] != conversation)


class Indexed(NamedTuple):
    """What the index says of a file. `kind`: as `StateKind`, in plain values; `intact`: the file is as written."""

    saved: SavedState
    kind: dict[str, Any]
    intact: bool


def read_index(folder: Path) -> list[dict[str, Any]]:
    """The rows of the folder's index, unchecked. Raises OSError, ValueError."""
    rows = decode(list[Any], read_regular(folder / INDEX, MOST_INDEX))
    return [row for row in rows if isinstance(row, dict)]


def read_indexed(file: Path, data: Blob) -> Indexed | None:
    """The entry of a file that holds `data`; None if the index beside it has none. Changes nothing."""
    try:
        row = next(row for row in read_index(file.parent) if row.get("key") == file.stem)
        saved = saved_of(counted([row])[0])
        return Indexed(saved, dict(row["kind"]), digest_of(saved.key, data) == saved.digest)
    except (OSError, StopIteration, KeyError, TypeError, ValueError, OverflowError):
        return None


def read_state(folder: Path, saved: SavedState) -> Blob | None:
    """The bytes of a state in the folder; None if the file is missing or has changed."""
    try:
        most = saved.n_bytes + saved.n_bytes // 1000 + 1024  # packed, it may be a little larger
        data = read_regular(folder / f"{saved.key}{SUFFIX}", most)
        if digest_of(saved.key, data) != saved.digest:
            raise ValueError("its digest is not the one that was written down")
        blob = zlib.decompressobj().decompress(data, saved.n_bytes + 1) if saved.packed else data
        if len(blob) != saved.n_bytes:
            raise ValueError("it has another length")
    except (OSError, ValueError, zlib.error, MemoryError) as error:
        _log.warning("The saved state %s cannot be used: %r", saved.key, error)
        return None
    return blob


def counted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of an index, with counters instead of the times that earlier versions wrote."""
    timed = [(at_s, i) for i, row in enumerate(rows) if "used" not in row and _is_time(at_s := row.get("at_s"))]
    found = [{name: value for name, value in row.items() if name != "at_s"} for row in rows]
    for number, (_, i) in enumerate(sorted(timed, key=lambda pair: pair[0]), 1):  # type: ignore[arg-type,return-value]
        found[i]["used"] = number
    return found


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < 1e12


def saved_of(row: dict[str, Any]) -> SavedState:
    """One row of the index. Raises ValueError if kvdesk cannot have written it."""
    entry = from_builtins(_Entry, row)
    if not _KEY.fullmatch(entry.key):
        raise ValueError("a strange key")
    if not 0 <= entry.n_bytes < 1 << 50 or entry.exact < 0 or not 0 <= entry.used < 1 << 62:
        raise ValueError("a strange number")
    ends = (entry.first + len(entry.tokens), *(span.p1 for span in entry.spans))
    if entry.first < 0 or max(ends) > _MOST_POSITIONS or not all(0 <= token < 1 << 31 for token in entry.tokens):
        raise ValueError("a strange position or token")
    if not entry.tokens or not math.isfinite(entry.prefill_ms):
        raise ValueError("a state of no tokens, or of no time")
    if entry.chats and len(entry.messages) != len(entry.chats):
        raise ValueError("a document of unknown messages")
    marks = entry.texts if all(map(_FINGERPRINT.fullmatch, entry.texts)) else ()  # earlier versions wrote the texts
    return SavedState(**fields(entry) | {"texts": marks})


def fingerprint(text: str) -> str:
    """For `CacheSequence.texts`: a text that is deleted later must not be in the index."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def fields(entry: _Entry) -> dict[str, Any]:
    """The fields that the index stores of a state."""
    return {name: getattr(entry, name) for name in _Entry.__slots__}


def key_of(kind: StateKind, tokens: Sequence[int], conversation: ConversationId, exact: int) -> str:
    """The key of a state. It depends on the conversation, with which it is deleted, and on `exact`, because moved
    tokens do not have the K and V of a prefill.
    """
    moved = (exact,) if exact < len(tokens) else ()
    return state_key(kind, (*tokens, -1, *moved, *conversation.encode()))


def digest_of(key: str, data: Blob) -> str:
    """The digest of the file and its key, which covers model, settings, tokens and conversation."""
    digest = hashlib.sha256(key.encode())
    digest.update(data)
    return digest.hexdigest()
