"""A call of a tool among the messages: its menu, its pin, and what is found in its result."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QPlainTextEdit, QTextEdit
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.ui.messages.tool_message import ToolMessage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import ElidedButton
from kvdesk.values import replace
from tests.ui.recording import record
from tests.ui.samples import ONE, show_messages, update_message
from tests.ui.tool_places import calls, set_up

DONE = MessageId("t1")


@pytest.fixture
def block(window: MainWindow) -> ToolMessage:
    """A call that has ended."""
    set_up(window)
    show_messages(window, ONE, calls())
    found = window.chat.view.widget_at(DONE)
    assert isinstance(found, ToolMessage)
    return found


def test_its_menu_copies_and_pins_and_edits_nothing(window: MainWindow, block: ToolMessage) -> None:
    menu = window.chat.view.menu(DONE)
    texts = [one.text() for one in menu.actions()]
    assert {"Copy the message", "Pin", "Delete this message"} <= set(texts)
    assert not {"Edit…", "Edit the answer…", "Continue the answer"} & set(texts)
    menu.actions()[texts.index("Copy the message")].trigger()
    assert QGuiApplication.clipboard().text() == block.message.text
    pinned = record(window.commands.conversations.turns.pin)
    menu.actions()[texts.index("Pin")].trigger()
    assert len(pinned) == 1


def test_the_menu_key_opens_it_at_the_block(window: MainWindow, block: ToolMessage, qtbot: QtBot) -> None:
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(2, 2), block.mapToGlobal(QPoint(2, 2)))
    QApplication.sendEvent(block.fold.button, event)
    qtbot.waitUntil(lambda: any(menu.isVisible() for menu in window.chat.view.findChildren(QMenu)))
    next(menu for menu in window.chat.view.findChildren(QMenu) if menu.isVisible()).close()


def test_a_pinned_one_says_so_and_is_gone_to(window: MainWindow, block: ToolMessage) -> None:
    update_message(window, replace(block.message, pinned=True))
    assert block._facts.text().startswith("Pinned")
    [button] = window.chat.pinned.findChildren(ElidedButton)
    window.show()
    button.click()
    assert block.fold.button.hasFocus()


def test_what_is_found_in_a_result_is_opened_and_marked(window: MainWindow, block: ToolMessage) -> None:
    assert not block.fold.is_open
    window.action_set.run("chat.find")
    window.chat.find_bar.field.setText("commit")
    window.action_set.run("chat.next_hit")
    assert window.chat.find_bar.count.endswith(" of 2")
    assert block.fold.is_open
    fields = [*block.findChildren(QTextEdit), *block.findChildren(QPlainTextEdit)]
    marked = [one.cursor.selectedText() for field in fields for one in field.extraSelections()]
    assert marked == ["commit", "commit"]
    window.chat.find_bar.field.setText("")
    assert not [one for field in fields for one in field.extraSelections()]
