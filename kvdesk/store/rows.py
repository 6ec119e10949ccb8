"""Values to rows and back. Owns the encoding of tokens, statistics and text; must never know: a connection.

Rows are read one by one and never refused: what a failing disk or another program made of a row is shown for what it
is, so that it hides neither its neighbours nor the rest of kvdesk. Text comes as the bytes of the file (`selected`),
because SQLite promises no valid UTF-8.
"""

import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any, TypeVar, get_args

from kvdesk.chat import NONE_EVICTED, Conversation, EvictedMessages, QueuedMessage
from kvdesk.codec import CodecError, decode, encode
from kvdesk.message import (
    Attachment,
    AttachmentKind,
    ConversationId,
    FinishReason,
    Message,
    MessageId,
    MessageState,
    Role,
    ToolUse,
    TurnStats,
    known_fields,
    storable,
)
from kvdesk.quantities import valid_ms
from kvdesk.settings import Sampling
from kvdesk.thinking import AS_USUAL, Thinking, checked
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, names

Row = Sequence[Any]
T = TypeVar("T")
_Attached = tuple[str, AttachmentKind, str, int, str]
"""An attachment in JSON: name, kind, note, tokens, text."""

CONVERSATION_COLUMNS = (
    *("id", "title", "colour", "leaf", "system_prompt"),
    *("created_ms", "updated_ms", "overflow", "departed", "draft", "queued", "sampling", "template"),
    *("folder", "pinned", "archived"),
    *("draft_attachments", "tools", "thinking", "edits"),
)
MESSAGE_COLUMNS = (
    *("id", "conversation", "parent", "role", "text", "state"),
    *("tokens", "stats", "note", "created_ms", "model", "digest", "attachments", "thought_ms", "finish", "pinned"),
    *("probabilities", "fields", "tool_use"),
)
_NUMBERS = frozenset(("colour", "created_ms", "updated_ms", "pinned", "archived", "thought_ms"))
"""All others are text and bytes."""
_MAY_BE_NULL = frozenset(("leaf", "parent", "stats", "digest"))
_ROLES = frozenset(get_args(Role))
_STATES = frozenset(get_args(MessageState))
_FINISHES = frozenset(get_args(FinishReason))
_LARGEST = 1 << 53
"""Larger numbers in `TurnStats` are damage: nothing here counts so far."""
_MOST_COLOURS = 1 << 15
DAMAGED_NOTE = marked("This message is damaged in the database; what could be read of it is shown.")


def selected(columns: tuple[str, ...]) -> str:
    """The columns as `conversation_of` and `message_of` want them: text as bytes. A damaged row may hold any type, and
    NULL, in any column, whatever the table says.
    """
    found = []
    for name in columns:
        kind, none = ("INTEGER", "0") if name in _NUMBERS else ("BLOB", "''")
        found.append(f"CAST({name if name in _MAY_BE_NULL else f'ifnull({name}, {none})'} AS {kind})")
    return ", ".join(found)


def pack_tokens(tokens: Sequence[int]) -> bytes:
    """int32, little-endian."""
    packed = array("i", tokens)
    assert packed.itemsize == 4
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_tokens(blob: bytes) -> tuple[int, ...] | None:
    """None for bytes that are no token ids."""
    if len(blob) % 4:
        return None
    packed = array("i")
    packed.frombytes(blob)
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def digest_of(*parts: bytes | None) -> bytes:
    """Eight bytes that tell one message's id, conversation, parent, role, text and, if it has any, attachments from
    all others: SQLite keeps no checksum.
    """
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update((0 if part is None else 1 + len(part)).to_bytes(8, "little"))
        digest.update(part or b"")
    return digest.digest()


def pack_stats(stats: TurnStats | None) -> str | None:
    return None if stats is None else encode(stats).decode()


def unpack_stats(text: bytes | None) -> TurnStats | None:
    """None also for numbers that are damaged or that another version kept differently: they are only shown."""
    if text is None:
        return None
    try:
        stats = decode(TurnStats, text)
    except CodecError:
        return None
    numbers = (value for name in names(stats) if isinstance(value := getattr(stats, name), int | float))
    return stats if all(-1 <= number < _LARGEST for number in numbers) else None  # seq_id -1: none


