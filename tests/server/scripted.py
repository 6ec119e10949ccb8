"""A server whose answers are given: what a model would have to be large for, calls of tools and reasoning."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvdesk.backends.base import Emit
from kvdesk.call_format import GENERIC
from kvdesk.host.host import Host
from kvdesk.protocol.chat import Generate, LoadModel, TurnStarted
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.reasoning import ReasoningMarks
from kvdesk.server.config import ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings
from kvdesk.values import replace
from tests.backends.scripted import ScriptedBackend

WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALLING = 'I look. <tool_call>\n{"name": "weather", "arguments": {"city": "Rom"}}\n</tool_call>'
THINKING = f"<think>They want to know.</think>{CALLING}"


class Calling(ScriptedBackend):
    """Calls the weather, and answers what a tool said."""

    def __init__(self, emit: Emit) -> None:
        def told(event: Event) -> None:
            if isinstance(event, TurnStarted):
                marks = ReasoningMarks("<think>", "</think>")
                event = replace(event, calls=GENERIC if self.calls else None, marks=marks)
            emit(event)

        super().__init__(told, lambda text: f"It is {text}" if text == "sunny" else self.text)
        self.begin()

    def begin(self) -> None:
        """Nothing was asked, and nothing else is to be answered."""
        self.calls, self.text = True, CALLING
        self.handled.clear()

    @property
    def asked(self) -> list[Generate]:
        return [command for command in self.handled if isinstance(command, Generate)]


@contextmanager
def serving() -> Iterator[tuple[Calling, Server]]:
    """The back end, and a server on it."""
    backends: list[Calling] = []

    def made(emit: Emit) -> Calling:
        backends.append(Calling(emit))
        return backends[-1]

    host = Host(made)
    host.submit(LoadModel(LocalFile(Path("/models/scripted.gguf")), ContextSettings()))
    host.run_until_idle()
    thread = threading.Thread(target=host.run)
    thread.start()
    server = Server(host, ServerConfig(port=0))
    server.start()
    yield backends[0], server
    server.close()
    host.shut_down()
    thread.join()
