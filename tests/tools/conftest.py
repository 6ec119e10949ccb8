"""The client with real servers as children."""

import queue
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from kvdesk.settings import ToolServer
from kvdesk.tools.client import ToolClients
from kvdesk.tools.servers import CallEnded, ServerState, ToolEvent, ToolsListed

SERVER = Path(__file__).with_name("server.py")
PATIENCE_S = 60.0


def local(name: str = "test", file: str = SERVER.name) -> ToolServer:
    return ToolServer(name=name, command=sys.executable, args=(str(SERVER.with_name(file)),))


def old(how: str = "") -> ToolServer:
    return ToolServer(name="test", command=sys.executable, args=(str(SERVER.with_name("old_server.py")), how))


class Kept:
    """Secrets in memory."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, name: str) -> str:
        return self._texts.get(name, "")

    def keep(self, name: str, text: str) -> str:
        self._texts[name] = text
        return ""


class Heard:
    """What came of the servers."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._events: queue.SimpleQueue[ToolEvent] = queue.SimpleQueue()
        self.clients = ToolClients(self._events.put, kept or Kept())
        self.states: list[ServerState] = []
        self._n = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clients.close()

    def next(self) -> ToolEvent:
        event = self._events.get(timeout=PATIENCE_S)
        if isinstance(event, ServerState):
            self.states.append(event)
        return event

    def until(self, *states: str) -> ServerState:
        """The next one of these states."""
        while not (isinstance(event := self.next(), ServerState) and event.state in states):
            pass
        return event

    def started(self, server: ToolServer, **values: str) -> ToolsListed:
        self.clients.start(server, values)
        while not isinstance(event := self.next(), ToolsListed):
            assert not isinstance(event, ServerState) or event.state == "starting", event
        assert self.until("on", "failed").state == "on"
        return event

    def call(
        self, tool: str, seconds: float = PATIENCE_S, most: int = 1000, server: str = "test", **arguments: object
    ) -> CallEnded:
        self._n += 1
        self.clients.call(self._n, server, tool, arguments, seconds, most)
        while not isinstance(event := self.next(), CallEnded):
            pass
        assert event.number == self._n
        return event


@pytest.fixture
def heard() -> Iterator[Heard]:
    with Heard() as found:
        yield found