def pack_queued(queued: Sequence[QueuedMessage]) -> str:
    """A JSON array of texts, or [text, attachments] if it has any; "" if nothing is queued."""
    return _json([[storable(q.text), _lists(q.attachments)] if q.attachments else storable(q.text) for q in queued])


def unpack_queued(packed: str) -> tuple[QueuedMessage, ...]:
    """What is damaged stays as it is, as one text: it was typed by a user."""
    try:
        found = decode(tuple[str | tuple[str, tuple[_Attached, ...]], ...], packed) if packed else ()
    except CodecError:
        return (QueuedMessage(packed),)
    return tuple(QueuedMessage(q) if isinstance(q, str) else QueuedMessage(q[0], _attachments(q[1])) for q in found)


@lru_cache(maxsize=4)  # a draft is written again and again while one types
def pack_attachments(attachments: tuple[Attachment, ...]) -> str:
    """A JSON array; "" if there are none."""
    return _json(_lists(attachments))


def unpack_attachments(packed: str) -> tuple[Attachment, ...]:
    """Raises CodecError for what is damaged."""
    return _attachments(decode(tuple[_Attached, ...], packed)) if packed else ()


def _lists(attachments: Sequence[Attachment]) -> list[_Attached]:
    return [(storable(a.name), a.kind, storable(a.note), a.n_tokens, storable(a.text)) for a in attachments]


def _attachments(lists: Sequence[_Attached]) -> tuple[Attachment, ...]:
    return tuple(Attachment(name, kind, text, note, n_tokens) for name, kind, note, n_tokens, text in lists)


@dataclass(frozen=True, slots=True)
class _Evicted:
    """`EvictedMessages` by the names that kvdesk 0.1.0 gave."""

    messages: frozenset[MessageId]
    parted: tuple[MessageId, int] | None
    policy: str = ""
    cuts: tuple[tuple[MessageId, tuple[tuple[int, int], ...]], ...] = ()


def pack_evicted(evicted: EvictedMessages) -> str:
    """JSON; empty if nothing was."""
    if evicted == NONE_EVICTED:
        return ""
    cuts = {"cuts": evicted.cuts} if evicted.cuts else {}
    return _json({"messages": sorted(evicted.messages), "parted": evicted.partial, "policy": evicted.policy, **cuts})


def unpack_evicted(text: str) -> EvictedMessages:
    """Whatever cannot be read means that everything is there: the oldest are then evicted again when it is full."""
    found = _read(_Evicted, text)
    if found is None or not all(_ascend(ranges) for _, ranges in found.cuts):
        return NONE_EVICTED
    return EvictedMessages(found.messages, found.parted, found.policy, found.cuts)


