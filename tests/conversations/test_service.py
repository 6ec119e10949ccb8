"""What a person does with conversations, without a window, a database or an engine."""

from pathlib import Path

import pytest

from kvdesk.chat import Conversation, EvictedMessages
from kvdesk.conversations.changes import (
    AnswerEnded,
    AnswersGrew,
    BranchChanged,
    ConversationChanged,
    ConversationDeleted,
    DraftChanged,
    MessagesAdded,
    ReadFailed,
)
from kvdesk.conversations.tree import Tree
from kvdesk.errors import StoreError
from kvdesk.message import Attachment, ConversationId, Message, MessageId, as_read
from kvdesk.protocol.chat import (
    CloseConversation,
    EngineDied,
    MeasureContext,
    MessagesEvicted,
    ModelLoaded,
    PreviewTurn,
    TextDelta,
)
from kvdesk.protocol.messages import SubscriptionDropped
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.settings import Overflow, Settings
from kvdesk.values import replace
from tests.conversations.conftest import STATS, Held

MODEL = ModelInfo(LocalFile(Path("tiny.gguf")), "Tiny", "llama", "llama 1M F16", 1, 1, 256, 1, 99, True)


def test_a_message_is_told_before_its_answer_is_asked_for(held: Held) -> None:
    asked = held.say("What is a ring buffer,\nand why would one use it in a cache of keys and values?")
    added = [message for change in held.told if isinstance(change, MessagesAdded) for message in change.messages]
    assert [(m.role, m.state) for m in added] == [("user", "complete"), ("assistant", "streaming")]
    assert (added[1].id, added[1].parent) == (asked.answer, added[0].id)
    changed = [change.conversation for change in held.told if isinstance(change, ConversationChanged)]
    assert changed[-1].title == "What is a ring buffer, and why would one use it…"
    first = next(i for i, change in enumerate(held.told) if isinstance(change, MessagesAdded))
    assert any(isinstance(change, ConversationChanged) and change.conversation.leaf for change in held.told[:first]), (
        "a row of a message needs the row of its conversation"
    )


def test_empty_lines_after_a_question_are_no_part_of_it(held: Held) -> None:
    asked = held.say("  def f():\n    return 1\n\n")
    assert asked.messages[-1].text == "  def f():\n    return 1", "what it begins with may be code"
    held.end(asked)
    held.service.turns.edit(asked.conversation, asked.messages[-1].id, "Why?\n")
    assert held.asked[-1].messages[-1].text == "Why?"


def test_text_is_told_once_for_many_tokens_and_has_them_all(held: Held) -> None:
    asked = held.say("Go")
    held.told.clear()
    held.write(asked, "A", " loop", " of", " cells")
    (grew,) = held.told
    assert isinstance(grew, AnswersGrew)
    assert [(m.text, m.tokens, m.state) for m in grew.messages] == [("A loop of cells", (0, 1, 2, 3), "streaming")]
    assert held.last(asked.conversation).text == "A loop of cells"
    held.end(asked)
    assert held.last(asked.conversation) == replace(grew.messages[0], state="complete", stats=STATS)
    held.service.turns.tell_growth()
    assert not isinstance(held.told[-1], AnswersGrew)


def test_the_next_turn_carries_the_answer_with_its_tokens() -> None:
    held = Held(Settings(system_prompt="Be brief."))
    held.service.apply(ModelLoaded(MODEL))
    first = held.say("One")
    held.answer(first, "First")
    second = held.say("Two", first.conversation)
    assert [(m.role, m.text, m.tokens, m.model) for m in second.messages] == [
        ("system", "Be brief.", (), ""),
        ("user", "One", (), ""),
        ("assistant", "First", (0, 1), "Tiny"),
        ("user", "Two", (), ""),
    ]


def test_stop_reaches_every_running_answer_and_keeps_its_text(held: Held) -> None:
    asked = held.say("Tell me everything")
    held.write(asked, "Every")
    held.service.stop(asked.conversation)
    assert held.stopped == [asked.answer]
    held.end(asked, "stopped")
    last = held.last(asked.conversation)
    assert (last.text, last.state, held.service.answer_of(asked.conversation)) == ("Every", "stopped", None)


