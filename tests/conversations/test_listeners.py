"""The store hears first, and no listener that fails costs a token."""

import sys
from contextlib import closing

import pytest

from kvdesk.chat import EvictedMessages
from kvdesk.conversations.changes import Change, ReadFailed
from kvdesk.conversations.tree import Tree
from kvdesk.protocol.chat import MessagesEvicted, TextDelta
from kvdesk.store.listener import StoreListener, read_tree
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from tests.conversations.conftest import Held


def kept(writer: StoreWriter) -> list[str]:
    """The titles that are in the database."""
    return [known.title for known in writer.ask(Store.conversations).result()]


@pytest.mark.parametrize("fails_first", [False, True])
def test_a_listener_that_raises_at_everything_loses_no_token(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch, *, fails_first: bool
) -> None:
    held, said = Held(), 0

    def fail(_: Change) -> None:
        raise RuntimeError("a widget failed")

    def count(*_: object) -> None:
        nonlocal said
        said += 1

    monkeypatch.setattr(sys, "excepthook", count)
    for listener in (fail, StoreListener(writer)) if fails_first else (StoreListener(writer), fail):
        held.service.subscribe(listener)
    held.listen()
    asked = held.say("Count")
    texts = [f"{i} " for i in range(200)]
    for text in texts:
        held.write(asked, text)
    held.service.send(asked.conversation, "More")
    held.end(asked)
    held.answer(held.asked[-1], "Enough.")
    held.service.turns.regenerate(asked.conversation, 2)
    for command in held.asked[-2:]:
        held.answer(command, "Or not.")
    assert said == len(held.told) > 200, "it is reported, every time"
    (conversation,) = writer.ask(lambda store: store.conversations()).result()
    tree = Tree(writer.ask(lambda store: store.all_messages(asked.conversation)).result())
    stored = tree.branch(conversation.leaf)
    assert [m.text for m in stored] == ["Count", "".join(texts), "More", "Or not."]
    assert held.service.branch(asked.conversation) == stored


def test_the_store_hears_of_each_change_before_the_window(held: Held) -> None:
    order: list[tuple[str, Change]] = []
    held = Held()
    held.service.subscribe(lambda change: order.append(("store", change)))
    held.service.subscribe(lambda change: order.append(("window", change)))
    asked = held.say("Go")
    held.answer(asked, "All of it")
    held.service.delete(asked.conversation)
    assert [who for who, _ in order] == ["store", "window"] * (len(order) // 2)
    assert [change for _, change in order[::2]] == [change for _, change in order[1::2]]


def test_an_event_that_cannot_be_applied_costs_none_after_it(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: said.append(str(error)))
    asked = held.say("Go")

    def break_off(_: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(held.service._known, "put", break_off)
        held.service.take(
            [
                TextDelta(asked.conversation, asked.answer, "all ", (1,)),
                MessagesEvicted(asked.conversation, EvictedMessages()),
                TextDelta(asked.conversation, asked.answer, "of it", (2,)),
            ]
        )
    assert (held.last(asked.conversation).text, said) == ("all of it", ["broken"])


def test_a_restart_finds_what_was_written_and_says_what_was_interrupted(writer: StoreWriter) -> None:
    held = Held()
    held.service.subscribe(StoreListener(writer))
    first = held.say("Remember me")
    held.answer(first, "I will.")
    second = held.say("And me?", first.conversation)
    held.write(second, "You ", "too")
    assert writer.close().n_messages == 0, "and nothing was told of the end: the process was killed"

    with closing(StoreWriter(writer._path, lambda error: pytest.fail(str(error)))) as again:
        later, stored = Held().listen(), StoreListener(again)
        later.service.subscribe(stored)
        later.service.load(stored.load())
        later.service.open(first.conversation)
        ((conversation, leaf),) = later.reading
        tree = again.ask(lambda store: read_tree(store, conversation, leaf)).result()
        later.service.tree_read(conversation, tree)
        last = later.last(first.conversation)
        assert (last.text, last.state, last.tokens) == ("You too", "interrupted", (0, 1))
        third = later.say("Who am I?", first.conversation)
        assert [m.text for m in third.messages] == ["Remember me", "I will.", "And me?", "You too", "Who am I?"]
        assert not any(isinstance(change, ReadFailed) for change in later.told)


def test_an_empty_conversation_is_kept_while_something_is_typed_or_waits(writer: StoreWriter) -> None:
    held = Held()
    held.service.subscribe(StoreListener(writer))
    where = held.service.create()
    assert kept(writer) == []
    held.service.keep_draft(where, "Hel")
    assert kept(writer) == [""]
    held.service.keep_draft(where, "")
    assert kept(writer) == []
    held.service.queued.wait_for_model()
    held.service.send(where, "Hello")
    assert kept(writer) == [""]
    held.service.queued.cancel(where, 0, "Hello")
    assert kept(writer) == []
    held.service.rename(where, "Mine")
    assert kept(writer) == ["Mine"]


def test_a_deleted_conversation_takes_its_rows_along(writer: StoreWriter) -> None:
    held = Held()
    held.service.subscribe(StoreListener(writer))
    asked = held.say("Go away")
    held.write(asked, "I am")
    held.service.delete(asked.conversation)
    held.end(asked, "stopped")
    assert kept(writer) == []
    assert writer.ask(lambda store: store.all_messages(asked.conversation)).result() == ()
