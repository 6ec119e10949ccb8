"""llama-cpp-python's own server as a peer, in a process of its own."""

from __future__ import annotations

import importlib.util
import socket
import sys
import time
from pathlib import Path

from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.children.process import Child
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.binding_server_child import CHILD, NAME
from tests.benchmarks.peers.peer import PeerFailed, wrote_with
from tests.benchmarks.peers.server import ServerPeer

NEEDED = {
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
    "sse_starlette": "sse-starlette",
    "starlette_context": "starlette-context",
    "pydantic_settings": "pydantic-settings",
}
"""What it imports beside llama-cpp-python, and how it is installed."""
READY_S = 120.0


def missing() -> str:
    """Why it cannot be run, in a sentence; "" where it can."""
    absent = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    return f"{NAME} needs {', '.join(absent)}, not installed here." if absent else ""


class BindingServer(ServerPeer):
    """See `Peer`. Requests wait for each other, as far as it lets them. Raises PeerFailed."""

    no_restart = ""

    def __init__(self, path: Path, settings: ContextSettings) -> None:
        if why := missing():
            raise PeerFailed(why, gone=True)
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}", name=NAME)
        self.how = wrote_with(settings.decode_threads)
        options = {
            "model": path,
            "port": port,
            "n_ctx": settings.n_ctx,
            "n_batch": settings.n_batch,
            "n_ubatch": settings.graph_tokens,
            "n_threads": settings.decode_threads,
            "n_threads_batch": settings.n_threads_batch,
            "flash_attn": settings.flash_attn,
            "interrupt_requests": False,
            "verbose": False,
        }
        parts = (part for key, value in options.items() for part in (f"--{key}", str(value)))
        self._command = [sys.executable, "-m", CHILD, *parts]
        self._child: Child | None = None
        self._start()
        self.about = f"llama-cpp-python {engine_version().binding}, {path.name}"

    def restart(self) -> None:
        self._end()
        self._start()

    def close(self) -> None:
        super().close()
        self._end()

    def _start(self) -> None:
        try:
            self._child = Child(self._command, stdout="ignored")
        except OSError as error:
            raise PeerFailed(f"{NAME} cannot be started: {error.strerror or error}.", gone=True) from error
        began = time.monotonic()
        while True:
            try:
                self.check()
                return
            except PeerFailed as error:
                code = self._child.wait(0.0)
                if code is not None:
                    raise PeerFailed(f"{NAME} ended at once (exit code {code}).", gone=True) from error
                if time.monotonic() - began > READY_S:
                    self._end()
                    raise PeerFailed(f"{NAME} was not ready after {READY_S:.0f} s.", gone=True) from error
            time.sleep(0.1)

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def free_port() -> int:
    """One that nobody listens at now, on this computer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
