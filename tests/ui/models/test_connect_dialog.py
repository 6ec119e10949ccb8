"""The dialog that connects to a server, by real clicks and keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from kvdesk.protocol.servers import ServerFound
from kvdesk.settings import KnownServer
from kvdesk.ui.models.connect_dialog import ConnectDialog
from kvdesk.ui.widgets.theme import Theme

Recorder = Callable[[object], list[tuple[object, ...]]]
SERVERS = (KnownServer(url="http://bigbox:8080", name="bigbox", model="llama"), KnownServer(url="https://gpu"))


@pytest.fixture
def dialog(theme: Theme, qtbot: QtBot) -> ConnectDialog:
    dialog = ConnectDialog(theme)
    qtbot.addWidget(dialog)
    dialog.show_servers(())
    dialog.show()
    return dialog


def test_nothing_can_be_asked_without_an_address(dialog: ConnectDialog, qtbot: QtBot, record: Recorder) -> None:
    connected = record(dialog.connect_clicked)
    assert not dialog.known.isVisible()
    assert not dialog.test_button.isEnabled()
    assert not dialog.connect_button.isEnabled()
    qtbot.keyClicks(dialog.url, "bigbox:8080/v1")
    qtbot.keyClicks(dialog.key, "sk-1")
    assert dialog.key.echoMode() == QLineEdit.EchoMode.Password
    qtbot.keyClick(dialog.key, Qt.Key.Key_Return)
    assert connected == [(KnownServer(url="http://bigbox:8080"), "sk-1")]
    assert not dialog.isVisible()


def test_a_known_server_is_chosen_with_its_key(dialog: ConnectDialog, qtbot: QtBot, record: Recorder) -> None:
    chosen, forgotten = record(dialog.chosen), record(dialog.forget_clicked)
    dialog.show_servers(SERVERS)
    assert (dialog.url.text(), dialog.name.text(), dialog.model.currentText()) == (
        "http://bigbox:8080",
        "bigbox",
        "llama",
    )
    dialog.show_key("https://gpu", "of another one")
    assert dialog.key.text() == ""
    dialog.show_key("http://bigbox:8080", "sk-2")
    assert dialog.key.text() == "sk-2"
    dialog.known.setFocus()
    qtbot.keyClick(dialog.known, Qt.Key.Key_Down)
    assert (dialog.url.text(), dialog.key.text()) == ("https://gpu", "")
    assert chosen == [("http://bigbox:8080",), ("https://gpu",)]
    qtbot.mouseClick(dialog.forget_button, Qt.MouseButton.LeftButton)
    assert forgotten == [("https://gpu",)]
    qtbot.keyClick(dialog.known, Qt.Key.Key_Down)
    assert dialog.url.text() == ""
    assert not dialog.forget_button.isVisible()


def test_what_was_found_is_told_with_who_could_read_along(dialog: ConnectDialog, qtbot: QtBot) -> None:
    qtbot.keyClicks(dialog.url, "http://bigbox:8080")
    qtbot.mouseClick(dialog.test_button, Qt.MouseButton.LeftButton)
    assert dialog.sentence == "Asking the server…"
    assert not dialog.test_button.isEnabled()
    dialog.show_found(ServerFound("vLLM", ("a", "b"), ("It answers chats.",)))
    assert dialog.sentence.splitlines() == [
        "It answers chats.",
        "2 models.",
        "The way there is not encrypted: whoever is in between can read chats and key.",
    ]
    assert [dialog.model.itemText(i) for i in range(dialog.model.count())] == ["a", "b"]
    assert dialog.test_button.isEnabled()
    assert dialog._sentence.property("tone") == "good"
    limit = "It shows its cells to a key only. Start it with --inspect-key and enter that key here."
    dialog.show_found(ServerFound("kvdesk", ("a",), ("Another kvdesk. It answers chats.",), limit=limit))
    assert dialog.sentence.splitlines()[:2] == ["Another kvdesk. It answers chats.", limit]
    assert dialog._sentence.property("tone") == "warning", "what is missing is not shown as a success"
    dialog.show_problem("The server cannot be reached.", "ConnectError")
    assert dialog.sentence == "The server cannot be reached."
