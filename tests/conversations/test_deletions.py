"""A deletion can be undone until it is finished, and loses nothing before."""

from kvdesk.conversations.changes import ConversationChanged, ConversationDeleted, DeletionBegan, MessagesAdded
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId
from kvdesk.protocol.chat import CloseConversation
from kvdesk.store.listener import StoreListener, read_tree
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from tests.conversations.conftest import Held
from tests.conversations.test_service import stored


def stored_texts(writer: StoreWriter, conversation: ConversationId) -> list[str]:
    return [message.text for message in writer.ask(lambda store: store.all_messages(conversation)).result()]


def test_what_is_deleted_comes_back_as_it_was(held: Held) -> None:
    first, second = held.say("One"), held.say("Two")
    held.answer(first, "First")
    held.answer(second, "Second")
    held.told.clear()
    before = held.service.conversations
    held.service.deletions.begin(first.conversation)
    assert [known.id for known in held.service.conversations] == [second.conversation]
    assert (held.service.get(first.conversation), len(held.service)) == (None, 1)
    assert not any(isinstance(command, CloseConversation) for command in held.commands), "its cells stay"
    assert held.service.deletions.undo() == first.conversation
    assert held.told == [DeletionBegan(first.conversation), ConversationChanged(before[1])]
    assert held.service.conversations == before
    assert held.texts(first.conversation) == ["One", "First"]
    assert held.service.deletions.undo() is None


def test_the_last_one_comes_back_first_and_the_rest_goes_for_good(held: Held) -> None:
    one, two, three = (held.say(text).conversation for text in ("One", "Two", "Three"))
    for name in (one, two, three, three):
        held.service.deletions.begin(name)
    assert [known.id for known in held.service.deletions.pending] == [one, two, three]
    assert held.service.deletions.undo() == three
    held.service.deletions.finish()
    assert held.commands[-2:] == [CloseConversation(one), CloseConversation(two)]
    assert held.told[-2:] == [ConversationDeleted(one), ConversationDeleted(two)]
    assert [known.id for known in held.service.conversations] == [three]
    held.service.deletions.finish()
    assert held.told[-1] == ConversationDeleted(two)


def test_an_answer_that_runs_is_stopped_and_keeps_its_text(held: Held) -> None:
    asked = held.say("Go")
    held.write(asked, "half")
    held.service.send(asked.conversation, "Next")
    held.service.deletions.begin(asked.conversation)
    assert held.stopped == [asked.answer]
    held.end(asked, "stopped")
    held.service.queued.send_due()
    assert len(held.asked) == 1, "nothing is sent in a conversation that is being deleted"
    held.service.deletions.undo()
    assert held.texts(asked.conversation) == ["Go", "half"]
    assert held.queued(asked.conversation) == ("Next",)
    held.service.queued.send_due()
    assert len(held.asked) == 1, "its queue waits for a person"


def test_what_was_sent_before_it_was_read_goes_when_it_is_back(held: Held) -> None:
    known, messages = stored()
    held.service.load([known])
    held.service.send(known.id, "Two")
    held.service.deletions.begin(known.id)
    held.told.clear()
    held.service.tree_read(known.id, Tree(messages))
    assert held.asked == []
    assert not any(isinstance(change, MessagesAdded) for change in held.told)
    held.service.deletions.undo()
    held.service.open(known.id)
    assert held.texts(known.id)[-2] == "Two"


def test_the_store_keeps_everything_until_the_deletion_is_finished(writer: StoreWriter) -> None:
    held = Held()
    held.service.subscribe(StoreListener(writer))
    asked = held.say("Secret word")
    held.write(asked, "I am")
    held.service.deletions.begin(asked.conversation)
    held.end(asked, "stopped")
    (kept,) = writer.ask(Store.conversations).result()
    assert stored_texts(writer, asked.conversation) == ["Secret word", "I am"]
    again = Held()  # as after a crash
    again.service.load([kept])
    again.service.tree_read(kept.id, writer.ask(lambda store: read_tree(store, kept.id, kept.leaf)).result())
    assert again.texts(kept.id) == ["Secret word", "I am"]
    held.service.deletions.finish()
    assert writer.ask(Store.conversations).result() == ()
    assert stored_texts(writer, asked.conversation) == []
    assert writer.ask(lambda store: store.search("Secret")).result() == ()
