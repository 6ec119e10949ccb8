"""kvdesk's own JSON: a round trip loses nothing, and every field of a conversation and a message is in it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import export, formats, json_file
from kvdesk.errors import UserError
from kvdesk.message import Message
from kvdesk.store import Store
from kvdesk.values import names
from tests.conversations.porting.strategies import conversations, several

JSON = export.EXPORT_FORMATS[0]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json") / "chats.json"


def whole(conversation: Conversation) -> dict[str, Any]:
    """Every field, also those that `==` does not look at."""
    return {name: getattr(conversation, name) for name in names(conversation)}


@given(several())
def test_a_round_trip_loses_nothing(path: Path, there: list[Conversation]) -> None:
    assert export.write(path, JSON, there) == len(there)
    back = [found.conversation for found in formats.read(path)]
    assert [whole(one) for one in back] == [whole(one) for one in there]


@hypothesis.settings(max_examples=10)
@given(conversations())
def test_every_field_is_in_the_file(there: Conversation) -> None:
    assert set(json_file.as_values(there)) == set(names(Conversation)) - {"messages"}
    for message in there.messages:
        assert set(json_file.as_values(message)) == set(names(Message)) - {"conversation"}


def _file(path: Path, **changes: Any) -> Path:
    """A file with two messages, and something else in it than there was."""
    message = {"id": "m1", "parent": None, "role": "user", "text": "Hi"}
    answer = {"id": "m2", "parent": "m1", "role": "assistant", "text": "Ho", "tokens": [1, 2]}
    chat = {
        "id": "c",
        "title": "T",
        "colour": 0,
        "leaf": "m2",
        "messages": [message, answer | changes.pop("answer", {})],
    }
    header = {"format": json_file.FORMAT, "version": 1} | changes.pop("header", {})
    path.write_text(json.dumps(header | {"conversations": [chat | changes]}), "utf-8")
    return path


def test_fields_that_are_missing_or_unknown_are_no_error(path: Path) -> None:
    [found] = formats.read(_file(path, mood="good", answer={"stars": 5}))
    assert [message.text for message in found.conversation.messages] == ["Hi", "Ho"]
    assert found.conversation.messages[1].tokens == (1, 2)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"header": {"version": 2}}, "This file was written by a newer kvdesk (format 2, this one knows 1)."),
        ({"header": {"version": "1"}}, "This file claims to be written by kvdesk, but has no version of the format."),
        ({"answer": {"role": "king"}}, "The chat “T” cannot be read: role is not as it should be."),
        ({"answer": {"id": "m1"}}, "The chat “T” has two messages with the same id."),
        ({"answer": {"parent": "m2"}}, "The chat “T” is damaged: its messages follow one another in a circle."),
        ({"answer": {"tokens": [1 << 40]}}, "The chat “T” has invalid token ids."),
        ({"answer": {"tokens": "none"}}, "The chat “T” cannot be read: tokens is not as it should be."),
        ({"queued": [3]}, "The chat “T” cannot be read: queued[0] is not as it should be."),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        list(formats.read(_file(path, **changes)))
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["../../../etc/x", "a/b", "C:\\x", "", "\0", "x" * 65])
def test_ids_that_could_name_a_path_are_replaced(path: Path, name: str) -> None:
    [found] = formats.read(_file(path, id=name))
    assert found.conversation.id.isalnum()
    assert {message.conversation for message in found.conversation.messages} == {found.conversation.id}
    assert found.conversation.leaf == found.conversation.messages[1].id
    assert found.conversation.messages[1].parent == found.conversation.messages[0].id


def test_an_answer_that_was_being_written_is_interrupted(path: Path) -> None:
    [found] = formats.read(_file(path, answer={"state": "streaming"}))
    assert found.conversation.messages[1].state == "interrupted"


def test_values_that_no_database_can_hold_are_put_right(path: Path) -> None:
    changes = {"colour": -7, "created_ms": 1 << 80, "leaf": "gone", "overflow": "explode", "title": "\ud83d x"}
    use = {"server": "s", "tool": "t", "arguments": "{}", "ms": 10**400}
    attached = {"name": "a.txt", "kind": "text", "text": "A", "n_tokens": -(10**400)}
    answer = {"parent": "gone", "created_ms": -1, "thought_ms": 10**30, "use": use, "attachments": [attached]}
    [found] = formats.read(_file(path, **changes, answer=answer))
    there = found.conversation
    assert (there.colour, there.created_ms, there.overflow, there.leaf) == (0, 0, "", "m2")
    assert there.title == "� x"
    read = there.messages[1]
    assert (read.parent, read.created_ms, read.thought_ms) == (None, 0, 0)
    assert (read.use.ms, read.attachments[0].n_tokens) == (1 << 53, -(1 << 53))
    with closing(Store(Path(":memory:"))) as store:
        store.add([there])
        assert store.all_messages(there.id) == there.messages


@pytest.mark.parametrize("damage", [{"rank": 1 << 40}, {"rank": -1}, {"bytes": 1 << 62}, {"id": 1 << 31}, {"id": "x"}])
def test_probabilities_that_cannot_be_are_left_out(path: Path, damage: dict[str, Any]) -> None:
    token = {"id": 1, "logprob": -0.5, "bytes": [65], "rank": 1, "top_logprobs": []}
    for kept in ({}, damage):
        [found] = formats.read(_file(path, answer={"probabilities": [token | kept]}))
        assert bool(found.conversation.messages[1].probabilities) == (not kept)
