"""Typing anywhere in the window goes to the message field."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QTableView, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import IconButton
from tests.ui.samples import ONE, cache_view, message, show_messages


def places(window: MainWindow) -> dict[str, QWidget]:
    view = window.chat.view
    return {
        "chats": window.conversations.view,
        "messages": view,
        "answer": view.widgets[1].findChildren(ProseView)[0],
        "button": view.widgets[1].findChildren(IconButton)[0],
        "map": window.inspector.cell_map,
        "timeline": window.inspector.timeline.findChildren(QTableView)[0],
    }


@pytest.mark.parametrize("place", ["chats", "messages", "answer", "button", "map", "timeline"])
def test_what_is_typed_where_there_is_no_field_is_a_message(window: MainWindow, qtbot: QtBot, place: str) -> None:
    show_messages(window, ONE, (message("q", "user", "Hi"), message("a", "assistant", "Hello")))
    window.store.apply(cache_view())
    if place == "timeline":
        window.inspector.show_tab("Timeline")
    widget, composer = places(window)[place], window.chat.composer
    composer.set_text("")
    widget.setFocus(Qt.FocusReason.OtherFocusReason)
    qtbot.keyClick(widget, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(widget, Qt.Key.Key_F5)
    assert composer.text == ""
    qtbot.keyClicks(widget, "C")
    assert composer.edit.hasFocus()
    qtbot.keyClicks(composer.edit, "ells")
    assert composer.text == "Cells"


def test_a_field_keeps_what_is_typed_into_it(window: MainWindow, qtbot: QtBot) -> None:
    search = window.conversations.search
    search.setFocus()
    qtbot.keyClicks(search, "sea")
    assert (search.text(), window.chat.composer.text) == ("sea", "")
    window.rooms.show_room("lab")
    qtbot.keyClicks(window, "x")
    assert window.chat.composer.text == "", "only where the chats are"


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_presses_a_button_as_space_does(window: MainWindow, qtbot: QtBot, key: Qt.Key) -> None:
    button = window.findChild(QAbstractButton, "inspectorButton")
    assert isinstance(button, QAbstractButton)
    shown = window.inspector.isVisible()
    button.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(button, key)
    assert window.inspector.isVisible() is not shown
    choice = window.chat.header.tools_choice
    window.chat.header.choose_tools()
    setup = next(one for one in choice.findChildren(QAbstractButton) if one.text() == "Set up servers…")
    setup.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(setup, key)
    assert window.rooms.shown == "settings", "in a popup, too"