def _ascend(ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether they are in order and apart."""
    return all(a < b for a, b in pairwise([-1, *chain.from_iterable(ranges)]))


def _json(value: Any) -> str:
    """ "" for nothing."""
    return encode(value).decode() if value else ""


def _read(kind: type[T], packed: str) -> T | None:
    """None for what is empty or damaged."""
    try:
        return decode(kind, packed) if packed else None
    except CodecError:
        return None


def conversation_row(conversation: Conversation) -> tuple[Any, ...]:
    c = conversation
    return (
        *(c.id, storable(c.title), c.colour, c.leaf),
        *(storable(c.system_prompt), c.created_ms, c.updated_ms, c.overflow, pack_evicted(c.evicted)),
        storable(c.draft),
        pack_queued(c.queued),
        _json(c.sampling),
        storable(c.template),
        *(storable(c.folder), int(c.pinned), int(c.archived)),
        pack_attachments(c.draft_attachments),
        _json(list(map(storable, c.tools))),
        "" if c.thinking == AS_USUAL else _json(c.thinking),
        _json([(name, storable(text)) for name, text in c.edits]),
    )


def conversation_of(row: Row) -> Conversation:
    """Text that is not UTF-8 gets U+FFFD where it is broken."""
    identity, title, colour, leaf, system_prompt, created_ms, updated_ms, overflow, evicted, *rest = row
    draft, queued, sampling, template, folder, pinned, archived, draft_attachments, tools, thinking, edits = rest
    return Conversation(
        id=ConversationId(text_of(identity)),
        title=text_of(title),
        colour=colour if 0 <= colour < _MOST_COLOURS else 0,
        leaf=None if leaf is None else MessageId(text_of(leaf)),
        system_prompt=text_of(system_prompt),
        created_ms=valid_ms(created_ms),
        updated_ms=valid_ms(updated_ms),
        overflow=text_of(overflow),
        evicted=unpack_evicted(text_of(evicted)),
        draft=text_of(draft),
        queued=unpack_queued(text_of(queued)),
        sampling=_read(Sampling, text_of(sampling)),
        template=text_of(template),
        folder=text_of(folder),
        pinned=bool(pinned),
        archived=bool(archived),
        draft_attachments=_of_draft(text_of(draft_attachments)),
        tools=_read(tuple[str, ...], text_of(tools)) or (),
        thinking=checked(_read(Thinking, text_of(thinking)) or AS_USUAL),
        edits=_read(tuple[tuple[MessageId, str], ...], text_of(edits)) or (),
    )


def _of_draft(packed: str) -> tuple[Attachment, ...]:
    """What is damaged stays as it is, as one attachment."""
    try:
        return unpack_attachments(packed)
    except ValueError:
        return (Attachment("damaged", "text", packed),)


def message_row(message: Message) -> tuple[Any, ...]:
    m, text, attachments = message, storable(message.text), pack_attachments(message.attachments)
    parent = None if m.parent is None else m.parent.encode()
    covered = (m.id.encode(), m.conversation.encode(), parent, m.role.encode(), text.encode())
    digest = digest_of(*covered, attachments.encode()) if attachments else digest_of(*covered)
    return (
        *(m.id, m.conversation, m.parent, m.role, text, m.state),
        *(pack_tokens(m.tokens), pack_stats(m.stats), storable(m.note), m.created_ms, storable(m.model), digest),
        attachments,
        m.thought_ms,
        m.finish,
        int(m.pinned),
        m.probabilities,
        storable(m.fields),
        storable(_json(m.use)),
    )


def message_of(row: Row) -> Message:
    """A damaged row is a failed message with `DAMAGED_NOTE`. Rows written before digests were kept have None."""
    identity, conversation, parent, role, text, state, tokens, stats, note, created_ms, model, digest, *rest = row
    packed, thought_ms, finish, pinned, probabilities, fields, use = rest
    ids = unpack_tokens(tokens)
    known_role, known_state = text_of(role), text_of(state)
    damaged = ids is None or known_role not in _ROLES or known_state not in _STATES or not _is_utf8(text)
    covered = (identity, conversation, parent, role, text, *([packed] if packed else []))
    damaged |= digest is not None and digest != digest_of(*covered)
    try:
        attachments = unpack_attachments(text_of(packed))
    except ValueError:
        attachments, damaged = (), True
    return Message(
        id=MessageId(text_of(identity)),
        conversation=ConversationId(text_of(conversation)),
        parent=None if parent is None else MessageId(text_of(parent)),
        role=known_role if known_role in _ROLES else "assistant",  # type: ignore[arg-type]
        text=text_of(text),
        state="failed" if damaged else known_state,  # type: ignore[arg-type]
        tokens=() if damaged or ids is None else ids,
        stats=unpack_stats(stats),
        note=tr(DAMAGED_NOTE) if damaged else text_of(note),
        created_ms=valid_ms(created_ms),
        model=text_of(model),
        attachments=attachments,
        thought_ms=valid_ms(thought_ms),
        finish=known_finish if (known_finish := text_of(finish)) in _FINISHES else "",  # type: ignore[arg-type]
        pinned=bool(pinned),
        probabilities=b"" if damaged else probabilities,
        fields=known_fields(text_of(fields)),
        use=_read(ToolUse, text_of(use)),
    )


def attached_texts(packed: bytes) -> list[str]:
    """Names and texts of a message's attachments, for the search; none of damaged ones."""
    try:
        attachments = unpack_attachments(text_of(packed))
    except ValueError:
        return []
    return [part for attachment in attachments for part in (attachment.text, attachment.name)]


def text_of(raw: bytes) -> str:
    """Text as the file has it; U+FFFD where it is not UTF-8."""
    return raw.decode("utf-8", "replace")


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
