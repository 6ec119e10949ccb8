"""The switch in the window: a real server on the window's host, which a client asks over HTTP."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import httpx2 as httpx
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.serving import key_file, read_key
from kvdesk.chat import ConversationId, MessageId
from kvdesk.protocol.chat import TurnStarted
from kvdesk.ui.server.dialog import ServeChoice, ServerDialog
from tests.app.conftest import Rig


def opened(rig: Rig) -> ServerDialog:
    made: list[ServerDialog] = []
    rig.window.server_dialog_made.connect(made.append)
    rig.window.action_set.run("app.serve")
    return made[0]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_the_switch_serves_and_ends(rig: Rig, qtbot: QtBot) -> None:
    dialog, port = opened(rig), free_port()
    dialog.start_requested.emit(ServeChoice(port, others=False, shared=True, inspects=False))
    qtbot.waitUntil(lambda: bool(dialog.address))
    assert dialog.address == f"http://127.0.0.1:{port}/v1"
    key = {"authorization": f"Bearer {read_key(key_file())}"}
    assert httpx.get(f"{dialog.address}/models", headers=key).json()["data"] == []
    assert httpx.get(f"{dialog.address}/models").status_code == 401
    assert rig.controller.settings.serve.port == port
    status = rig.window.status
    chip = status.findChild(QPushButton, "servingChip")
    assert chip is not None
    assert chip.accessibleName() == f"Serving 127.0.0.1:{port}"
    asked = TurnStarted(ConversationId("c"), MessageId("a"), 0, 10, 4, client="a program")
    rig.controller.serving.apply(asked)
    qtbot.waitUntil(lambda: chip.accessibleName().endswith("1 running"))
    dialog.stop_requested.emit()
    assert chip.isHidden()
    assert rig.controller.serving.server is None
    with socket.socket() as again:
        assert again.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_that_is_taken_is_said(rig: Rig, qtbot: QtBot) -> None:
    dialog = opened(rig)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        dialog.start_requested.emit(ServeChoice(port, others=False, shared=True, inspects=False))
        qtbot.waitUntil(lambda: str(port) in dialog.status)
    assert not dialog.serve.isChecked()


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    key = read_key(file)
    assert read_key(file) == key
    assert len(key) > 20
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"\xff\xfe")
    assert read_key(file) != key
    assert key_file().parent == paths.data_dir()
