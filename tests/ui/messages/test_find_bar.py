"""Ctrl+F: find in the chat that is open."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.ui.messages.find_bar import FindBar
from kvdesk.ui.messages.thinking import CollapsedThinking
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.samples import ONE, append_message, message, remove_messages, show_messages, update_message

LONG = "Much about nothing.\n\n" * 60
CHAT = (
    message("q", "user", "Is the sea blue?"),
    message("a", "assistant", "<think>The Sea, the sky.</think>The **sea** is green.\n\n```\nsea = 1\n```\n" + LONG),
    message("q2", "user", "And the SEA at night?"),
)


def found(window: MainWindow, text: str) -> FindBar:
    show_messages(window, ONE, CHAT)
    window.action_set.run("chat.find")
    bar = window.chat.find_bar
    bar.field.setText(text)
    return bar


def marked(window: MainWindow) -> list[tuple[str, bool]]:
    """The texts that are marked, and whether one is there."""
    accent = QColor(window.theme.colours.accent)
    view = window.chat.view
    selections = [one for field in view.findChildren(QTextEdit) for one in field.extraSelections()]
    selections += (one for field in view.findChildren(QPlainTextEdit) for one in field.extraSelections())
    return [(one.cursor.selectedText(), one.format.background().color() == accent) for one in selections]


def test_all_places_are_counted_and_walked(window: MainWindow, qtbot: QtBot) -> None:
    bar = found(window, "sea")
    assert bar.field.hasFocus()
    view, field = window.chat.view, bar.field
    assert bar.count.endswith(" of 5")
    seen = set()
    for _ in range(5):
        qtbot.keyClick(field, Qt.Key.Key_Return)
        here = [text for text, is_here in marked(window) if is_here]
        seen.add((bar.count, *here))
    assert {count for count, *_ in seen} == {f"{i} of 5" for i in range(1, 6)}, "round and round"
    assert all(len(one) == 2 for one in seen), "one place is where one is"
    assert [thought.is_open for thought in view.findChildren(CollapsedThinking)] == [True], "what hides a hit is opened"
    while not bar.count.startswith("1 "):
        qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert view.first_seen == "q"
    window.action_set.run("chat.previous_hit")
    assert bar.count == "5 of 5"
    assert view.verticalScrollBar().value() > 0
    assert sorted({text.lower() for text, _ in marked(window)}) == ["sea"]
    assert len(marked(window)) == 5


def test_escape_closes_it_and_nothing_stays_marked(window: MainWindow, qtbot: QtBot) -> None:
    bar = found(window, "sea")
    assert marked(window)
    qtbot.keyClick(bar.field, Qt.Key.Key_Escape)
    assert not bar.isVisible()
    assert marked(window) == []
    assert window.chat.composer.edit.hasFocus()


def test_what_is_found_changes_with_the_chat_and_the_text(window: MainWindow) -> None:
    bar = found(window, "night")
    assert bar.count == "1 of 1"
    bar.field.setText("nightmare")
    assert bar.count == "Nothing found"
    assert not any(button.isEnabled() for button in bar.buttons)
    assert marked(window) == []
    bar.field.setText("sky")
    append_message(window, message("a2", "assistant", "", "streaming"))
    update_message(window, message("a2", "assistant", "A black sky."))
    assert bar.count == "1 of 2"
    show_messages(window, ONE, CHAT[:1])
    assert bar.count == "Nothing found"


def test_after_the_hit_where_one_is_was_deleted_the_next_one_follows(window: MainWindow) -> None:
    many = tuple(message(f"m{i}", "user", "The sea") for i in range(5))
    show_messages(window, ONE, many)
    window.action_set.run("chat.find")
    bar = window.chat.find_bar
    bar.field.setText("sea")
    while bar.count != "3 of 5":
        bar.step(1)
    remove_messages(window, ONE, [MessageId("m2")], [*many[:2], *many[3:]])
    assert bar.count.endswith(" of 4")
    bar.step(1)
    assert bar.count == "3 of 4"
    remove_messages(window, ONE, [MessageId("m3")], [*many[:2], many[4]])
    bar.step(-1)
    assert bar.count == "2 of 3"


def test_what_is_selected_is_looked_for(window: MainWindow) -> None:
    show_messages(window, ONE, CHAT)
    (prose,) = window.chat.view.widgets[2].findChildren(QTextEdit)
    cursor = prose.textCursor()
    cursor.setPosition(4)
    cursor.setPosition(11, cursor.MoveMode.KeepAnchor)
    prose.setTextCursor(cursor)
    window.action_set.run("chat.find")
    assert window.chat.find_bar.field.text() == "the SEA"
    assert window.chat.find_bar.count == "4 of 4", "from there"


def test_an_empty_chat_has_nothing_to_look_through(window: MainWindow) -> None:
    window.action_set.run("chat.find")
    assert window.chat.find_bar.isHidden()
    assert window.activity.text == "This chat has no messages."


def test_a_long_answer_is_shown_up_to_the_hit(window: MainWindow) -> None:
    far = replace(CHAT[1], text="A paragraph of words.\n\n" * 2_000 + "The end of the sea.")
    show_messages(window, ONE, (CHAT[0], far))
    window.action_set.run("chat.find")
    window.chat.find_bar.field.setText("end of the sea")
    assert window.chat.find_bar.count == "1 of 1"
    assert marked(window) == [("end of the sea", True)]
    assert window.chat.view.widget_of(MessageId("a")) is not None
