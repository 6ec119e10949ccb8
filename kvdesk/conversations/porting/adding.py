"""Which of the conversations found in a file are added, with which ids and colours. Pure values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId, MessageId, new_conversation_id, new_message_id
from kvdesk.values import is_dataclass, names, replace

_GOOD_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""Ids of kvdesk are hexadecimal. Those of a file may name anything, also a way to another folder."""


def is_empty(conversation: Conversation) -> bool:
    """Nothing was said in it, or is about to be: there is nothing to keep."""
    typed = conversation.draft or conversation.draft_attachments or conversation.queued
    return not (conversation.messages or typed)


def has_good_ids(conversation: Conversation) -> bool:
    """Whether its own id and those of its messages can be kept."""
    ids = (conversation.id, *(message.id for message in conversation.messages))
    return all(_GOOD_ID.fullmatch(one) for one in ids)


def renamed(conversation: Conversation) -> Conversation:
    """The same with new ids for itself and its messages, wherever they are."""
    ids: dict[str, str] = {message.id: new_message_id() for message in conversation.messages}
    new = _with_ids(replace(conversation, messages=()), Conversation, {conversation.id: new_conversation_id()} | ids)
    assert isinstance(new, Conversation)
    ids[conversation.id] = new.id
    messages = tuple(_with_ids(message, type(message), ids) for message in conversation.messages)
    return replace(new, messages=messages)


def chosen(
    found: Iterable[Conversation], known: Iterable[Conversation], n_colours: int, *, copies: bool
) -> Iterator[Conversation]:
    """Those that are added to the conversations that are known: all but empty ones and what is there already,
    which with `copies` comes once more under new ids. Colours that are not chosen yet become those that are used least.
    """
    ids, colours = set[str](), [0] * n_colours
    for conversation in known:
        ids.add(conversation.id)
        colours[conversation.colour % n_colours] += 1
    for conversation in found:
        if is_empty(conversation):
            continue
        if conversation.id in ids:
            if not copies:
                continue
            conversation = renamed(conversation)
        ids.add(conversation.id)
        colour = conversation.colour if conversation.colour >= 0 else colours.index(min(colours))
        colours[colour % n_colours] += 1
        yield replace(conversation, colour=colour)


def _with_ids(value: Any, kind: Any, ids: Mapping[str, str]) -> Any:
    """The value with other ids in the fields that are declared to hold ids."""
    if value is None or not _holds_ids(kind):
        return value
    if kind is MessageId or kind is ConversationId:
        return ids.get(value, value)
    arguments = get_args(kind)
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            return _with_ids(value, next(one for one in arguments if one is not NoneType), ids)
        case origin if origin is tuple and arguments[-1] is not Ellipsis:
            return tuple(_with_ids(one, its, ids) for one, its in zip(value, arguments, strict=True))
        case origin if origin in (tuple, frozenset):
            return origin(_with_ids(one, arguments[0], ids) for one in value)
    return replace(value, **{name: _with_ids(getattr(value, name), its, ids) for name, its in _declared(kind)})


@cache
def _holds_ids(kind: Any) -> bool:
    if kind is MessageId or kind is ConversationId:
        return True
    if is_dataclass(kind):
        declared: tuple[tuple[str, Any], ...] = _declared(kind)  # type: ignore[arg-type]  # the type, not a value of it
        return any(_holds_ids(its) for _name, its in declared)
    return any(_holds_ids(one) for one in get_args(kind))


@cache
def _declared(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields of a dataclass."""
    hints = get_type_hints(kind)
    return tuple((name, hints[name]) for name in names(kind))
