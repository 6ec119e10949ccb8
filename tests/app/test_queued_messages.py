"""Enter while an answer is written, or a model is opened: the message waits, is seen, is stored, and goes by itself."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.conversations.changes import SENT_BY_THEMSELVES, QueueState
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import Generate, ModelLoaded, ModelLoading, TextDelta, TurnEnded
from kvdesk.protocol.model import LocalFile
from kvdesk.ui.composer.queue_view import QueueView
from tests.app.conftest import Rig, over_both
from tests.app.test_controller import CONTEXT, STATS, answer, conversations, say, stored
from tests.ui.samples import MODEL
from tests.ui.seen import queued


def enter(rig: Rig, qtbot: QtBot, text: str) -> None:
    """Type and press Enter, as a person does."""
    rig.window.chat.composer.set_text(text)
    qtbot.keyClick(rig.window.chat.composer.edit, Qt.Key.Key_Return)


def queue(rig: Rig) -> QueueView:
    return rig.window.chat.queue


def asked(rig: Rig) -> list[str]:
    """The questions that were sent, in order."""
    return [command.messages[-1].text for command in rig.worker.asked]


def texts(conversation: Conversation) -> tuple[str, ...]:
    """What waits in it to be sent."""
    return tuple(message.text for message in conversation.queued)


def first(rig: Rig) -> Generate:
    return say(rig, "One")


def ends(rig: Rig, command: Generate, text: str) -> None:
    """The worker answers; what waits may be sent in the same frame."""
    rig.worker.give(
        TextDelta(command.conversation, command.answer, text, (1, 2)),
        TurnEnded(command.conversation, command.answer, "complete", STATS),
    )


@over_both
def test_what_is_sent_while_an_answer_is_written_waits_and_goes_by_itself(ready: Rig, qtbot: QtBot) -> None:
    one = first(ready)
    enter(ready, qtbot, "Two")
    enter(ready, qtbot, "Three")
    assert (queued(queue(ready)), queue(ready).isVisible()) == (("Two", "Three"), True)
    assert queue(ready)._state.full_text == "Sent when the answer has ended"
    assert ready.window.chat.composer.text == ""
    assert asked(ready) == ["One"]
    ends(ready, one, "First answer")
    qtbot.waitUntil(lambda: asked(ready) == ["One", "Two"])
    assert [m.text for m in ready.worker.asked[-1].messages] == ["One", "First answer", "Two"]
    assert queued(queue(ready)) == ("Three",)
    ends(ready, ready.worker.asked[-1], "Second answer")
    qtbot.waitUntil(lambda: asked(ready) == ["One", "Two", "Three"])
    assert not queue(ready).isVisible()


@over_both
def test_while_a_model_is_opened_it_waits_for_it(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig(Path("/models/tiny.gguf"))
    rig.worker.give(ModelLoading(LocalFile(Path("/models/tiny.gguf")), 0.4))
    rig.window.show()
    qtbot.waitUntil(lambda: not rig.window.chat.composer.blocked)
    assert rig.window.chat.composer.hint.full_text == "Loading tiny. What you send waits for it."
    enter(rig, qtbot, "Hello")
    assert (asked(rig), queued(queue(rig))) == ([], ("Hello",))
    assert queue(rig)._state.full_text == "Sent when the model is ready"
    rig.worker.give(ModelLoaded(MODEL))
    qtbot.waitUntil(lambda: asked(rig) == ["Hello"])
    assert conversations(rig)[0].title == "Hello"
    assert conversations(rig)[0].queued == ()


@over_both
def test_it_can_be_cancelled_or_taken_back(ready: Rig, qtbot: QtBot) -> None:
    one = first(ready)
    for text in ("Two", "Three", "Four"):
        enter(ready, qtbot, text)
    composer = ready.window.chat.composer
    composer.set_text("half a thought")
    edit, _ = queue(ready)._widgets[1].findChildren(QToolButton)[2:]
    edit.click()
    assert (queued(queue(ready)), composer.text) == (("Two", "Four"), "Three\n\nhalf a thought")
    (kept,) = conversations(ready)
    assert (texts(kept), kept.draft) == (("Two", "Four"), "Three\n\nhalf a thought"), "at no moment is it nowhere"
    _, cancel = queue(ready)._widgets[0].findChildren(QToolButton)[2:]
    cancel.click()
    assert queued(queue(ready)) == ("Four",)
    ends(ready, one, "First answer")
    qtbot.waitUntil(lambda: asked(ready) == ["One", "Four"])
    assert conversations(ready)[0].draft == "Three\n\nhalf a thought", "what is typed stays typed"


@over_both
def test_it_outlives_the_process_and_then_waits(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    rig.worker.give(ModelLoaded(MODEL))
    qtbot.waitUntil(lambda: not rig.window.chat.composer.blocked)
    one = first(rig)
    enter(rig, qtbot, "Two")
    assert [(texts(c), c.draft) for c in conversations(rig)] == [(("Two",), "")]
    rig.controller.shut_down()
    again = make_rig()
    again.window.show()
    assert queued(queue(again)) == ("Two",)
    assert queue(again)._state.full_text == "Waiting since kvdesk was closed"
    again.worker.give(ModelLoaded(MODEL), ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: len(again.controller.conversations.branch(one.conversation)) == 2)
    assert asked(again) == []
    queue(again).send_button.click()
    assert asked(again) == ["One\n\nTwo"]
    assert [m.text for m in stored(again, one.conversation)][2] == "Two"


@over_both
def test_each_conversation_has_its_own(ready: Rig, qtbot: QtBot) -> None:
    one = first(ready)
    enter(ready, qtbot, "Two")
    ready.window.commands.new_chat()
    assert not queue(ready).isVisible()
    enter(ready, qtbot, "Elsewhere")
    assert asked(ready) == ["One", "Elsewhere"]
    ends(ready, one, "First answer")
    qtbot.waitUntil(lambda: asked(ready) == ["One", "Elsewhere", "Two"])
    assert ready.controller.selected != one.conversation, "it goes by itself, wherever one looks"


@over_both
def test_an_edited_message_is_not_swallowed(ready: Rig, qtbot: QtBot) -> None:
    one = first(ready)
    answer(ready, qtbot, one, "First answer")
    ready.window.chat.view.start_edit(ready.window.chat.view.widgets[0].message.id)
    ready.controller.conversations.turns.regenerate(ConversationId(one.conversation))
    editor = ready.window.chat.view.widgets[0].editor
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert (editor.text, len(ready.worker.asked)) == ("One", 2)
    assert editor._cost.text() == "It can be saved when the answer has ended"


def test_whatever_a_queue_waits_for_has_words(rig: Rig) -> None:
    one = first(rig)
    rig.window.commands.conversations.send(one.conversation, "Two")
    said = set()
    for state in get_args(QueueState):
        rig.window.store.show_queues({one.conversation: state})
        said.add(queue(rig)._state.full_text)
        assert queue(rig).send_button.isHidden() == (state in SENT_BY_THEMSELVES)
    assert len(said) == len(get_args(QueueState))


@over_both
def test_it_can_be_moved(ready: Rig, qtbot: QtBot) -> None:
    one = first(ready)
    for text in ("Two", "Three", "Four"):
        enter(ready, qtbot, text)
    up, down = queue(ready).movers(0)
    assert (up.isEnabled(), down.isEnabled()) == (False, True)
    queue(ready).movers(2)[0].setFocus()
    qtbot.keyClick(queue(ready).movers(2)[0], Qt.Key.Key_Space)
    assert queued(queue(ready)) == ("Two", "Four", "Three")
    qtbot.keyClick(queue(ready).movers(1)[0], Qt.Key.Key_Space)
    assert queued(queue(ready)) == ("Four", "Two", "Three")
    assert texts(conversations(ready)[0]) == ("Four", "Two", "Three")
    assert queue(ready).movers(0)[1].accessibleName() == "Send this queued message later"
    ends(ready, one, "First answer")
    qtbot.waitUntil(lambda: asked(ready) == ["One", "Four"])
