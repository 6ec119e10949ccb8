"""Answers made again and questions edited: what is a branch, and how one gets from one to another."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from kvdesk.app.branches import Tree
from kvdesk.chat import ConversationId, Message, MessageId
from kvdesk.operations import PreviewTurn, TurnPreview
from tests.app.conftest import Rig
from tests.app.test_controller import answer, say, stored

C = ConversationId("c")


def made(name: str, parent: str | None, role: str = "user", text: str = "x", state: str = "complete") -> Message:
    return Message(MessageId(name), C, MessageId(parent) if parent else None, role, text, state)  # type: ignore[arg-type]


TREE = [
    made("q", None),
    made("a1", "q", "assistant"),
    made("a2", "q", "assistant"),
    made("follow", "a1"),
    made("a3", "q", "assistant", "", "stopped"),
    made("q2", None),
]


def test_a_branch_is_walked_from_its_leaf() -> None:
    tree = Tree(TREE)
    assert [m.id for m in tree.branch(MessageId("follow"))] == ["q", "a1", "follow"]
    assert [m.id for m in tree.branch(None)] == ["q2"], "without a leaf the newest message is it"
    assert Tree().branch(None) == []


def test_siblings_are_of_one_place_and_have_said_something() -> None:
    tree = Tree(TREE)
    assert tree.siblings(MessageId("a2")) == ("a1", "a2")
    assert tree.siblings(MessageId("q2")) == ("q", "q2")
    assert tree.siblings(MessageId("follow")) == ("follow",)


def test_the_tip_is_the_newest_that_follows() -> None:
    tree = Tree(TREE)
    assert tree.tip(MessageId("a1")) == "follow"
    assert tree.tip(MessageId("q")) == "a2"


def test_a_circle_in_a_damaged_database_ends() -> None:
    tree = Tree([made("one", "two"), made("two", "one")])
    assert len(tree.branch(MessageId("one"))) == 2
    assert tree.tip(MessageId("one")) in ("one", "two")


def shown(rig: Rig) -> list[str]:
    return [widget.message.text for widget in rig.window.chat.view.widgets]


def test_a_second_answer_is_switched_from_and_back(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.regenerate_requested.emit(asked.conversation, 1)
    answer(rig, qtbot, rig.worker.asked[-1], "Second joke")
    last = rig.window.chat.view.widgets[-1]
    assert last.switch.text == "2/2"
    last.switch.buttons[0].click()
    assert shown(rig) == ["Joke?", "First joke"]
    assert [m.text for m in stored(rig, asked.conversation)] == ["Joke?", "First joke"], "it stays so after a restart"
    assert rig.window.chat.view.widgets[-1].switch.text == "1/2"
    assert [m.text for m in say(rig, "Another").messages] == ["Joke?", "First joke", "Another"]


def test_an_edited_question_is_a_branch(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke about cats?")
    answer(rig, qtbot, asked, "Miaow")
    question = rig.window.chat.view.widgets[0].message
    rig.window._menus.start_edit(question.id)
    composer = rig.window.chat.composer
    assert composer.text == "Joke about cats?"
    rig.window.chat._on_sent("Joke about dogs?")
    edited = rig.worker.asked[-1]
    assert [m.text for m in edited.messages] == ["Joke about dogs?"]
    answer(rig, qtbot, edited, "Wuff")
    assert shown(rig) == ["Joke about dogs?", "Wuff"]
    first = rig.window.chat.view.widgets[0]
    assert first.switch.text == "2/2"
    first.switch.buttons[0].click()
    assert shown(rig) == ["Joke about cats?", "Miaow"]


def test_escape_leaves_the_message_and_brings_the_draft_back(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, say(rig, "Question"), "Answer")
    rig.window.chat.composer.set_text("a draft")
    rig.window._menus.start_edit(rig.window.chat.view.widgets[0].message.id)
    rig.window.stop()
    assert rig.window.chat.composer.text == "a draft"
    assert not rig.window.chat.is_editing


def test_three_more_answers_are_asked_for_at_once(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.regenerate_requested.emit(asked.conversation, 3)
    sent = rig.worker.asked[1:]
    assert len({command.answer for command in sent}) == 3
    assert len({command.messages for command in sent}) == 1
    rig.window.stop_requested.emit(asked.conversation)
    assert set(rig.worker.stopped) >= {command.answer for command in sent}


def test_what_is_typed_is_priced(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    edit = rig.window.chat.composer.edit
    qtbot.keyClicks(edit, "Another")
    qtbot.waitUntil(lambda: any(isinstance(c, PreviewTurn) for c in rig.worker.commands))
    preview = next(c for c in rig.worker.commands if isinstance(c, PreviewTurn))
    assert [m.text for m in preview.messages] == ["Joke?", "First joke", "Another"]
    rig.window.chat.composer.set_blocked("")
    sentence = "20 tokens from cache, 9 to compute, first token in about 0.1 s"
    rig.window.apply_event(TurnPreview(asked.conversation, 20, 9, 120.0, sentence, text="Another"))
    assert "9 to compute" in rig.window.chat.composer.hint_text


def test_an_edited_message_is_priced_in_its_place(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, say(rig, "Joke?"), "First joke")
    answer(rig, qtbot, say(rig, "Another"), "Second joke")
    rig.window._menus.start_edit(rig.window.chat.view.widgets[2].message.id)
    rig.window.chat.composer.set_text("Another, but short")
    qtbot.waitUntil(lambda: any(isinstance(c, PreviewTurn) for c in rig.worker.commands))
    preview = next(c for c in reversed(rig.worker.commands) if isinstance(c, PreviewTurn))
    assert [m.text for m in preview.messages] == ["Joke?", "First joke", "Another, but short"]
    assert (preview.n_typed, preview.max_tokens) == (18, rig.controller.settings.sampling.max_tokens)
