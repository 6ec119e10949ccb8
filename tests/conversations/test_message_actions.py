"""What a person does with single messages: continue, edit an answer, delete, pin."""

from pathlib import Path

import pytest

from kvdesk.chat import EvictedMessages
from kvdesk.conversations.changes import AnswerEnded, BranchChanged, MessagesChanged, MessagesDeleted
from kvdesk.conversations.tree import Tree
from kvdesk.message import NO_STATS, ConversationId, Message, MessageId, TurnStats, ended_early, finish_of
from kvdesk.protocol.chat import (
    BackendReady,
    DropMessages,
    Generate,
    MessagesEvicted,
    ModelLoaded,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed, SubscriptionDropped
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.reasoning import ReasoningMarks
from kvdesk.store.listener import StoreListener
from kvdesk.store.store import INTERRUPTED_NOTE, Store
from kvdesk.store.writer import StoreWriter
from kvdesk.values import replace
from tests.conversations.conftest import STATS, Held


def limited(held: Held, text: str = "Once upon") -> Generate:
    """A question with an answer that its limit ended."""
    asked = held.say("A story?")
    held.write(asked, *text.split(" "))
    note = "Ended at the limit of 2 tokens."
    held.service.take([TurnEnded(asked.conversation, asked.answer, "complete", STATS, note, "limit")])
    return asked


# --- continue ---------------------------------------------------------------------------------------------------------


def test_an_answer_goes_on_in_the_same_message(held: Held) -> None:
    first = limited(held)
    before = held.last(first.conversation)
    assert held.service.turns.continue_answer(first.conversation) == first.answer
    asked = held.asked[-1]
    assert (asked.answer, asked.continued, [m.text for m in asked.messages]) == (first.answer, before, ["A story?"])
    (changed,) = [c for c in held.told if isinstance(c, MessagesChanged)]
    assert [(m.state, m.text, m.note, m.tokens) for m in changed.messages] == [("streaming", "Onceupon", "", (0, 1))]
    assert held.service.answer_of(first.conversation) == first.answer
    held.service.apply(TurnStarted(asked.conversation, asked.answer, 0, 12, 11, (7, 8), "v"))
    held.service.take([TextDelta(asked.conversation, asked.answer, " a time", (9,))])
    assert held.last(first.conversation).text == "Onceupon a time"
    again = TurnStats(12, 11, 1, 3, 9.0, 1.0, 2.0, vocab="v")
    held.service.take([TurnEnded(asked.conversation, asked.answer, "complete", again)])
    last = held.last(first.conversation)
    assert (last.text, last.tokens, last.state, finish_of(last)) == ("Onceupon a time", (7, 8, 9), "complete", "end")
    assert last.stats == replace(again, earlier_prefilled=6, earlier_generated=2)
    assert held.service.turns.continue_answer(first.conversation) is None, "the model has ended it"
    assert len(held.service.branch(first.conversation)) == 2


def test_an_answer_has_the_marks_of_its_family_from_its_first_text_on(held: Held) -> None:
    held.say("A story?")
    asked, marks = held.asked[-1], ReasoningMarks("<a>", "</a>", is_open=True)
    held.service.apply(TurnStarted(asked.conversation, asked.answer, vocab="v", marks=marks))
    held.service.take([TextDelta(asked.conversation, asked.answer, "hm", (9,))])
    assert held.last(asked.conversation).marks == marks
    held.service.take([TextDelta(asked.conversation, asked.answer, "</a>Once", (9,))])
    assert held.last(asked.conversation).thought_ms > 0


def test_an_earlier_answer_goes_on_beside_what_follows_it(held: Held) -> None:
    first = limited(held)
    held.say("Nice", first.conversation)
    held.answer(held.asked[-1], "Thanks")
    old = held.service.branch(first.conversation)[1]
    new = held.service.turns.continue_answer(first.conversation, first.answer)
    assert new not in (None, first.answer)
    asked = held.asked[-1]
    assert (asked.answer, asked.continued.text, asked.continued.tokens) == (new, old.text, old.tokens)
    assert [m.text for m in asked.messages] == ["A story?"]
    held.service.take([TextDelta(asked.conversation, asked.answer, " a time", (9,))])
    held.end(asked, "complete")
    assert held.texts(first.conversation) == ["A story?", "Onceupon a time"]
    held.service.turns.show_branch(first.conversation, first.answer)
    assert held.texts(first.conversation) == ["A story?", "Onceupon", "Nice", "Thanks"]
    assert held.service.turns.continue_answer(first.conversation, MessageId("none")) is None
    held.service.turns.continue_answer(first.conversation, first.answer)
    n = len(held.service.all_messages(first.conversation) or ())
    held.end(held.asked[-1], "stopped")
    assert held.texts(first.conversation) == ["A story?", "Onceupon", "Nice", "Thanks"], "nothing came of it"
    assert len(held.service.all_messages(first.conversation) or ()) == n - 1, "its copy is gone"


@pytest.mark.parametrize(
    ("state", "note", "text", "can"),
    [
        ("complete", "", "All", False),
        ("stopped", "", "Some", True),
        ("stopped", "", "", False),
        ("interrupted", "It broke.", "Some", True),
        ("failed", "Too long.", "", False),
    ],
)
def test_what_can_be_continued(held: Held, state: str, note: str, text: str, *, can: bool) -> None:
    asked = held.say("Go")
    held.write(asked, *([text] if text else []))
    held.end(asked, state, note)  # type: ignore[arg-type]
    assert ended_early(held.last(asked.conversation)) == can
    assert (held.service.turns.continue_answer(asked.conversation) is not None) == can


def test_nothing_is_continued_while_an_answer_runs_or_by_an_engine_that_cannot(held: Held) -> None:
    asked = limited(held)
    held.service.apply(BackendReady(frozenset({Feature.CHAT})))
    assert held.service.turns.continue_answer(asked.conversation) is None
    held.service.apply(BackendReady(frozenset(Feature)))
    assert held.service.turns.continue_answer(asked.conversation) is not None
    assert held.service.turns.continue_answer(asked.conversation) is None
    assert len(held.asked) == 2


@pytest.mark.parametrize("refused", [False, True])
def test_where_nothing_comes_of_it_the_answer_is_as_before(held: Held, *, refused: bool) -> None:
    asked = limited(held)
    before = held.last(asked.conversation)
    held.service.turns.continue_answer(asked.conversation)
    if refused:
        held.service.take([CommandFailed(held.asked[-1], "This engine cannot continue an answer.")])
        wanted = before
    else:
        held.service.take([TurnEnded(asked.conversation, asked.answer, "failed", NO_STATS, "The context is full.")])
        wanted = replace(before, note="The context is full.")
    assert held.last(asked.conversation) == wanted
    assert isinstance(next(c for c in reversed(held.told) if isinstance(c, AnswerEnded)), AnswerEnded)
    assert ended_early(held.last(asked.conversation)), "it can be tried again"


def test_a_model_that_ends_it_at_once_has_ended_it(held: Held) -> None:
    asked = limited(held)
    held.service.turns.continue_answer(asked.conversation)
    held.service.take([TurnEnded(asked.conversation, asked.answer, "complete", STATS)])
    last = held.last(asked.conversation)
    assert (last.text, finish_of(last), last.tokens) == ("Onceupon", "end", (0, 1))


def test_another_model_that_goes_on_is_named_too(held: Held) -> None:
    held.service.apply(ModelLoaded(ModelInfo(LocalFile(Path("a.gguf")), "A")))
    asked = limited(held)
    held.service.apply(ModelLoaded(ModelInfo(LocalFile(Path("b.gguf")), "B")))
    held.service.turns.continue_answer(asked.conversation)
    assert held.last(asked.conversation).model == "A, B"


def test_after_a_dropped_subscription_the_old_text_is_there_once(held: Held) -> None:
    asked = limited(held)
    held.service.turns.continue_answer(asked.conversation)
    started = TurnStarted(asked.conversation, asked.answer, 0, 12, 11, (0, 1), "v")
    held.service.take([started, TextDelta(asked.conversation, asked.answer, " a", (2,))])
    held.service.take([SubscriptionDropped("slow"), started])
    held.service.take([TextDelta(asked.conversation, asked.answer, " a time", (2, 3))])
    last = held.last(asked.conversation)
    assert (last.text, last.tokens) == ("Onceupon a time", (0, 1, 2, 3))


def test_what_nothing_came_of_is_not_stored(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    first = limited(held)
    held.answer(held.say("Nice", first.conversation), "Thanks")
    held.service.turns.regenerate(first.conversation, 1)
    writer.flush().result()
    held.end(held.asked[-1], "stopped")
    held.service.turns.continue_answer(first.conversation, first.answer)
    writer.flush().result()
    held.end(held.asked[-1], "stopped")
    stored = writer.ask(lambda store: store.all_messages(first.conversation)).result()
    assert [message.text for message in stored] == held.texts(first.conversation)


def test_a_kill_while_it_goes_on_keeps_text_ids_and_whose_they_are(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    asked = limited(held)
    held.service.turns.continue_answer(asked.conversation)
    started = TurnStarted(asked.conversation, asked.answer, 0, 12, 11, (0, 1), "v")
    held.service.take([started, TextDelta(asked.conversation, asked.answer, " a time", (2,))])
    writer.flush().result()
    path = writer._path
    killed = path.with_name("killed.sqlite3")
    writer.ask(lambda store: store._connection.execute("VACUUM INTO ?", (str(killed),))).result()
    store = Store(killed)
    (found,) = [m for m in store.all_messages(asked.conversation) if m.role == "assistant"]
    store.close()
    assert (found.text, found.tokens, found.state) == ("Onceupon a time", (0, 1, 2), "interrupted")
    assert (found.note, finish_of(found)) == (INTERRUPTED_NOTE, "interrupted")
    assert (found.stats.vocab, found.stats.all_generated) == ("v", 2)
    assert ended_early(found)


# --- edit an answer, pin ----------------------------------------------------------------------------------------------


def test_an_edited_answer_is_a_branch_that_can_be_continued(held: Held) -> None:
    asked = limited(held)
    held.say("Nice", asked.conversation)
    held.answer(held.asked[-1], "Thanks")
    old = held.service.branch(asked.conversation)[1]
    new = held.service.turns.edit_answer(asked.conversation, asked.answer, "Onceupon a hill")
    assert new is not None
    branch = held.service.branch(asked.conversation)
    assert [(m.id, m.text) for m in branch[1:]] == [(new, "Onceupon a hill")], "what followed stays on the other branch"
    edited = branch[1]
    assert (edited.tokens, edited.finish, edited.state, edited.note) == (old.tokens, "edited", "complete", "")
    assert held.service.forks(asked.conversation)[new] == (asked.answer, new)
    n = len(held.asked)
    assert held.service.turns.continue_answer(asked.conversation) == new
    assert held.asked[n].continued == edited
    held.end(held.asked[n], "stopped")
    held.service.turns.show_branch(asked.conversation, asked.answer)
    assert held.texts(asked.conversation)[1:] == ["Onceupon", "Nice", "Thanks"]


def test_an_answer_cannot_become_empty_and_questions_are_asked_again(held: Held) -> None:
    asked = limited(held)
    question = held.service.branch(asked.conversation)[0]
    assert held.service.turns.edit_answer(asked.conversation, asked.answer, " ") is None
    assert held.service.turns.edit_answer(asked.conversation, question.id, "Other") is None


def test_a_pin_is_stored_and_changes_nothing_else(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    asked = limited(held)
    before = held.last(asked.conversation)
    held.service.turns.pin(asked.conversation, asked.answer, pinned=True)
    assert held.last(asked.conversation) == replace(before, pinned=True)
    stored = writer.ask(lambda store: store.all_messages(asked.conversation)).result()
    assert [m.pinned for m in stored] == [False, True]
    n = len(held.told)
    held.service.turns.pin(asked.conversation, asked.answer, pinned=True)
    assert len(held.told) == n
    held.service.turns.pin(asked.conversation, asked.answer, pinned=False)
    assert held.last(asked.conversation) == before


# --- delete -----------------------------------------------------------------------------------------------------------


def talk(held: Held) -> tuple[ConversationId, list[MessageId]]:
    """Two exchanges; the ids of q1, a1, q2, a2."""
    asked = held.say("q1")
    held.answer(asked, "a1.")
    held.answer(held.say("q2", asked.conversation), "a2.")
    return asked.conversation, [m.id for m in held.service.branch(asked.conversation)]


def stored(writer: StoreWriter, conversation: ConversationId) -> list[tuple[str, str | None]]:
    messages = writer.ask(lambda store: store.all_messages(conversation)).result()
    names = {m.id: m.text for m in messages}
    return [(m.text, names.get(m.parent) if m.parent else None) for m in messages]


def test_a_question_that_was_joined_with_the_next_one_is_dropped_with_it(held: Held) -> None:
    """Its answer was stopped before a word of it came: the model read it as the beginning of the next question."""
    asked = held.say("q1")
    held.end(asked, "stopped")
    again = held.say("q2", asked.conversation)
    assert again.messages[-1].text == "q1\n\nq2"
    held.answer(again, "a2.")
    q1, a1, q2, a2 = (message.id for message in held.service.branch(asked.conversation))
    assert held.service.removals.remove(asked.conversation, [q1, a1])
    assert held.commands[-1] == DropMessages(asked.conversation, (q1, a1, q2, a2))


def test_only_that_message_goes_and_its_followers_hang_on_its_parent(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    conversation, (_, a1, q2, a2) = talk(held)
    before = stored(writer, conversation)
    assert held.service.removals.remove(conversation, [a1])
    assert held.texts(conversation) == ["q1", "q2", "a2."]
    assert stored(writer, conversation) == [("q1", None), ("q2", "q1"), ("a2.", "q2")]
    assert held.commands[-1] == DropMessages(conversation, (a1, q2, a2)), "and what was computed from it"
    told = next(c for c in held.told if isinstance(c, MessagesDeleted))
    assert (told.deleted, [m.text for m in told.branch]) == ((a1,), ["q1", "q2", "a2."])
    assert held.service.removals.undo(conversation) == a1
    assert held.texts(conversation) == ["q1", "a1.", "q2", "a2."]
    assert stored(writer, conversation) == before, "it stands where it stood"
    assert isinstance(held.told[-1], BranchChanged)
    assert held.service.removals.undo(conversation) is None


def test_a_question_goes_together_with_its_answer(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    conversation, (q1, a1, _, _) = talk(held)
    before = stored(writer, conversation)
    held.service.apply(MessagesEvicted(conversation, EvictedMessages(frozenset({q1, a1}), (a1, 3), "sinks")))
    assert held.service.removals.remove(conversation, [q1, a1])
    assert held.texts(conversation) == ["q2", "a2."]
    assert stored(writer, conversation) == [("q2", None), ("a2.", "q2")]
    assert held.service.get(conversation).evicted == EvictedMessages(frozenset(), None, "sinks")
    held.service.removals.undo(conversation)
    assert stored(writer, conversation) == before
    assert held.service.get(conversation).evicted.messages == {q1, a1}


def test_the_last_message_and_one_of_several_versions(held: Held) -> None:
    conversation, (_, _, q2, a2) = talk(held)
    held.service.turns.regenerate(conversation)
    held.answer(held.asked[-1], "a2, again.")
    again = held.last(conversation).id
    held.service.removals.remove(conversation, [again])
    assert held.last(conversation).id == a2, "another version is shown"
    held.service.removals.remove(conversation, [a2])
    assert held.last(conversation).id == q2
    assert held.service.removals.undo(conversation) == a2
    assert held.texts(conversation)[-1] == "a2."


def test_all_messages_of_a_chat_can_go_and_come_back(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    asked = held.say("q1")
    held.answer(asked, "a1.")
    names = [m.id for m in held.service.branch(asked.conversation)]
    assert held.service.removals.remove(asked.conversation, names)
    assert held.texts(asked.conversation) == []
    assert stored(writer, asked.conversation) == []
    held.service.removals.undo(asked.conversation)
    assert held.texts(asked.conversation) == ["q1", "a1."]
    assert stored(writer, asked.conversation) == [("q1", None), ("a1.", "q1")]


def test_what_was_said_meanwhile_stays_when_it_comes_back(held: Held) -> None:
    conversation, (_, a1, _, _) = talk(held)
    held.service.removals.remove(conversation, [a1])
    held.answer(held.say("q3", conversation), "a3.")
    held.service.removals.undo(conversation)
    assert held.texts(conversation) == ["q1", "a1.", "q2", "a2.", "q3", "a3."]


def test_nothing_is_deleted_while_an_answer_runs(held: Held) -> None:
    conversation, (q1, _, _, _) = talk(held)
    held.say("q3", conversation)
    assert not held.service.removals.remove(conversation, [q1])
    assert not held.service.removals.remove(conversation, [MessageId("unknown")])


def test_words_of_a_deleted_message_are_found_no_more(held: Held, writer: StoreWriter) -> None:
    held.service.subscribe(StoreListener(writer))
    asked = held.say("A word: lighthouse")
    held.answer(asked, "Yes.")
    assert writer.ask(lambda store: store.search("lighthouse")).result()
    held.service.rename(asked.conversation, "x")
    held.service.removals.remove(asked.conversation, [held.service.branch(asked.conversation)[0].id])
    assert not writer.ask(lambda store: store.search("lighthouse")).result()
    held.service.removals.undo(asked.conversation)
    assert writer.ask(lambda store: store.search("lighthouse")).result()


def test_a_tree_keeps_its_order(held: Held) -> None:
    del held
    messages = [
        Message(MessageId(name), ConversationId("c"), MessageId(parent) if parent else None, role, name)  # type: ignore[arg-type]
        for name, parent, role in (
            ("q", "", "user"), ("a", "q", "assistant"), ("b", "q", "assistant"), ("r", "a", "user"), ("s", "b", "user"),
        )
    ]  # fmt: skip
    tree = Tree(messages)
    order = tree.order
    assert [m.parent for m in tree.remove(MessageId("a"))] == ["q"]
    assert tree.siblings(MessageId("b")) == ("b",)
    tree.put_back([messages[1], messages[3]], order)
    assert tree.order == order
    assert tree.siblings(MessageId("b")) == ("a", "b")
    assert [m.id for m in tree.branch(MessageId("r"))] == ["q", "a", "r"]
