"""The palette over a real window, driven by keys."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from kvdesk.ui.shell.command_palette import CommandPalette
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.seen import texts

CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def opened(window: MainWindow, qtbot: QtBot, key: Qt.Key = Qt.Key.Key_P) -> CommandPalette:
    window.activateWindow()
    qtbot.keyClick(window, key, CONTROL | SHIFT if key == Qt.Key.Key_P else Qt.KeyboardModifier.NoModifier)
    palette = window.help.palette
    assert palette.isVisible()
    assert window.focusWidget() is palette.edit
    return palette


def test_every_action_is_listed_with_its_keys(window: MainWindow, qtbot: QtBot) -> None:
    said = texts(opened(window, qtbot))
    for group in window.action_set.groups:
        assert group.title in said
        for action in group.actions:
            assert any(action.label in text and action.all_keys in text for text in said)
    assert "Stop the answer, No answer is being written in this chat." in said


def test_a_few_letters_and_enter_run_an_action(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, "hide inspector")
    assert palette.chosen is window.action_set["view.inspector"]
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert palette.isHidden()
    assert window.inspector.isHidden()


def test_labels_come_before_the_titles_of_groups(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, "cache")
    assert "cache" in texts(palette)[0]
    has = ["cache" in text.split(",")[0].lower() for text in texts(palette)]
    assert has == sorted(has, reverse=True)
    assert not has[-1]


@pytest.mark.parametrize(("letters", "title"), [("safe", "Safe mode"), ("n_ctx", "Context size"), ("theme", "Theme")])
def test_a_setting_is_found_and_opened(window: MainWindow, qtbot: QtBot, letters: str, title: str) -> None:
    palette = opened(window, qtbot)
    assert not any(text.startswith("Setting: ") for text in texts(palette))
    qtbot.keyClicks(palette.edit, letters)
    (row,) = [n for n, text in enumerate(texts(palette)) if text.startswith(f"Setting: {title}")]
    for _ in range(row):
        qtbot.keyClick(palette.edit, Qt.Key.Key_Down)
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    page = window.rooms.settings
    assert page.isVisible()
    assert page.search.text() == title
    shown = [part.text() for part in page.findChildren(QLabel) if part.isVisible()]
    assert title in shown


@pytest.mark.parametrize("words", ["quant", "memory quantized"])
def test_words_of_a_tip_find_an_action_behind_those_of_labels(window: MainWindow, qtbot: QtBot, words: str) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, words)
    assert {"Setting: K cache type (type_k)", "Setting: V cache type (type_v)"} <= set(texts(palette))
    palette.edit.clear()
    qtbot.keyClicks(palette.edit, "uantized")
    assert texts(palette) == [], "in the midst of a word"


def test_scattered_letters_find_nothing(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, "safe")
    assert texts(palette) == ["Setting: Safe mode"]


def test_arrows_and_tab_choose_and_headings_are_passed(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    actions = [action for group in window.action_set.groups for action in group.actions]
    seen = [palette.chosen]
    for n in range(len(actions)):
        qtbot.keyClick(palette.edit, Qt.Key.Key_Down if n % 2 else Qt.Key.Key_Tab)
        seen.append(palette.chosen)
    assert seen == [*actions, actions[0]], "after the last comes the first"
    qtbot.keyClick(palette.edit, Qt.Key.Key_Up)
    assert palette.chosen is actions[-1]


def test_what_cannot_be_done_stays_and_says_why(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, "stop the answer")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert palette.isVisible()
    assert window.activity.text == "No answer is being written in this chat."


@pytest.mark.parametrize("where", ["composer", "search"])
def test_escape_gives_the_focus_back_and_stops_nothing(window: MainWindow, qtbot: QtBot, where: str) -> None:
    widget: QWidget = window.chat.composer.edit if where == "composer" else window.conversations.search
    window.conversations.search.setText("village")
    widget.setFocus()
    palette = opened(window, qtbot)
    qtbot.keyClick(palette.edit, Qt.Key.Key_Escape)
    assert palette.isHidden()
    assert window.focusWidget() is widget
    assert window.conversations.search.text() == "village"


def test_what_had_the_focus_may_be_gone_meanwhile(window: MainWindow, qtbot: QtBot) -> None:
    gone = QLineEdit(window)
    gone.show()
    gone.setFocus()
    palette = opened(window, qtbot)
    delete(gone)
    qtbot.keyClicks(palette.edit, "hide inspector")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert palette.isHidden()
    assert window.inspector.isHidden()


def test_it_leaves_when_something_else_is_clicked(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    window.chat.composer.edit.setFocus(Qt.FocusReason.MouseFocusReason)
    assert palette.isHidden()


def test_f1_lists_all_keys_and_those_of_parts(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot, Qt.Key.Key_F1)
    said = texts(palette)
    for action in (action for group in window.action_set.groups for action in group.actions):
        assert (f"{action.label}, {action.all_keys}" in said) == bool(action.keys)
    assert {"In the message box", "Send, Enter", "In the cell map"} <= set(said)
    qtbot.keyClicks(palette.edit, "new line")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert window.activity.text == "This key works in the message box."


def test_it_is_no_higher_than_what_it_lists(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    high = palette.height()
    qtbot.keyClicks(palette.edit, "zoom")
    assert palette.height() < high / 2
    view = palette.findChild(QListView)
    assert isinstance(view, QListView)
    last = view.visualRect(view.model().index(view.model().rowCount() - 1, 0))
    assert view.viewport().rect().contains(last), "all of it is seen"
    qtbot.keyClicks(palette.edit, "zzz")
    (none,) = [found for found in palette.findChildren(QLabel) if found.isVisible()]
    assert none.height() >= none.sizeHint().height()
    palette.edit.clear()
    assert palette.height() == high


def test_letters_that_nothing_has(window: MainWindow, qtbot: QtBot) -> None:
    palette = opened(window, qtbot)
    qtbot.keyClicks(palette.edit, "xyzzyx")
    assert texts(palette) == []
    assert palette.chosen is None
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_the_menu_button_offers_help(window: MainWindow, qtbot: QtBot) -> None:
    texts = [action.text() for action in window.help.menu().actions()]
    assert "Command palette\tCtrl+Shift+P" in texts
    asked: list[object] = []
    clicked = window.chat.header.menu_clicked
    clicked.disconnect(window.help.show_menu)  # a menu takes the keyboard, which this platform lacks
    clicked.connect(asked.append)
    button = next(b for b in window.chat.findChildren(QWidget) if b.accessibleName() == "Menu")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert len(asked) == 1
