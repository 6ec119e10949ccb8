"""Whole conversations added: all or none, in steps between which others work, and never in the place of others."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given

from kvdesk.chat import Conversation
from kvdesk.errors import StoreError
from kvdesk.message import ConversationId
from kvdesk.store import Store, addition
from kvdesk.values import replace
from tests.conversations.porting.strategies import several
from tests.store.values import conversation, filled_before, message


def whole(name: str) -> Conversation:
    messages = (message(f"{name}1", of=name), message(f"{name}2", parent=f"{name}1", role="assistant", of=name))
    return replace(conversation(name, leaf=f"{name}2"), messages=messages)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addition, "PIECE", 2)


def there(store: Store) -> list[str]:
    return sorted(one.id for one in store.conversations())


def rows_in(store: Store) -> list[int]:
    tables = ("conversation", "message", "adding")
    return [store._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]  # type: ignore[index]


def test_conversations_come_with_their_messages(store: Store) -> None:
    added = store.add([whole("a"), whole("b")])
    assert [one.id for one in added] == ["a", "b"]
    assert store.all_messages(ConversationId("a")) == whole("a").messages
    assert [hit.conversation for hit in store.search("Hello") if hit.message is not None]
    assert rows_in(store) == [2, 4, 0]


def test_nothing_is_shown_before_all_is_there_and_others_work_in_between(store: Store) -> None:
    adding = store.begin_addition([whole("a"), whole("b")])
    while adding.step():
        assert there(store) in ([], ["own"])
        assert not [hit for hit in store.search("Hello") if hit.conversation != "own"]
        assert not [hit for hit in store.search("title") if hit.conversation != "own"]
        store.put_conversation(conversation("own"))
        assert not adding.is_done
        assert adding.added == ()
    assert there(store) == ["a", "b", "own"]
    assert adding.n_messages == 4


def test_an_error_in_the_middle_adds_nothing(store: Store) -> None:
    class Stopped(Exception):
        pass

    def broken() -> Iterator[Conversation]:
        yield whole("a")
        yield whole("b")
        raise Stopped

    with pytest.raises(Stopped):
        store.add(broken())
    assert rows_in(store) == [0, 0, 0]
    assert not store.search("Hello")
    store.add([whole("a")])
    assert there(store) == ["a"]


def test_cancel_removes_what_is_there(store: Store) -> None:
    store.put_conversation(conversation("own"))
    adding = store.begin_addition([whole("a"), whole("b")])
    assert adding.step()
    assert adding.step()
    adding.cancel()
    while adding.step():
        assert there(store) == ["own"]
    assert rows_in(store) == [1, 0, 0]
    assert not adding.is_done


def test_cancel_comes_too_late_after_the_last_step(store: Store) -> None:
    adding = store.begin_addition([whole("a")])
    while adding.step():
        pass
    adding.cancel()
    assert not adding.step()
    assert [one.id for one in adding.added] == ["a"]
    assert there(store) == ["a"]


def test_what_a_crash_leaves_is_hidden_and_goes_without_harm_to_others(path: Path) -> None:
    first = Store(path)
    left = first.begin_addition([whole("a"), whole("b")])
    assert left.step()
    assert left.step()
    first.close()  # as after a crash: nothing of it was finished
    with closing(Store(path)) as store:
        assert there(store) == []
        rest = store.leftover()
        store.add([whole("c")])
        while rest.step():
            assert there(store) == ["c"]
        assert rows_in(store) == [1, 2, 0]
        assert store.leftover() is None


def test_ids_that_are_taken_are_replaced(store: Store) -> None:
    store.add([whole("a")])
    b = ConversationId("b")
    thief = replace(whole("b"), messages=tuple(replace(m, conversation=b) for m in whole("a").messages))
    [stolen] = store.add([thief])
    [again] = store.add([whole("a")])
    assert store.all_messages(ConversationId("a")) == whole("a").messages
    assert len({"a", stolen.id, again.id}) == 3
    assert [m.text for m in store.all_messages(again.id)] == [m.text for m in whole("a").messages]
    assert again.leaf == store.all_messages(again.id)[-1].id


def test_a_full_disk_leaves_nothing_that_is_shown(store: Store) -> None:
    store._connection.pragma("max_page_count", 1)
    long = whole("a")
    long = replace(long, messages=(replace(long.messages[0], text="long " * 50_000),))
    adding = store.begin_addition([whole("b"), long])
    with pytest.raises(StoreError, match="The disk is full"):
        list(iter(adding.step, False))
    assert there(store) == []


def test_a_home_of_before_has_nothing_to_hide(path: Path) -> None:
    filled_before(path, "CREATE TABLE adding")
    with closing(Store(path)) as store:
        assert there(store) == ["c"]
        assert store.leftover() is None


@hypothesis.settings(max_examples=4)
@given(several())
def test_every_field_comes_back(there: list[Conversation]) -> None:
    with closing(Store(Path(":memory:"))) as store:
        for one in store.add(there):
            original = next(other for other in there if other.id == one.id)
            assert store.all_messages(one.id) == original.messages
            assert next(other for other in store.conversations() if other.id == one.id) == original
