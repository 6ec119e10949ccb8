"""Whole conversations added in one go: all or none, and never in the place of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kvdesk.chat import Conversation, ConversationId
from kvdesk.store import Store
from kvdesk.store import store as store_module
from tests.store.values import conversation, message


def _whole(name: str) -> Conversation:
    messages = (message(f"{name}1", of=name), message(f"{name}2", parent=f"{name}1", role="assistant", of=name))
    return replace(conversation(name, leaf=f"{name}2"), messages=messages)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "kvdesk.sqlite3")) as store:
        yield store


def _there(store: Store) -> list[str]:
    return sorted(one.id for one in store.conversations())


def test_conversations_come_with_their_messages(store: Store) -> None:
    added = store.add([_whole("a"), _whole("b")])
    assert [one.id for one in added] == ["a", "b"]
    assert store.all_messages(ConversationId("a")) == _whole("a").messages
    assert [hit.conversation for hit in store.search("Hello") if hit.message is not None]


def test_an_error_in_the_middle_adds_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Exception):
        pass

    def broken() -> Iterator[Conversation]:
        yield _whole("a")
        raise Stopped

    with pytest.raises(Stopped):
        store.add(broken())
    assert _there(store) == []

    monkeypatch.setattr(store_module, "TOLD_EVERY", 3)

    def stop(n_messages: int) -> None:
        assert n_messages == 3
        raise Stopped

    with pytest.raises(Stopped):
        store.add([_whole("a"), _whole("b")], stop)
    assert _there(store) == []
    assert not store.search("Hello")
    store.add([_whole("a")])
    assert _there(store) == ["a"]


def test_ids_that_are_taken_are_replaced(store: Store) -> None:
    store.add([_whole("a")])
    thief = replace(
        _whole("b"), messages=tuple(replace(m, conversation=ConversationId("b")) for m in _whole("a").messages)
    )
    [stolen] = store.add([thief])
    [again] = store.add([_whole("a")])
    assert store.all_messages(ConversationId("a")) == _whole("a").messages
    assert len({"a", stolen.id, again.id}) == 3
    assert [m.text for m in store.all_messages(again.id)] == [m.text for m in _whole("a").messages]
    assert again.leaf == store.all_messages(again.id)[-1].id
