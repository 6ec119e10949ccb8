"""The switch in the window: a real server on the window's host, which a client asks over HTTP."""

import socket
import stat
from pathlib import Path

import httpx2 as httpx
import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.slices.serving import Serving
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import LedgerRow
from kvdesk.protocol.chat import TurnStarted
from kvdesk.server.server import Server
from kvdesk.settings import ServeSettings
from kvdesk.store.server_key import key_file, read_key
from kvdesk.ui.settings.page import SettingsPage
from tests.app.conftest import Rig


def serving(rig: Rig) -> Serving:
    found = rig.controller.slices["serve"]
    assert isinstance(found, Serving)
    return found


def opened(rig: Rig, port: int) -> SettingsPage:
    """Served at this port from the next click on."""
    rig.window.store.settings.change(serve=ServeSettings(port=port, client_share=25))
    rig.window.action_set.run("app.serve")
    page = rig.window.rooms.settings
    assert page is not None
    return page


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_the_switch_serves_and_ends(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LedgerRow("remembered answers", 0, 2_500_000, 16_000_000), LedgerRow("kept responses", 0, 0, 16_000_000)
    monkeypatch.setattr(Server, "memory", rows)
    port = free_port()
    section = opened(rig, port).serving
    section.serve.click()
    qtbot.waitUntil(lambda: bool(section.address))
    assert section.address == f"http://127.0.0.1:{port}/v1"
    key = {"authorization": f"Bearer {read_key(key_file())}"}
    assert httpx.get(f"{section.address}/models", headers=key).json()["data"] == []
    assert httpx.get(f"{section.address}/models").status_code == 401
    assert rig.controller.settings.serve.port == port
    status = rig.window.status
    chip = status.findChild(QPushButton, "servingChip")
    assert chip.accessibleName() == f"Serving 127.0.0.1:{port}"
    asked = TurnStarted(ConversationId("c"), MessageId("a"), 0, 10, 4, client="a program")
    serving(rig).apply(asked)
    qtbot.waitUntil(lambda: chip.accessibleName().endswith("1 running"))
    assert section.kept.text() == "Answers that the server remembers: 2.5 of 16 MB."
    server = serving(rig)._server
    assert server.config.client_share == 0.25
    section.serve.click()
    assert chip.isHidden()
    assert serving(rig)._server is None
    with socket.socket() as again:
        assert again.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_that_is_taken_is_said(rig: Rig, qtbot: QtBot) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        section = opened(rig, port).serving
        section.serve.click()
        qtbot.waitUntil(lambda: str(port) in section._status.text())
    assert not section.serve.isChecked()


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    key = read_key(file)
    assert read_key(file) == key
    assert len(key) > 20
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"\xff\xfe")
    assert read_key(file) != key
    assert key_file().parent == paths.data_dir()
