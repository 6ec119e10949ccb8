"""Random conversations with every field there is: what is added to `Conversation` or `Message` later is filled too."""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from kvdesk.chat import Conversation, EvictedMessages
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.protocol.logprobs import pack
from kvdesk.settings import Overflow
from kvdesk.thinking import LEVELS
from kvdesk.values import is_dataclass, names, replace
from tests.protocol.logprobs import answer_logprobs

SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "overflow": st.sampled_from(("", *(overflow.value for overflow in Overflow))),
    "state": st.sampled_from(("complete", "stopped", "interrupted", "failed")),
    "colour": st.integers(0, 9),
    "messages": st.just(()),
    "probabilities": st.sampled_from((b"", pack(answer_logprobs(3)))),
    "level": st.sampled_from(LEVELS),
    "fields": st.sampled_from(
        ("", '{"tool_call_id": "1", "name": "f"}', '{"tool_calls": [{"id": 1}], "content": "é"}')
    ),
}
"""Fields in which not every value of their type can be."""


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a declared type, with every field of a dataclass or model filled."""
    if kind is int:
        return st.integers(0, 2**31 - 1)
    if kind is float:
        return st.floats(0, 1e9)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _of_model(kind)
    if is_dataclass(kind):
        return of_dataclass(kind)  # type: ignore[arg-type]  # the type, not a value of it
    arguments = get_args(kind)
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            return st.one_of(*(st.none() if one is NoneType else of_type(one) for one in arguments))
        case origin if origin is tuple and arguments[-1] is Ellipsis:
            return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(of_type, arguments))
        case origin if origin is frozenset:
            return st.frozensets(of_type(arguments[0]), max_size=3)
    return st.text(max_size=20) if kind is str else st.from_type(kind)


@cache
def of_dataclass(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: SPECIAL[name] if name in SPECIAL else of_type(hints[name]) for name in names(kind)})


def _of_model(kind: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    """Values within the declared limits; the defaults where the model refuses them together."""
    kinds: dict[str, Any] = {
        name: Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        for name, info in kind.model_fields.items()
    }
    declared = {name: st.from_type(its) for name, its in kinds.items()}

    def made(values: dict[str, Any]) -> BaseModel:
        try:
            return kind(**values)
        except ValidationError:
            return kind()

    return st.fixed_dictionaries(declared).map(made)


@st.composite
def conversations(draw: st.DrawFn, number: int = 0) -> Conversation:
    """One with a tree of messages, or nothing but a draft."""
    own = ConversationId(f"{number:032x}")
    messages: list[Message] = []
    for place in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from((None, *(message.id for message in messages))))
        message = draw(of_dataclass(Message))
        name = MessageId(f"{number:016x}{place:016x}")
        messages.append(replace(message, id=name, conversation=own, parent=parent))
    ids = [message.id for message in messages]
    evicted = EvictedMessages()
    if ids:
        partial = draw(st.none() | st.tuples(st.sampled_from(ids), st.integers(0, 9)))
        ranges = st.tuples(st.tuples(st.integers(0, 4), st.integers(5, 9)))
        cuts = draw(st.lists(st.tuples(st.sampled_from(ids), ranges), max_size=2, unique_by=lambda cut: cut[0]))
        named = draw(st.frozensets(st.sampled_from(ids)))
        evicted = EvictedMessages(named, partial, draw(st.text(max_size=5)), tuple(cuts))
    conversation = draw(of_dataclass(Conversation))
    assert isinstance(conversation, Conversation)
    return replace(
        conversation,
        id=own,
        leaf=draw(st.sampled_from(ids)) if ids else None,
        evicted=evicted,
        draft=conversation.draft or "typed",
        messages=tuple(messages),
    )


@st.composite
def several(draw: st.DrawFn) -> list[Conversation]:
    return [draw(conversations(number)) for number in range(draw(st.integers(1, 3)))]