def test_a_failed_turn_keeps_the_question_and_is_not_sent_again(held: Held) -> None:
    asked = held.say("Too long")
    held.end(asked, "failed", "It needs 1,082 tokens.")
    assert held.last(asked.conversation).note == "It needs 1,082 tokens."
    assert held.texts(asked.conversation) == ["Too long", ""]
    assert [m.text for m in held.say("Short", asked.conversation).messages] == ["Short"]


def test_a_second_answer_is_a_branch_that_can_be_walked(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.regenerate(first.conversation)
    second = held.asked[-1]
    assert [m.text for m in second.messages] == ["Joke?"]
    held.answer(second, "Second joke")
    assert held.service.forks(first.conversation)[first.answer] == (first.answer, second.answer)
    held.told.clear()
    held.service.turns.show_branch(first.conversation, first.answer)
    told = next(change for change in held.told if isinstance(change, BranchChanged))
    assert ([m.text for m in told.messages], told.is_cut) == (["Joke?", "First joke"], False)
    assert [m.text for m in held.say("Another", first.conversation).messages] == ["Joke?", "First joke", "Another"]


def test_three_more_answers_are_written_together_each_its_own(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.regenerate(first.conversation, 3)
    more = held.asked[1:]
    assert len({command.answer for command in more}) == 3
    assert len({command.messages for command in more}) == 1
    for piece in ("Begin", "End"):
        texts = [f"{piece} of {i}. " for i in range(3)]
        held.service.take(TextDelta(c.conversation, c.answer, text, (1,)) for c, text in zip(more, texts, strict=True))
    for command in more:
        held.end(command)
    ended = {change.message.id: change.message.text for change in held.told if isinstance(change, AnswerEnded)}
    assert [ended[command.answer] for command in more] == [f"Begin of {i}. End of {i}. " for i in range(3)]
    held.service.stop(first.conversation)
    assert held.stopped == []


def test_an_earlier_answer_is_made_again_and_what_follows_it_stays(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.answer(held.say("Another", first.conversation), "Second joke")
    held.service.turns.regenerate(first.conversation, 1, first.messages[0].id)
    assert len(held.asked) == 2, "a question is not made again"
    held.service.turns.regenerate(first.conversation, 1, first.answer)
    again = held.asked[-1]
    assert [m.text for m in again.messages] == ["Joke?"]
    held.answer(again, "Better joke")
    assert held.texts(first.conversation) == ["Joke?", "Better joke"]
    held.service.turns.show_branch(first.conversation, first.answer)
    assert held.texts(first.conversation) == ["Joke?", "First joke", "Another", "Second joke"]


def test_an_earlier_answer_made_again_without_a_word_leaves_what_followed_it_in_sight(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.answer(held.say("Another", first.conversation), "Second joke")
    held.service.turns.regenerate(first.conversation, 1, first.answer)
    held.end(held.asked[-1], "stopped")
    assert held.texts(first.conversation) == ["Joke?", "First joke", "Another", "Second joke"]


def test_an_edited_question_is_a_branch_beside_the_first(held: Held) -> None:
    first = held.say("Cats?")
    held.answer(first, "Miaow")
    question = first.messages[0].id
    held.told.clear()
    held.service.turns.edit(first.conversation, question, "Dogs?")
    cut = held.told[0]
    assert isinstance(cut, BranchChanged)
    assert (cut.messages, cut.is_cut) == ((), True)
    held.answer(held.asked[-1], "Wuff")
    assert held.texts(first.conversation) == ["Dogs?", "Wuff"]
    held.service.turns.show_branch(first.conversation, question)
    assert held.texts(first.conversation) == ["Cats?", "Miaow"]
    held.service.turns.edit(first.conversation, first.answer, "an answer is not edited")
    assert len(held.asked) == 2


def test_an_answer_without_a_word_gives_way_to_the_one_before(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.regenerate(first.conversation)
    held.end(held.asked[-1], "stopped")
    assert held.texts(first.conversation) == ["Joke?", "First joke"]
    assert held.service.forks(first.conversation) == {}


def test_one_of_several_without_a_word_does_not_hide_the_others(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.regenerate(first.conversation, 2)
    empty, good = held.asked[1:]
    held.end(empty, "failed", "No room.")
    held.answer(good, "Third joke")
    assert held.texts(first.conversation) == ["Joke?", "Third joke"], "it was shown all the time"
    assert held.service.forks(first.conversation)[good.answer] == (first.answer, good.answer)


def test_deleting_while_two_alternatives_are_written(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.regenerate(first.conversation, 2)
    one, two = held.asked[1:]
    held.write(one, "half")
    other = held.say("Something else")
    held.service.delete(first.conversation)
    assert held.stopped == [one.answer, two.answer]
    assert held.commands[-1] == CloseConversation(first.conversation)
    held.told.clear()
    held.write(two, "of the deleted one")
    held.end(one, "stopped")
    held.end(two, "stopped")
    assert held.told == []
    held.answer(other, "kept")
    assert held.texts(other.conversation) == ["Something else", "kept"]
    assert [known.id for known in held.service.conversations] == [other.conversation]


def test_a_dead_engine_leaves_the_text(held: Held) -> None:
    asked = held.say("Go")
    held.service.take([TextDelta(asked.conversation, asked.answer, "half", (1,)), EngineDied("It stopped.", "trace")])
    last = held.last(asked.conversation)
    assert (last.text, last.state, last.note) == ("half", "interrupted", "It stopped.")
    assert held.service.answers_of(asked.conversation) == []


def test_texts_that_come_again_from_the_beginning_are_not_doubled(held: Held) -> None:
    asked = held.say("Go")
    held.write(asked, "half", " lost")
    held.told.clear()
    held.service.take(
        [
            SubscriptionDropped("It was too slow."),
            TextDelta(asked.conversation, asked.answer, "half lost and found", (1,)),
        ]
    )
    begun, grew = held.told
    assert isinstance(begun, BranchChanged)
    assert begun.messages[-1].text == ""
    assert isinstance(grew, AnswersGrew)
    assert grew.messages[0].text == held.last(asked.conversation).text == "half lost and found"


def test_what_was_evicted_is_told_with_everything_that_is_asked(held: Held) -> None:
    first = held.say("One")
    evicted = EvictedMessages(frozenset({first.messages[0].id}))
    deleted = ConversationId("deleted")
    held.service.take([MessagesEvicted(first.conversation, evicted), MessagesEvicted(deleted, evicted)])
    held.answer(first, "Answer")
    assert held.say("Two", first.conversation).evicted == evicted
    held.end(held.asked[-1])
    held.service.turns.preview(first.conversation, "Three")
    held.service.turns.measure(first.conversation)
    previewed, measured = held.commands[-2:]
    assert isinstance(previewed, PreviewTurn)
    assert isinstance(measured, MeasureContext)
    assert previewed.evicted == measured.turn.evicted == evicted


def test_a_preview_is_of_a_message_in_its_place(held: Held) -> None:
    first = held.say("Joke?")
    held.answer(first, "First joke")
    held.service.turns.preview(first.conversation, "Long joke?", first.messages[0].id)
    previewed = held.commands[-1]
    assert isinstance(previewed, PreviewTurn)
    assert ([m.text for m in previewed.messages], previewed.n_typed) == (["Long joke?"], 10)
    held.service.turns.preview(first.conversation, "  ")
    assert held.commands[-1] is previewed


def test_a_running_conversation_is_not_measured(held: Held) -> None:
    asked = held.say("Go")
    held.service.turns.measure(asked.conversation)
    assert held.commands[-1] is asked


def test_a_shown_answer_that_has_ended_is_measured_while_others_run(held: Held) -> None:
    asked = held.say("Go")
    held.answer(asked, "Gone")
    held.service.turns.regenerate(asked.conversation, 3)
    shown = held.asked[-1]
    held.service.turns.measure(asked.conversation)
    assert held.commands[-1] is shown
    held.end(shown)
    held.service.turns.measure(asked.conversation)
    assert isinstance(held.commands[-1], MeasureContext)


def test_the_overflow_of_a_conversation_counts_before_that_of_the_settings(held: Held) -> None:
    first = held.say("One")
    assert first.overflow is held.settings.cache.overflow
    held.answer(first, "Answer")
    held.service.choose_overflow(first.conversation, Overflow.SINKS)
    assert held.say("Two", first.conversation).overflow is Overflow.SINKS


def test_a_fork_has_copies_up_to_a_message_and_a_colour_of_its_own(held: Held) -> None:
    first = held.say("One")
    held.answer(first, "Answer")
    held.say("Two", first.conversation)
    new = held.service.fork(first.conversation, first.answer)
    assert new is not None
    assert held.texts(new) == ["One", "Answer"]
    known, source = held.service.get(new), held.service.get(first.conversation)
    assert known.title == "One, forked"
    assert known.colour != source.colour
    assert not {m.id for m in held.service.branch(new)} & {m.id for m in held.service.branch(source.id)}
    assert held.service.fork(held.service.create(), None) is None


def test_a_draft_is_told_by_itself_and_ends_when_it_is_sent(held: Held) -> None:
    conversation = held.service.create()
    held.told.clear()
    held.service.keep_draft(conversation, "Hel")
    held.service.keep_draft(conversation, "Hello")
    held.service.keep_draft(conversation, "Hello")
    assert [type(change) for change in held.told] == [DraftChanged, DraftChanged]
    held.say("Hello", conversation)
    assert held.service.get(conversation).draft == ""


def test_a_conversation_used_comes_first_one_that_ends_stays(held: Held) -> None:
    first, second = held.say("One"), held.say("Two")
    held.answer(first, "Answer")
    assert [known.title for known in held.service.conversations] == ["Two", "One"]
    held.say("More", first.conversation)
    assert [known.title for known in held.service.conversations] == ["One", "Two"]
    held.service.rename(second.conversation, "  Second ")
    assert [known.title for known in held.service.conversations] == ["One", "Second"]


# --- conversations that are read first --------------------------------------------------------------------------------


def stored() -> tuple[Conversation, list[Message]]:
    known = Conversation(ConversationId("c"), "Old", 0, MessageId("a"))
    question = Message(MessageId("q"), known.id, None, "user", "One")
    return known, [question, Message(MessageId("a"), known.id, question.id, "assistant", "First", tokens=(1, 2))]


def test_what_is_sent_before_a_conversation_was_read_follows_it_in_order(held: Held) -> None:
    known, messages = stored()
    held.service.load([known])
    held.service.open(known.id)
    held.service.open(known.id)
    assert held.reading == [(known.id, "a")], "asked for once"
    assert held.service.send(known.id, "Two") is None
    assert held.service.send(known.id, "Three") is None
    held.service.tree_read(known.id, Tree(messages))
    assert [m.text for m in held.asked[-1].messages] == ["One", "First", "Two"]
    assert held.queued(known.id) == ("Three",)
    held.answer(held.asked[-1], "Second")
    assert [m.text for m in held.asked[-1].messages] == ["One", "First", "Two", "Second", "Three"]


def test_what_cannot_be_read_is_told_with_what_was_sent_to_it(held: Held) -> None:
    known, _ = stored()
    held.service.load([known])
    held.service.send(known.id, "Two")
    held.service.send(known.id, "Three")
    damaged = StoreError("The database is damaged.")
    held.service.tree_failed(known.id, damaged)
    assert held.told[-1] == ReadFailed(known.id, damaged, ("Two", "Three"))
    held.service.send(known.id, "Four")
    assert len(held.reading) == 2, "it is tried again: what is sent is never silently nowhere"


def test_a_conversation_deleted_while_it_was_read_stays_deleted(held: Held) -> None:
    known, messages = stored()
    held.service.load([known])
    held.service.send(known.id, "Two")
    held.service.delete(known.id)
    held.service.tree_read(known.id, Tree(messages))
    assert (held.asked, len(held.service)) == ([], 0)
    assert held.told[-1] == ConversationDeleted(known.id)


# --- attachments ------------------------------------------------------------------------------------------------------

NOTES = Attachment("notes.md", "text", "# Cells\n```\ncode\n```")
LOG = Attachment("log.txt", "text", "line")


def test_what_is_attached_goes_with_the_message_and_is_read_the_same_at_every_turn(held: Held) -> None:
    where = held.service.create()
    held.service.attach(where, (NOTES, LOG))
    one = held.say("What is this?", where)
    told = "notes.md:\n````\n# Cells\n```\ncode\n```\n````\n\nlog.txt:\n```\nline\n```\n\nWhat is this?"
    assert one.messages[-1].text == told
    question = held.service.branch(where)[0]
    assert (question.text, question.attachments, as_read(question).text) == ("What is this?", (NOTES, LOG), told)
    assert held.service.get(where).draft_attachments == ()
    held.answer(one, "Notes.")
    two = held.say("More", where)
    assert [m.text for m in two.messages] == [told, "Notes.", "More"], "the cache holds the beginning"


def test_attachments_alone_can_be_sent_and_give_the_title(held: Held) -> None:
    where = held.service.create()
    assert held.service.send(where, " ") is None
    held.service.attach(where, (LOG,))
    assert held.service.send(where, "") is not None
    assert held.service.get(where).title == "log.txt"


def test_a_queued_message_keeps_its_attachments_and_gives_them_back(held: Held) -> None:
    one = held.say("One")
    where = one.conversation
    for name in ("Two", "Three"):
        held.service.attach(where, (replace(LOG, name=f"{name}.txt"),))
        held.service.send(where, name)
    held.service.attach(where, (NOTES,))
    held.service.queued.cancel(where, 1, "Three", edited=True)
    known = held.service.get(where)
    assert [a.name for a in known.draft_attachments] == ["Three.txt", "notes.md"]
    held.answer(one, "First")
    assert held.asked[-1].messages[-1].text == "Two.txt:\n```\nline\n```\n\nTwo"
    assert len(held.service.get(where).draft_attachments) == 2, "what is attached to the draft stays there"


def test_a_queued_message_can_be_moved(held: Held) -> None:
    where = held.say("One").conversation
    for text in ("Two", "Three", "Four"):
        held.service.send(where, text)
    held.service.queued.move(where, 2, "Four", 0)
    assert held.queued(where) == ("Four", "Two", "Three")
    held.service.queued.move(where, 0, "Two", 2)  # it stands there no more
    held.service.queued.move(where, 0, "Four", -5)
    held.service.queued.move(where, 0, "Four", 99)
    assert held.queued(where) == ("Two", "Three", "Four")


def test_an_edited_message_keeps_what_is_attached(held: Held) -> None:
    where = held.service.create()
    held.service.attach(where, (LOG,))
    held.answer(held.say("One", where), "First")
    held.service.attach(where, (NOTES,))
    held.service.turns.preview(where, "In other words", held.service.branch(where)[0].id)
    asked = held.commands[-1]
    assert isinstance(asked, PreviewTurn)
    assert (asked.text, asked.n_attached) == ("In other words", (len("log.txt:\n```\nline\n```\n\n"),))
    held.service.turns.edit(where, held.service.branch(where)[0].id, "In other words")
    assert held.service.branch(where)[0].attachments == (LOG,)
    assert held.service.get(where).draft_attachments == (NOTES,)


def test_what_is_sent_before_the_chat_was_read_takes_its_attachments_along(held: Held) -> None:
    known = Conversation(ConversationId("c"), "Old", 0, MessageId("q"), draft_attachments=(LOG,))
    held.service.load([known])
    held.service.send(known.id, "And?")
    assert held.asked == []
    held.service.tree_read(known.id, Tree([Message(MessageId("q"), known.id, None, "user", "Hello")]))
    assert held.asked[-1].messages[-1].text.endswith("log.txt:\n```\nline\n```\n\nAnd?")


def test_a_preview_counts_what_is_attached(held: Held) -> None:
    where = held.service.create()
    held.service.turns.preview(where, " ")
    assert not any(isinstance(command, PreviewTurn) for command in held.commands)
    held.service.attach(where, (LOG,))
    held.service.turns.preview(where, "")
    asked = held.commands[-1]
    assert isinstance(asked, PreviewTurn)
    assert (asked.text, asked.n_attached) == ("", (len("log.txt:\n```\nline\n```\n\n"),))


def test_the_time_of_reasoning_is_kept_with_the_answer(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr("kvdesk.conversations.answers.time.monotonic", lambda: now)
    asked = held.say("Why?")
    held.write(asked, "<think>hm")
    now = 17.5
    held.write(asked, " so</th", "ink>Yes.")
    now = 40.0
    held.write(asked, " And more.")
    held.end(asked)
    (ended,) = [change.message for change in held.told if isinstance(change, AnswerEnded)]
    assert ended.thought_ms == 12_500
