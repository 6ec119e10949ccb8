"""The section of the settings that connects to a server, by real clicks and keys."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from kvdesk.protocol.servers import ServerFound
from kvdesk.settings import KnownServer
from kvdesk.ui.server.connect_section import ConnectSection
from tests.ui.recording import Record, Recorder

SERVERS = (KnownServer(url="http://bigbox:8080", name="bigbox", model="llama"), KnownServer(url="https://gpu"))


@pytest.fixture
def section(qtbot: QtBot) -> ConnectSection:
    section = ConnectSection(Recorder())
    qtbot.addWidget(section)
    section.show_servers(())
    section.set_alone(True)
    section.show()
    return section


def test_nothing_can_be_asked_without_an_address(section: ConnectSection, qtbot: QtBot, record: Record) -> None:
    connected = record(section._commands.servers.connect_to)
    assert not section.known.isVisible()
    assert not section.test_button.isEnabled()
    assert not section.connect_button.isEnabled()
    qtbot.keyClicks(section.url, "bigbox:8080/v1")
    qtbot.keyClicks(section.key, "sk-1")
    assert section.key.echoMode() == QLineEdit.EchoMode.Password
    qtbot.keyClick(section.key, Qt.Key.Key_Return)
    assert connected == [(KnownServer(url="http://bigbox:8080"), "sk-1")]


def test_a_key_is_asked_for_when_the_section_is_seen(section: ConnectSection, record: Record) -> None:
    chosen = record(section._commands.servers.read_key)
    section.hide()
    section.show_servers(SERVERS)
    assert chosen == []
    for _ in range(2):
        section.show()
        assert chosen == [("http://bigbox:8080",)]
        section.hide()


def test_a_search_that_finds_the_section_asks_no_keyring(section: ConnectSection, qtbot: QtBot, record: Record) -> None:
    chosen, tested, connected = (
        record(of)
        for of in (
            section._commands.servers.read_key,
            section._commands.servers.test,
            section._commands.servers.connect_to,
        )
    )
    section.set_alone(False)
    section.show_servers(SERVERS)
    qtbot.mouseClick(section.test_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(section.connect_button, Qt.MouseButton.LeftButton)
    assert (chosen, tested, connected) == ([], [("http://bigbox:8080", None)], [(SERVERS[0], None)]), "its kept key"
    section.set_alone(True)
    assert chosen == [("http://bigbox:8080",)]
    section.show_key("http://bigbox:8080", "")
    qtbot.mouseClick(section.connect_button, Qt.MouseButton.LeftButton)
    assert connected[1:] == [(SERVERS[0], "")], "it has none"


def test_what_is_typed_stays_when_the_list_of_servers_changes(section: ConnectSection, qtbot: QtBot) -> None:
    qtbot.keyClicks(section.url, "nas:80")
    qtbot.keyClicks(section.key, "sk-1")
    qtbot.keyClicks(section.model, "big")
    section.show_servers(SERVERS)
    section.show_key("http://bigbox:8080", "of another one")
    section.show_found(ServerFound("vLLM", ("a", "b"), ("It answers chats.",)))
    assert section.known.currentText() == "A new server"
    assert (section.url.text(), section.key.text(), section.model.currentText()) == ("nas:80", "sk-1", "big")
    qtbot.mouseClick(section.connect_button, Qt.MouseButton.LeftButton)
    section.show_servers(SERVERS)
    assert section.url.text() == "http://bigbox:8080"


def test_a_known_server_is_chosen_with_its_key(section: ConnectSection, qtbot: QtBot, record: Record) -> None:
    chosen, forgotten = record(section._commands.servers.read_key), record(section._commands.servers.forget)
    section.show_servers(SERVERS)
    assert (section.url.text(), section.name.text(), section.model.currentText()) == (
        "http://bigbox:8080",
        "bigbox",
        "llama",
    )
    section.show_key("https://gpu", "of another one")
    assert section.key.text() == ""
    section.show_key("http://bigbox:8080", "sk-2")
    assert section.key.text() == "sk-2"
    section.known.setFocus()
    qtbot.keyClick(section.known, Qt.Key.Key_Down)
    assert (section.url.text(), section.key.text()) == ("https://gpu", "")
    assert chosen == [("http://bigbox:8080",), ("https://gpu",)]
    qtbot.mouseClick(section.forget_button, Qt.MouseButton.LeftButton)
    assert forgotten == [("https://gpu",)]
    qtbot.keyClick(section.known, Qt.Key.Key_Down)
    assert section.url.text() == ""
    assert not section.forget_button.isVisible()


def test_what_was_found_is_told_with_who_could_read_along(section: ConnectSection, qtbot: QtBot) -> None:
    qtbot.keyClicks(section.url, "http://bigbox:8080")
    qtbot.mouseClick(section.test_button, Qt.MouseButton.LeftButton)
    assert section._sentence.text() == "Asking the server…"
    assert section.test_button.hasFocus()
    section.show_found(ServerFound("vLLM", ("a", "b"), ("It answers chats.",)))
    assert section._sentence.text().splitlines() == [
        "It answers chats.",
        "2 models.",
        "This connection is not encrypted: anyone on the network can read your chats and API key.",
    ]
    assert [section.model.itemText(i) for i in range(section.model.count())] == ["a", "b"]
    assert section._sentence.property("tone") == "good"
    limit = "It shows its cells to a key only. Start it with --inspect-key and connect with that key."
    section.show_found(ServerFound("kvdesk", ("a",), ("Another kvdesk. It answers chats.",), limit=limit))
    assert section._sentence.text().splitlines()[:2] == ["Another kvdesk. It answers chats.", limit]
    assert section._sentence.property("tone") == "warning", "what is missing is not shown as a success"
    section.show_found(ServerFound("llama-server", ("a",), ("llama-server.",), limit="kvdesk watch shows its cells."))
    assert section._sentence.property("tone") == "good", "it has nothing more to show"
    section.show_problem("The server cannot be reached.", "ConnectError")
    assert section._sentence.text() == "The server cannot be reached."
