"""Values to rows and back. Owns the encoding of tokens, statistics and text; must never know: a connection."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, get_args

from kvdesk.chat import (
    ALL_THERE,
    Conversation,
    ConversationId,
    Left,
    Message,
    MessageId,
    MessageState,
    Role,
    TurnStats,
)
from kvdesk.errors import StoreError

Row = Sequence[Any]

CONVERSATION_COLUMNS = (
    *("id", "title", "colour", "leaf", "system_prompt"),
    *("created_ms", "updated_ms", "overflow", "departed", "draft"),
)
MESSAGE_COLUMNS = (
    *("id", "conversation", "parent", "role", "text", "state"),
    *("tokens", "stats", "note", "created_ms", "model"),
)
_ROLES = frozenset(get_args(Role))
_STATES = frozenset(get_args(MessageState))
_STATS = tuple(field.name for field in fields(TurnStats))


def storable(text: str) -> str:
    """Text that UTF-8 can hold: halves of a surrogate pair are joined, lone ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def pack_tokens(tokens: Sequence[int]) -> bytes:
    """int32, little-endian."""
    packed = array("i", tokens)
    assert packed.itemsize == 4
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_tokens(blob: bytes) -> tuple[int, ...]:
    if len(blob) % 4:
        raise StoreError("A stored message is damaged.", f"{len(blob)} bytes of tokens")
    packed = array("i")
    packed.frombytes(blob)
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def pack_stats(stats: TurnStats | None) -> str | None:
    return None if stats is None else json.dumps(asdict(stats), separators=(",", ":"))


def unpack_stats(text: str | None) -> TurnStats | None:
    """None also for numbers that another version kept differently: they are only shown."""
    if text is None:
        return None
    try:
        found = json.loads(text)
        return TurnStats(**{name: found[name] for name in _STATS})
    except (ValueError, KeyError, TypeError):
        return None


def pack_left(left: Left) -> str:
    """JSON; empty where nothing has left."""
    if left == ALL_THERE:
        return ""
    return json.dumps({"messages": sorted(left.messages), "parted": left.parted}, separators=(",", ":"))


def unpack_left(text: str) -> Left:
    """Whatever cannot be read means that everything is there: the oldest messages then leave again when they must."""
    if not text:
        return ALL_THERE
    try:
        found = json.loads(text)
        messages, parted = found["messages"], found["parted"]
        known = frozenset(MessageId(name) for name in messages if isinstance(name, str))
        if len(known) != len(messages):
            return ALL_THERE
        if parted is None:
            return Left(known)
        answer, n_tokens = parted
        if not isinstance(answer, str) or type(n_tokens) is not int:
            return ALL_THERE
        return Left(known, (MessageId(answer), n_tokens))
    except (ValueError, KeyError, TypeError, RecursionError):
        return ALL_THERE


def conversation_row(conversation: Conversation) -> tuple[Any, ...]:
    c = conversation
    return (
        *(c.id, storable(c.title), c.colour, c.leaf),
        *(storable(c.system_prompt), c.created_ms, c.updated_ms, c.overflow, pack_left(c.left)),
        storable(c.draft),
    )


def conversation_of(row: Row) -> Conversation:
    identity, title, colour, leaf, system_prompt, created_ms, updated_ms, overflow, departed, draft = row
    return Conversation(
        id=ConversationId(identity),
        title=title,
        colour=colour,
        leaf=None if leaf is None else MessageId(leaf),
        system_prompt=system_prompt,
        created_ms=created_ms,
        updated_ms=updated_ms,
        overflow=overflow,
        left=unpack_left(departed),
        draft=draft,
    )


def message_row(message: Message) -> tuple[Any, ...]:
    m = message
    return (
        *(m.id, m.conversation, m.parent, m.role, storable(m.text), m.state),
        *(pack_tokens(m.tokens), pack_stats(m.stats), storable(m.note), m.created_ms, storable(m.model)),
    )


def message_of(row: Row) -> Message:
    identity, conversation, parent, role, text, state, tokens, stats, note, created_ms, model = row
    if role not in _ROLES or state not in _STATES:
        raise StoreError("A stored message is damaged.", f"role {role!r}, state {state!r}")
    return Message(
        id=MessageId(identity),
        conversation=ConversationId(conversation),
        parent=None if parent is None else MessageId(parent),
        role=role,
        text=text,
        state=state,
        tokens=unpack_tokens(tokens),
        stats=unpack_stats(stats),
        note=note,
        created_ms=created_ms,
        model=model,
    )
