"""Steps of the tour: other programs ask over HTTP, and a server is looked at before it is connected."""

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Final

import httpx2
from PySide6.QtWidgets import QWidget

from kvdesk.settings import ServeSettings
from kvdesk.ui.shell.main_window import MainWindow
from tests.places import free_port

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
    page, settings = window.rooms.show_settings(), window.store.settings
    section, connect = page.serving, page.connecting
    settings.change(serve=ServeSettings(port=free_port(), inspect=True))  # so that another kvdesk sees the cells
    window.action_set.run("app.serve")
    section.serve.click()
    yield lambda: bool(section.address)
    programs = Thread(target=_ask, args=(section.address, section.key_field.text()), name="kvdesk-programs")
    programs.start()
    yield lambda: section.requests.table.model().rowCount() == len(ASKED) and not programs.is_alive()
    section.requests.table.selectRow(1)
    yield from picture("serving", window)
    window.action_set.run("model.server")
    connect.url.setText(section.address)
    connect.url.textEdited.emit(section.address)
    connect.key.setText(section.key_field.text())
    connect.test_button.click()
    yield lambda: connect.model.count() > 0
    yield from picture("connect", window)
    section.serve.click()
    yield lambda: not section.address
    window.rooms.show_chats()
    yield lambda: window.store.view is not None


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
