"""What of a file is added: not what is there already, copies under new ids, colours that are used least."""

from collections import Counter

from hypothesis import given, settings

from kvdesk.chat import Conversation, EvictedMessages
from kvdesk.conversations.porting import summary
from kvdesk.conversations.porting.adding import chosen, renamed
from kvdesk.conversations.porting.values import Found
from kvdesk.message import ConversationId, Message, MessageId
from tests.conversations.porting.strategies import conversations


def a_chat(name: str, colour: int = -1) -> Conversation:
    own = ConversationId(name)
    first = Message(MessageId(f"{name}1"), own, None, "user", "Hi")
    second = Message(MessageId(f"{name}2"), own, first.id, "assistant", "Ho")
    return Conversation(own, name, colour, second.id, created_ms=5, messages=(first, second))


def test_what_is_there_already_is_not_added_again() -> None:
    added = list(chosen([a_chat("a"), a_chat("b"), a_chat("b")], [a_chat("a", 0)], 2, copies=False))
    assert [one.id for one in added] == ["b"]
    assert added[0].messages == a_chat("b").messages


def test_copies_have_ids_of_their_own() -> None:
    added = list(chosen([a_chat("a"), a_chat("a")], [a_chat("a", 0)], 2, copies=True))
    assert len({one.id for one in (*added, a_chat("a"))}) == 3
    for one in added:
        assert one.leaf == one.messages[1].id
        assert one.messages[1].parent == one.messages[0].id
        assert [message.text for message in one.messages] == ["Hi", "Ho"]


def test_colours_are_those_used_least() -> None:
    added = chosen([a_chat("a"), a_chat("b"), a_chat("c", 7)], [a_chat("x", 0), a_chat("y", 1)], 3, copies=False)
    assert [one.colour for one in added] == [2, 0, 7]


def test_empty_chats_are_not_added() -> None:
    empty = Conversation(ConversationId("e"), "", 0)
    assert not list(chosen([empty], [], 1, copies=False))


@settings(max_examples=10)
@given(conversations())
def test_new_ids_are_everywhere_and_nothing_else_changes(there: Conversation) -> None:
    new = renamed(there)
    old = {there.id, *(message.id for message in there.messages)}
    ids = {new.id, *(message.id for message in new.messages)}
    assert not old & ids
    places = {message.id: place for place, message in enumerate(there.messages)}
    news = {message.id: place for place, message in enumerate(new.messages)}
    assert [news.get(m.parent) if m.parent else None for m in new.messages] == [
        places.get(m.parent) if m.parent else None for m in there.messages
    ]
    assert {news[name] for name in new.evicted.messages} == {places[name] for name in there.evicted.messages}
    if there.evicted.partial is not None and new.evicted.partial is not None:
        assert news[new.evicted.partial[0]] == places[there.evicted.partial[0]]
    assert [(news[name], cut) for name, cut in new.evicted.cuts] == [(places[n], cut) for n, cut in there.evicted.cuts]
    assert (new.title, new.draft, new.sampling) == (there.title, there.draft, there.sampling)
    assert [(m.text, m.tokens, m.stats) for m in new.messages] == [(m.text, m.tokens, m.stats) for m in there.messages]
    assert isinstance(new.evicted, EvictedMessages)


def test_the_summary_counts() -> None:
    extra = Message(MessageId("a3"), ConversationId("a"), MessageId("a1"), "assistant", "Hm")
    chat = a_chat("a")
    branched = Conversation(chat.id, "a", 0, extra.id, created_ms=1_700_000_000_000, messages=(*chat.messages, extra))
    empty = Conversation(ConversationId("e"), "", 0)
    found = [
        Found("ChatGPT", branched, Counter({"pictures": 2})),
        Found("ChatGPT", a_chat("b")),
        Found("ChatGPT", empty, Counter({"empty chats": 1})),
    ]
    told = summary.summary_of(found, [ConversationId("b")])
    assert (told.n_conversations, told.n_known, told.n_new, told.n_messages, told.n_branches) == (2, 1, 1, 5, 3)
    assert dict(summary.rows(told)) == {
        "Format": "ChatGPT (unverified: its program publishes no description of this format)",
        "Chats": "2, 1 of them here already",
        "Messages": "5",
        "Branches": "3",
        "Time": "1970-01-01 to 2023-11-14",
        "Left out": "pictures: 2, empty chats: 1",
    }
