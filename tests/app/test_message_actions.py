"""What a person does with single messages, from a click to the database and the back end, and back."""

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.message import Message, MessageId, finish_of
from kvdesk.protocol.chat import DropMessages, Generate, ModelLoaded, TextDelta, TurnEnded, TurnStarted
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.widgets.controls import IconButton
from tests.app.conftest import Rig, over_both
from tests.ui.samples import MODEL, STATS
from tests.ui.seen import seen


def exchange(rig: Rig, qtbot: QtBot, text: str = "Once upon") -> Generate:
    """A question, answered up to the limit."""
    if rig.controller.conversations.turns.model_name == "":
        rig.worker.give(ModelLoaded(MODEL))
    conversation = rig.controller.selected
    assert conversation is not None
    rig.window.commands.conversations.send(conversation, "A story?")
    asked = rig.worker.asked[-1]
    rig.worker.give(
        TurnStarted(asked.conversation, asked.answer, 0, 30, 10, (), "v"),
        TextDelta(asked.conversation, asked.answer, text, (1, 2)),
        TurnEnded(asked.conversation, asked.answer, "complete", STATS, "Ended at the limit of 2 tokens.", "limit"),
    )
    qtbot.waitUntil(lambda: last(rig).message.state == "complete")
    return asked


def last(rig: Rig) -> MessageWidget:
    return rig.window.chat.view.widgets[-1]


def press(qtbot: QtBot, widget: MessageWidget, name: str) -> None:
    (found,) = [b for b in widget.findChildren(IconButton) if b.accessibleName() == name]
    qtbot.mouseClick(found, Qt.MouseButton.LeftButton)


def in_database(rig: Rig, asked: Generate) -> dict[MessageId, Message]:
    messages = rig.store.ask(lambda store: store.all_messages(asked.conversation)).result()
    return {message.id: message for message in messages}


def test_continue_appends_to_the_answer_and_is_stored_as_it_streams(rig: Rig, qtbot: QtBot) -> None:
    first = exchange(rig, qtbot)
    press(qtbot, last(rig), "Continue the answer")
    asked = rig.worker.asked[-1]
    assert (asked.answer, asked.continued is not None) == (first.answer, True)
    assert in_database(rig, asked)[asked.answer].state == "streaming"
    rig.worker.give(
        TurnStarted(asked.conversation, asked.answer, 0, 32, 31, (1, 2), "v"),
        TextDelta(asked.conversation, asked.answer, " a time", (3,)),
    )
    qtbot.waitUntil(lambda: last(rig).message.text == "Once upon a time")
    qtbot.waitUntil(lambda: in_database(rig, asked)[asked.answer].text == "Once upon a time")
    rig.worker.give(TurnEnded(asked.conversation, asked.answer, "complete", STATS))
    qtbot.waitUntil(lambda: last(rig).message.state == "complete")
    stored = in_database(rig, asked)[asked.answer]
    assert (stored.text, stored.tokens, finish_of(stored)) == ("Once upon a time", (1, 2, 3), "end")
    assert stored.stats == last(rig).message.stats
    assert stored.stats.all_generated == 2 * STATS.generated_tokens
    assert seen(last(rig)._foot).startswith("reused 128  ·  prefilled 12")


def test_the_key_continues_too(rig: Rig, qtbot: QtBot) -> None:
    exchange(rig, qtbot)
    rig.window.action_set.run("chat.continue")
    assert rig.worker.asked[-1].continued is not None


def test_an_edited_answer_is_continued_from_the_new_text(rig: Rig, qtbot: QtBot) -> None:
    first = exchange(rig, qtbot)
    widget = last(rig)
    widget.start_edit()
    widget.editor.edit.setPlainText("Once upon a hill")
    qtbot.mouseClick(widget.editor._go_on, Qt.MouseButton.LeftButton)
    asked = rig.worker.asked[-1]
    assert asked.answer != first.answer
    assert (asked.continued.text, asked.continued.tokens) == ("Once upon a hill", (1, 2))
    assert last(rig).message.id == asked.answer
    assert last(rig).switch._text.text() == "2/2"
    rig.worker.give(TurnEnded(asked.conversation, asked.answer, "stopped", STATS))
    qtbot.waitUntil(lambda: last(rig).message.state != "streaming")
    assert last(rig).message.text == "Once upon a hill"


@over_both
def test_a_question_and_its_answer_are_deleted_and_come_back(rig: Rig, qtbot: QtBot) -> None:
    first = exchange(rig, qtbot)
    second = exchange(rig, qtbot, "Twice")
    before = in_database(rig, first)
    rig.window.commands.conversations.removals.delete(first.conversation, first.answer, with_pair=True)
    assert [w.message.text for w in rig.window.chat.view.widgets] == ["A story?", "Twice"]
    kept = in_database(rig, first)
    assert len(kept) == 2
    assert kept[second.messages[-1].id].parent is None
    dropped = [command for command in rig.worker.commands if isinstance(command, DropMessages)]
    assert len(dropped) == 1
    assert rig.window.chat.deleted.text == "2 messages deleted."
    qtbot.mouseClick(rig.window.chat.deleted.button, Qt.MouseButton.LeftButton)
    assert [w.message.text for w in rig.window.chat.view.widgets] == ["A story?", "Once upon", "A story?", "Twice"]
    assert in_database(rig, first) == before
    assert list(in_database(rig, first)) == list(before), "in the order in which they were made"
