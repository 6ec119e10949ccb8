"""Up in an empty message box brings back what was sent, Down goes on to what was sent after it."""

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, message, show_messages


def press(window: MainWindow, qtbot: QtBot, *keys: Qt.Key) -> list[str]:
    """The text after each key."""
    seen = []
    for key in keys:
        qtbot.keyClick(window.chat.composer.edit, key)
        seen.append(window.chat.composer.text)
    return seen


UP, DOWN = Qt.Key.Key_Up, Qt.Key.Key_Down


def test_up_and_down(window: MainWindow, qtbot: QtBot) -> None:
    asked = ("One", "Two\nlines", "Three")
    show_messages(window, ONE, tuple(message(f"q{i}", "user", text) for i, text in enumerate(asked)))
    assert press(window, qtbot, DOWN, UP, UP, UP, UP) == ["", "Three", "Two\nlines", "One", "One"]
    assert press(window, qtbot, DOWN, DOWN, DOWN, DOWN) == ["Two\nlines", "Three", "", ""]


def test_what_is_typed_is_left_alone(window: MainWindow, qtbot: QtBot) -> None:
    asked = message("q", "user", "One"), message("a", "assistant", "Yes"), message("p", "user", "Two")
    show_messages(window, ONE, asked)
    window.chat.composer.set_text("mine")
    assert press(window, qtbot, UP, DOWN) == ["mine", "mine"]
    window.chat.composer.edit.clear()
    assert press(window, qtbot, UP) == ["Two"]
    qtbot.keyClicks(window.chat.composer.edit, "!")
    assert press(window, qtbot, UP, UP) == ["Two!", "Two!"], "changed, it is a new text"
