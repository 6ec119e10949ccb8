"""From a typed word to the message in which it is, on whatever branch."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.message_widget import MessageWidget
from tests.app.conftest import Rig, over_both
from tests.app.test_controller import answer, say


def look_for(rig: Rig, qtbot: QtBot, text: str, n_rows: int) -> None:
    rig.window.conversations.search.setText(text)
    qtbot.waitUntil(lambda: len(rig.window.conversations.results.rows) == n_rows)


def marked(rig: Rig, message: str) -> list[str]:
    widget = rig.window.chat.view.widget_of(MessageId(message))
    assert isinstance(widget, MessageWidget)
    proses = widget.findChildren(ProseView)
    return [mark.cursor.selectedText() for prose in proses for mark in prose.extraSelections()]


@over_both
def test_search_looks_into_chats_that_were_never_opened(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    puffins = say(rig, "Where do puffins live?")
    answer(rig, qtbot, puffins, "On cliffs and more Cliffs.")
    rig.window.commands.archive(puffins.conversation, archived=True)
    rig.window.commands.new_chat()
    answer(rig, qtbot, say(rig, "Something else"), "Indeed.")
    rig.controller.shut_down()
    again = make_rig()
    look_for(again, qtbot, "cliffs", 2)
    assert [row.text for row in again.window.conversations.results.rows] == [
        "Where do puffins live?",
        "On cliffs and more Cliffs.",
    ]
    qtbot.keyClick(again.window.conversations.search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(again.window.chat.view.widgets))
    assert again.controller.selected == puffins.conversation
    assert marked(again, puffins.answer) == ["cliffs", "Cliffs"]
    look_for(again, qtbot, "nowhere at all", 0)
    again.window.conversations.search.clear()
    assert marked(again, puffins.answer) == []


def test_a_hit_on_another_branch_brings_that_branch(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "A horse walks into a bar.")
    rig.window.commands.conversations.turns.regenerate(asked.conversation, 1)
    second = rig.worker.asked[-1]
    look_for(rig, qtbot, "horse", 2)
    rig.window.conversations.results.step(1)
    assert asked.answer not in [widget.message.id for widget in rig.window.chat.view.widgets]
    assert "another branch" in rig.window.activity.text, "the answer that is being written is not interrupted"
    answer(rig, qtbot, second, "Knock, knock.")
    rig.window.conversations.results.step(1)
    assert [widget.message.text for widget in rig.window.chat.view.widgets] == ["Joke?", "A horse walks into a bar."]
    assert marked(rig, asked.answer) == ["horse"]


def test_what_was_deleted_is_not_found(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Where do puffins live?")
    answer(rig, qtbot, asked, "On cliffs.")
    look_for(rig, qtbot, "puffins", 2)
    rig.window.commands.delete(asked.conversation)
    shown = rig.controller.selected
    rig.window.conversations.results.step(1)
    assert rig.controller.selected == shown
    assert rig.window.activity.text == "This chat was deleted after it was found."
    rig.window.conversations.search.clear()
    look_for(rig, qtbot, "puffins", 0)
    rig.window.commands.undo_delete()
    rig.window.conversations.search.clear()
    look_for(rig, qtbot, "puffins", 2)


def test_a_message_that_was_deleted_since_it_was_found_is_said(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Where do puffins live?")
    answer(rig, qtbot, asked, "On the cliffs.")
    look_for(rig, qtbot, "cliffs", 2)
    rig.window.commands.conversations.removals.delete(asked.conversation, asked.answer, with_pair=False)
    rig.window.conversations.results.step(1)
    assert rig.window.activity.text == "This message was deleted after it was found."


def test_another_search_takes_the_marks_of_the_one_before_and_a_chat_shows_its_own(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Who lives there?")
    answer(rig, qtbot, asked, "The captain left the lighthouse.")
    look_for(rig, qtbot, "lighthouse", 2)
    rig.window.conversations.results.step(1)
    assert marked(rig, asked.answer) == ["lighthouse"]
    look_for(rig, qtbot, "captaın", 2)
    qtbot.waitUntil(lambda: rig.window.conversations.results.words == ("captaın",))
    assert marked(rig, asked.answer) == []
    rig.window.commands.open_found(asked.conversation, None)
    assert marked(rig, asked.answer) == ["captain"]
