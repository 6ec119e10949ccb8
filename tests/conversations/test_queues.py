"""Messages that wait: what sends them, and what holds them back."""

from pathlib import Path

import pytest

from kvdesk.chat import Conversation, QueuedMessage
from kvdesk.conversations.changes import QueuesChanged, QueueState
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, MessageId, MessageState
from kvdesk.protocol.chat import EngineDied, LoadModel, ModelLoaded, TurnEnded
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.settings import Settings
from tests.conversations.conftest import STATS, Held

READY = ModelLoaded(ModelInfo(LocalFile(Path("tiny.gguf")), "tiny"))


def state(held: Held, conversation: ConversationId) -> QueueState | None:
    """What its queue waits for, as was told last."""
    told = next(change for change in reversed(held.told) if isinstance(change, QueuesChanged))
    return told.states.get(conversation)


def questions(held: Held) -> list[str]:
    return [command.messages[-1].text for command in held.asked]


def test_what_is_sent_while_an_answer_is_written_goes_by_itself(held: Held) -> None:
    one = held.say("One")
    where = one.conversation
    held.service.send(where, "Two")
    held.service.send(where, "Three")
    assert (held.queued(where), state(held, where)) == (("Two", "Three"), "answer")
    held.answer(one, "First")
    assert questions(held) == ["One", "Two"]
    assert held.queued(where) == ("Three",)
    held.answer(held.asked[-1], "Second")
    assert questions(held) == ["One", "Two", "Three"]
    assert state(held, where) is None


@pytest.mark.parametrize("how", ["stopped", "failed", "interrupted"])
def test_after_an_answer_that_did_not_end_well_it_waits_for_a_person(held: Held, how: MessageState) -> None:
    one = held.say("One")
    held.service.send(one.conversation, "Two")
    held.end(one, how)
    assert (questions(held), state(held, one.conversation)) == (["One"], how)
    held.service.send(one.conversation, "No, rather this")
    assert questions(held)[1:] == ["One\n\nNo, rather this" if how != "failed" else "No, rather this"]
    held.answer(held.asked[-1], "Yes")
    assert len(held.asked) == 2
    held.service.release_queue(one.conversation)
    assert questions(held)[2:] == ["Two"]


def test_stop_holds_it_at_once_also_where_the_answer_had_just_ended(held: Held) -> None:
    one = held.say("One")
    held.service.send(one.conversation, "Two")
    held.service.stop(one.conversation)
    assert state(held, one.conversation) == "stopped"
    held.answer(one, "First")
    assert questions(held) == ["One"], "nothing is sent behind the person's back"


def test_what_is_sent_after_stop_goes_when_the_answers_have_ended(held: Held) -> None:
    one = held.say("One")
    held.answer(one, "First")
    held.service.turns.regenerate(one.conversation, 2)
    held.service.stop(one.conversation)
    held.service.send(one.conversation, "Two")
    assert state(held, one.conversation) == "answer"
    for command in held.asked[1:]:
        held.write(command, "half")
        held.end(command, "stopped")
    assert questions(held)[3:] == ["Two"]
    held.service.send(one.conversation, "Three")
    held.end(held.asked[-1], "stopped", "by another program")
    assert state(held, one.conversation) == "stopped", "that one no person stopped"


def test_of_three_answers_the_last_to_end_sends_it(held: Held) -> None:
    one = held.say("One")
    held.answer(one, "First")
    held.service.turns.regenerate(one.conversation, 3)
    more = held.asked[1:]
    held.service.send(one.conversation, "Two")
    for command in more:
        assert len(held.asked) == 4
        held.answer(command, "Other")
    assert questions(held)[4:] == ["Two"]


def test_until_a_model_is_open_it_waits_for_it(held: Held) -> None:
    held.service.queued.wait_for_model()
    where = held.service.create()
    held.service.send(where, "Hello")
    assert (held.asked, held.queued(where), state(held, where)) == ([], ("Hello",), "model")
    held.service.take([READY])
    assert questions(held) == ["Hello"]
    assert held.service.get(where).title == "Hello"


