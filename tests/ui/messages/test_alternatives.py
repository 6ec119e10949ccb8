"""Several answers side by side."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.ui.messages.alternatives import AlternativesView
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import ONE, STATS, append_message, message, show_messages

FIRST = replace(message("a1", "assistant", "A *horse* walks into a bar."), stats=STATS, model="Tiny")
SECOND = replace(message("b1", "assistant", "Knock, knock."), stats=replace(STATS, decode_tok_s=33.0))


def shown(view: AlternativesView) -> str:
    return "\n".join(label.text() for label in view.findChildren(QLabel) if not label.isHidden())


def compare(window: MainWindow) -> AlternativesView:
    show_messages(window, ONE, (message("q", "user", "Joke?"), SECOND))
    window.chat.compare("Joke?", (FIRST, SECOND), SECOND.id)
    return window.chat.alternatives


def test_each_answer_stands_beside_the_other_with_what_it_cost(window: MainWindow) -> None:
    view = compare(window)
    assert view.isVisible()
    assert not window.chat.view.isVisible()
    text = shown(view)
    assert "Tokens per second\n118" in text
    assert "Tokens per second\n33" in text
    assert "Answer 2 of 2  ·  shown" in text
    assert [column.message.id for column in view._columns] == ["a1", "b1"]
    left, right = (
        button.mapTo(view, button.rect().center()).x() for button in tuple(column.keep for column in view._columns)
    )
    assert left < right
    assert view._columns[1].keep.hasFocus()


def test_one_is_kept_by_keys(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    view = compare(window)
    kept = record(window.commands.conversations.turns.show_branch)
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Left)
    assert view._columns[0].keep.hasFocus()
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Left)
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    assert kept == [(ONE, "a1")]


def test_escape_leads_back_to_the_chat(window: MainWindow, qtbot: QtBot) -> None:
    view = compare(window)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not view.isVisible()
    assert window.chat.view.isVisible()
    assert window.chat.composer.edit.hasFocus()


def test_answers_grow_side_by_side_and_none_is_kept_before_all_have_ended(window: MainWindow, qtbot: QtBot) -> None:
    view = window.chat.alternatives
    running = replace(FIRST, text="", state="streaming", stats=None)
    window.chat.compare("Joke?", (running, SECOND), SECOND.id)
    assert not any(column.keep.isEnabled() for column in view._columns)
    view.update_answers((replace(running, text="A horse"),))
    qtbot.waitUntil(lambda: view._columns[0].message.text == "A horse")
    view.update_answers((FIRST, message("other", "assistant", "of another chat")))
    qtbot.waitUntil(lambda: all(column.keep.isEnabled() for column in view._columns))
    assert tuple(column.message for column in view._columns) == (FIRST, SECOND)


def test_the_switch_of_an_answer_offers_it(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    show_messages(window, ONE, (message("q", "user", "Joke?"), SECOND))
    assert window.action_set["chat.compare"].refusal() != ""
    both = (FIRST.id, SECOND.id)
    questions = (MessageId("q"), MessageId("q0"))
    window.store.show_forks({**dict.fromkeys(both, both), **dict.fromkeys(questions, questions)})
    compared = record(window.commands.compare)
    question, answer = window.chat.view.widgets
    assert question.switch.compare.isHidden()
    qtbot.mouseClick(answer.switch.compare, Qt.MouseButton.LeftButton)
    window.action_set.run("chat.compare")
    assert compared == [(ONE, "b1"), (ONE, "b1")]


def test_none_is_kept_while_another_answer_of_the_chat_is_written(window: MainWindow, record: Record) -> None:
    kept = record(window.commands.conversations.turns.show_branch)
    view = compare(window)
    append_message(window, message("a2", "assistant", "", "streaming"))
    view._columns[0].keep.click()
    assert kept == []
    assert window.activity.text == "An answer is being written; stop it first."
