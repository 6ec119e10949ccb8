"""Every action of the window: found by its id, run by its keys, refused with a sentence."""

from collections import Counter
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMenu, QToolButton
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import EngineDied
from kvdesk.ui.shell import activity_strip
from kvdesk.ui.shell.action_table import BUTTONS
from kvdesk.ui.shell.main_window import MainWindow
from tests.places import ROOT
from tests.ui.recording import record
from tests.ui.samples import ONE, message, show_messages


def all_actions(window: MainWindow) -> list[str]:
    return [action.id for group in window.action_set.groups for action in group.actions]


def test_ids_and_keys_are_given_once_and_labels_are_there(window: MainWindow) -> None:
    actions = [action for group in window.action_set.groups for action in group.actions]
    keys = [key.toString() for action in actions for key in action.sequences]
    for given in (all_actions(window), keys, [action.label for action in actions]):
        assert [one for one, n in Counter(given).items() if n > 1] == []
    assert all(keys)
    assert all(action.label for action in actions)


def test_a_key_runs_its_action_in_the_laboratory_too(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.rooms.shown == "lab"
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert window.rooms.shown != "lab"
    assert window.conversations.search.hasFocus()


def test_what_cannot_be_done_says_why(window: MainWindow, qtbot: QtBot) -> None:
    sent = record(window.commands.conversations.turns.regenerate)
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    assert window.activity.text == "This chat has no messages."
    show_messages(window, ONE, [message("q", "user", "Hello"), message("a", "assistant", "", state="streaming")])
    window.action_set.run("chat.regenerate")
    assert window.activity.text == "An answer is being written; stop it first."
    assert window.action_set["chat.stop"].refusal() == ""
    window.store.apply(EngineDied("It is gone.", ""))
    assert window.action_set["model.open"].refusal() == "The engine has stopped. Restart kvdesk."
    assert sent == []


def test_why_something_cannot_be_done_goes_by_itself(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_strip, "READ_MS", 20)
    monkeypatch.setattr(activity_strip, "READ_MS_PER_CHARACTER", 0)
    monkeypatch.setattr(activity_strip.ActivityStrip, "underMouse", lambda _self: False)
    window.action_set.run("chat.stop")
    assert window.activity.text == "No answer is being written in this chat."
    qtbot.waitUntil(lambda: window.activity.text == "")


def test_the_page_of_keys_names_those_of_every_action(window: MainWindow) -> None:
    told = (ROOT / "docs/keyboard.md").read_text(encoding="utf-8")
    actions = [window.action_set[name] for name in all_actions(window)]
    keys = [action.sequences[0].toString() for action in actions if action.keys]
    assert [key for key in keys if key not in told] == []


def test_every_refusal_is_empty_or_a_sentence(empty_window: MainWindow, window: MainWindow) -> None:
    for one in (empty_window, window):
        refusals = {name: one.action_set[name].refusal() for name in all_actions(one)}
        assert {name: why for name, why in refusals.items() if why and not why.endswith(".")} == {}
        assert refusals["chat.new"] == ""


def test_a_menu_shows_keys_and_reasons(window: MainWindow) -> None:
    menu = QMenu(window)
    window.action_set.fill_menu(menu, "chat.new", "", "chat.stop")
    new, line, stop = menu.actions()
    assert (new.text(), new.isEnabled(), line.isSeparator()) == ("New chat\tCtrl+N", True, True)
    assert (stop.isEnabled(), stop.toolTip()) == (False, "No answer is being written in this chat.")


@pytest.mark.parametrize(("button", "tip"), [("newButton", "Ctrl+N"), ("inspectorButton", "Ctrl+I")])
def test_buttons_say_the_keys_of_the_table(window: MainWindow, button: str, tip: str) -> None:
    found = window.findChild(QToolButton, button)
    action = window.action_set[BUTTONS[button]]
    assert (found.accessibleName(), found.toolTip()) == (action.label, f"{action.label} ({tip})")


def test_ctrl_q_quits_with_a_dialog_in_front(
    window: MainWindow, qtbot: QtBot, record: Callable[[object], list[tuple[object, ...]]]
) -> None:
    closed = record(window.closing)
    window.help.open_report()
    report = window.help.report
    report.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is report)
    qtbot.keyClick(report, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)
    assert closed == [()]
    assert not window.isVisible()