def test_what_waits_for_another_model_goes_though_that_ended_an_answer(held: Held) -> None:
    held.service.take([READY])
    one = held.say("One")
    held.service.queued.wait_for_model()
    held.service.send(one.conversation, "Two")
    held.write(one, "half")
    held.end(one, "stopped", "Another model was opened.")
    assert state(held, one.conversation) == "model"
    held.service.take([READY])
    assert questions(held) == ["One", "Two"]


def test_a_model_that_cannot_be_opened_keeps_it_waiting(held: Held) -> None:
    failed = CommandFailed(LoadModel(LocalFile(Path("broken.gguf")), Settings().context), "It is broken.")
    held.service.queued.wait_for_model()
    where = held.service.create()
    held.service.send(where, "Hello")
    held.service.take([failed])
    assert (held.asked, state(held, where)) == ([], "model"), "there was none before either"
    held.service.take([READY])
    held.answer(held.asked[-1], "Hello to you")
    held.service.queued.wait_for_model()
    held.service.send(where, "More")
    held.service.take([failed])
    assert state(held, where) == "load failed"
    held.service.release_queue(where)
    assert questions(held) == ["Hello", "More"], "the model of before is still open"


def test_a_dead_engine_holds_everything(held: Held) -> None:
    one = held.say("One")
    held.service.send(one.conversation, "Two")
    held.service.take([EngineDied("It stopped.", "")])
    assert state(held, one.conversation) == "engine ended"
    assert (questions(held), held.queued(one.conversation)) == (["One"], ("Two",))


def test_what_was_stopped_when_the_engine_died_is_no_later_answer(held: Held) -> None:
    one = held.say("One")
    held.service.stop(one.conversation)
    held.service.take([EngineDied("It stopped.", "")])
    held.service.send(one.conversation, "Two")
    held.service.send(one.conversation, "Three")
    held.end(held.asked[-1], "stopped", "by another program")
    assert state(held, one.conversation) == "stopped"


def test_after_a_restart_it_waits_for_a_person_and_for_its_messages(held: Held) -> None:
    known = Conversation(ConversationId("c"), "Old", 0, MessageId("q"), queued=(QueuedMessage("Two"),))
    held.service.load([known])
    assert state(held, known.id) == "kvdesk closed"
    held.service.take([READY])
    held.service.release_queue(known.id)
    assert (held.asked, held.queued(known.id)) == ([], ("Two",)), "what is not read yet is not answered"
    held.service.tree_read(known.id, Tree())
    assert questions(held) == ["Two"]


def test_one_that_is_edited_keeps_its_place_and_the_draft_stays(held: Held) -> None:
    one = held.say("One")
    where = one.conversation
    for text in ("Two", "Three", "Four"):
        held.service.send(where, text)
    held.service.queued.cancel(where, 1, "Three", edited=True)
    held.service.send(where, "Three, in other words")
    assert held.queued(where) == ("Two", "Three, in other words", "Four")
    held.service.queued.cancel(where, 1, "no such text")
    held.service.queued.cancel(where, 2, "Four", edited=True)
    held.service.queued.cancel(where, 0, "Two")
    held.service.keep_draft(where, "half a thought")
    held.answer(one, "First")
    held.service.send(where, "Four again")
    assert held.queued(where) == ("Four again",), "those before it were sent or cancelled"
    assert held.service.get(where).draft == "half a thought", "what is typed stays typed"


def test_nothing_is_sent_by_itself_any_more_once_kvdesk_closes(held: Held) -> None:
    one = held.say("One")
    held.service.send(one.conversation, "Two")
    held.service.queued.close()
    held.answer(one, "First")
    assert (questions(held), held.queued(one.conversation)) == (["One"], ("Two",))


def test_the_next_one_goes_after_everything_else_of_its_events(held: Held) -> None:
    one = held.say("One")
    held.service.send(one.conversation, "Two")
    held.write(one, "First")
    held.service.apply(TurnEnded(one.conversation, one.answer, "complete", STATS))
    assert questions(held) == ["One"], "the window has not shown the end yet"
    held.service.queued.send_due()
    assert questions(held) == ["One", "Two"]
