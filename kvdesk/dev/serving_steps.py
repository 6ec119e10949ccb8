"""Steps of the tour: other programs ask over HTTP, and a server is looked at before it is connected."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Final

import httpx2
from PySide6.QtWidgets import QWidget

from kvdesk.ui.models.connect_dialog import ConnectDialog
from kvdesk.ui.server.dialog import ServerDialog
from kvdesk.ui.shell.main_window import MainWindow

SYSTEM: Final = "It is {}. You are the assistant of a small library by the sea, and you answer in one short sentence."
ASKED: Final = (
    ("editor/2.1", "14:03", "Which book tells of whales?"),
    ("editor/2.1", "14:04", "Which book tells of whales?"),
    ("agent/0.9", "14:04", "Who wrote it?"),
)
"""(program, time in its system prompt, question): the second has lost its prefix to the clock."""

Condition = Callable[[], bool]
Picture = Callable[[str, QWidget], Iterator[Condition]]


def serving(window: MainWindow, picture: Picture) -> Iterator[Condition]:
    """Serve, let programs ask, look at the server as another kvdesk would, and serve nobody any more."""
    made: list[ServerDialog] = []
    window.server_dialog_made.connect(made.append)
    window.action_set.run("app.serve")
    (dialog,) = made
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    dialog.port.setValue(port)
    dialog.inspects.setChecked(True)  # so that another kvdesk sees the cells
    dialog.serve.click()
    yield lambda: bool(dialog.address)
    programs = Thread(target=_ask, args=(dialog.address, dialog.key_field.text()), name="kvdesk-programs")
    programs.start()
    yield lambda: dialog.requests.table.model().rowCount() == len(ASKED) and not programs.is_alive()
    dialog.requests.table.selectRow(1)
    yield from picture("serving", dialog)
    window.action_set.run("model.server")
    connect = window.findChild(ConnectDialog)
    assert connect is not None
    connect.url.setText(dialog.address)
    connect.url.textEdited.emit(dialog.address)
    connect.key.setText(dialog.key_field.text())
    connect.test_button.click()
    yield lambda: connect.model.count() > 0
    yield from picture("connect", connect)
    connect.close()
    dialog.serve.click()
    yield lambda: not dialog.address
    dialog.close()


def _ask(address: str, key: str) -> None:
    """As those programs would, one after another."""
    with httpx2.Client(base_url=address, trust_env=False, timeout=60) as client:
        for program, now, question in ASKED:
            roles = {"system": SYSTEM.format(now), "user": question}
            body = {
                "messages": [{"role": role, "content": text} for role, text in roles.items()],
                "max_tokens": 16,
                "temperature": 0.0,
            }
            headers = {"authorization": f"Bearer {key}", "user-agent": program}
            client.post("/chat/completions", json=body, headers=headers).raise_for_status()
