"""Folders, pins and the archive."""

from kvdesk.conversations.changes import ConversationChanged
from kvdesk.message import ConversationId
from kvdesk.store.listener import StoreListener
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from tests.conversations.conftest import Held


def folder_of(held: Held, conversation: ConversationId) -> str:
    return held.service.get(conversation).folder


def test_arranging_changes_neither_order_nor_time(held: Held) -> None:
    first, second = held.say("One").conversation, held.say("Two").conversation
    before = {known.id: known for known in held.service.conversations}
    held.told.clear()
    held.service.arrangement.pin(first, True)
    held.service.arrangement.archive(first, True)
    held.service.arrangement.move(first, "Work")
    assert [known.id for known in held.service.conversations] == [second, first]
    changed = held.told[-1]
    assert isinstance(changed, ConversationChanged)
    known = changed.conversation
    assert (known.pinned, known.archived, known.folder) == (True, True, "Work")
    assert known.updated_ms == before[first].updated_ms
    held.told.clear()
    held.service.arrangement.pin(first, True)
    held.service.arrangement.pin(ConversationId("nobody"), True)
    assert held.told == [], "nothing changed"


def test_a_folder_is_there_while_something_is_in_it(held: Held) -> None:
    one, two, three = (held.say(text).conversation for text in ("One", "Two", "Three"))
    arrangement = held.service.arrangement
    arrangement.move(one, "  my   Work ")
    arrangement.move(two, "MY WORK")
    arrangement.move(three, "Alps")
    assert folder_of(held, two) == "my Work", "names that differ in case alone are one folder"
    assert arrangement.folders == ("Alps", "my Work")
    arrangement.rename_folder("my Work", "My Work")
    assert arrangement.folders == ("Alps", "My Work")
    arrangement.rename_folder("Alps", "my work")
    assert {folder_of(held, name) for name in (one, two, three)} == {"My Work"}
    arrangement.move(one, "")
    arrangement.rename_folder("My Work", "")
    assert not arrangement.folders
    assert len(held.service) == 3


def test_an_empty_chat_that_was_named_or_put_into_a_folder_is_kept_and_is_no_new_chat(writer: StoreWriter) -> None:
    held = Held()
    held.service.subscribe(StoreListener(writer))
    new = held.service.create()
    assert held.service.unused() == new
    assert writer.ask(Store.conversations).result() == ()
    held.service.arrangement.move(new, "Work")
    assert held.service.unused() is None
    (stored,) = writer.ask(Store.conversations).result()
    assert (stored.id, stored.folder) == (new, "Work")
    held.service.arrangement.move(new, "")
    assert writer.ask(Store.conversations).result() == ()
