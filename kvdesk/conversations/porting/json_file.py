"""kvdesk's own file of conversations: JSON with all there is, so that a round trip loses nothing (docs/exports.md).

What is in it follows from the fields of `Conversation` and `Message`: a field that is added there is in the file.
"""

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from kvdesk import __version__, thinking
from kvdesk.chat import Conversation
from kvdesk.codec import CodecError, from_builtins, to_builtins
from kvdesk.conversations.porting.adding import has_good_ids, renamed
from kvdesk.conversations.porting.values import LONGEST_TITLE, LeftOut, Malformed, circle, items, short, text_in
from kvdesk.graphemes import cut
from kvdesk.loose_json import obj
from kvdesk.message import Message, MessageId, known_fields, storable
from kvdesk.protocol import logprobs
from kvdesk.quantities import valid_ms
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.values import replace

FORMAT: Final = "kvdesk conversations"
VERSION: Final = 1
"""Of the meaning of what is there. Fields that are added do not change it: readers ignore what they do not know."""
_MOST_COLOURS: Final = 1 << 15
_MOST_TOKEN_IDS: Final = 1 << 31
_LARGEST: Final = 1 << 53
"""Integers of a file are cut to this: no count is larger, and the database holds 64 bits."""
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
T = TypeVar("T", Conversation, Message)


def as_values(value: Conversation | Message) -> dict[str, Any]:
    """The fields as values of JSON: a conversation without its messages, a message without its conversation's id."""
    found: dict[str, Any] = to_builtins(value)
    del found["messages" if isinstance(value, Conversation) else "conversation"]
    if isinstance(value, Message):
        found["probabilities"] = [logprobs.as_values(one) for one in logprobs.unpack(value.probabilities)]
    return found


def lines(conversations: Iterable[Conversation], exported_ms: int) -> Iterator[str]:
    """The file, piece by piece: one line for each conversation, and one for each of its messages."""
    head = {"format": FORMAT, "version": VERSION, "kvdesk": __version__, "exported_ms": exported_ms}
    yield json.dumps(head)[:-1] + ', "conversations": ['
    for number, conversation in enumerate(conversations):
        yield ("," if number else "") + "\n" + _dumped(as_values(conversation))[:-1] + ', "messages": ['
        for place, message in enumerate(conversation.messages):
            yield ("," if place else "") + "\n" + _dumped(as_values(message))
        yield "]}"
    yield "\n]}\n"


def _dumped(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


# --- reading ----------------------------------------------------------------------------------------------------------


def check_header(header: Mapping[str, Any]) -> bool:
    """Whether this is kvdesk's file. Raises Malformed for one of a newer kvdesk."""
    if header.get("format") != FORMAT:
        return False
    version = header.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Malformed(tr("This file claims to be written by kvdesk, but has no version of the format."))
    if version > VERSION:
        sentence = tr("This file was written by a newer kvdesk (format {found}, this one knows {known}).")
        raise Malformed(sentence.format(found=version, known=VERSION))
    return True


def convert(value: Any, _file: str) -> tuple[Conversation, LeftOut]:
    """One conversation of the file. Raises Malformed."""
    found = obj(value)
    title = short(text_in(found.get("title"))) or tr("New chat")
    conversation = read_values(Conversation, {k: v for k, v in found.items() if k != "messages"}, title)
    messages = tuple(
        read_values(Message, {**obj(message), "conversation": conversation.id}, title)
        for message in items(found.get("messages"))
    )
    return checked(replace(conversation, messages=messages)), Counter()


def read_values(kind: type[T], values: Mapping[str, Any], title: str) -> T:
    """The value that `as_values` gave. Raises Malformed, with the title of the conversation."""
    try:
        return from_builtins(kind, _cleaned({**values, **_packed(values.get("probabilities"))}))
    except CodecError as error:
        _, _, where = str(error).partition(" - at `$.")
        sentence = tr("The chat “{title}” cannot be read: {field} is not as it should be.")
        field = short(where.rstrip("`")) or "JSON"
        raise Malformed(sentence.format(title=title, field=field), str(error)) from error


def _packed(probabilities: Any) -> dict[str, bytes]:
    """As a message keeps them. What is damaged is left out: it is only shown."""
    if not probabilities:
        return {"probabilities": b""}
    try:
        return {"probabilities": logprobs.pack([logprobs.of_values(one) for one in probabilities])}
    except (ValueError, TypeError, struct.error):
        return {"probabilities": b""}


def _cleaned(value: Any) -> Any:
    """Texts as UTF-8 can hold them, integers within `_LARGEST`."""
    if isinstance(value, str):
        return storable(value) if _LONE_SURROGATE.search(value) else value
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(one) for name, one in value.items()}
    if isinstance(value, list):
        return value if value and type(value[0]) is int else [_cleaned(one) for one in value]  # token ids
    return max(-_LARGEST, min(value, _LARGEST)) if type(value) is int else value


def checked(conversation: Conversation) -> Conversation:
    """A conversation that kvdesk can hold: what cannot be is put right, or refused. Raises Malformed."""
    if not has_good_ids(conversation):
        conversation = renamed(conversation)
    known: dict[MessageId, MessageId | None] = {m.id: m.parent for m in conversation.messages}
    if len(known) < len(conversation.messages):
        raise Malformed(
            tr("The chat “{title}” has two messages with the same id.").format(title=short(conversation.title))
        )
    if _has_circle(known):
        raise circle(conversation.title)
    messages = tuple(_checked_message(message, known, conversation.title) for message in conversation.messages)
    last = messages[-1].id if messages else None
    return replace(
        conversation,
        title=cut(conversation.title, LONGEST_TITLE, ""),
        colour=conversation.colour if 0 <= conversation.colour < _MOST_COLOURS else 0,
        leaf=conversation.leaf if conversation.leaf in known else last,
        created_ms=valid_ms(conversation.created_ms),
        updated_ms=valid_ms(conversation.updated_ms),
        overflow=conversation.overflow if conversation.overflow in set(Overflow) else "",
        thinking=thinking.checked(conversation.thinking),
        messages=messages,
    )


def _checked_message(message: Message, known: Mapping[MessageId, object], title: str) -> Message:
    if any(not 0 <= token < _MOST_TOKEN_IDS for token in message.tokens):
        raise Malformed(tr("The chat “{title}” has invalid token ids.").format(title=short(title)))
    numbers = () if message.stats is None else (getattr(message.stats, name) for name in message.stats.__slots__)
    stats_hold = all(abs(number) < _LARGEST for number in numbers if isinstance(number, int | float))
    return replace(
        message,
        parent=message.parent if message.parent in known else None,
        state="interrupted" if message.state == "streaming" else message.state,
        stats=message.stats if stats_hold else None,
        created_ms=valid_ms(message.created_ms),
        thought_ms=valid_ms(message.thought_ms),
        fields=known_fields(message.fields),
    )


def _has_circle(parents: Mapping[MessageId, MessageId | None]) -> bool:
    good: set[MessageId] = set()  # that lead to a first message
    for start in parents:
        path: list[MessageId] = []
        at: MessageId | None = start
        on_path: set[MessageId] = set()
        while at is not None and at in parents and at not in good:
            if at in on_path:
                return True
            on_path.add(at)
            path.append(at)
            at = parents[at]
        good.update(path)
    return False
