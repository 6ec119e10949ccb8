"""llama-cpp-python's own server as a peer, in a process of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.binding_server_child import CHILD, NAME
from tests.benchmarks.peers.peer import PeerFailed, wrote_with
from tests.benchmarks.peers.started_server import StartedServer, free_port

NEEDED = {
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
    "sse_starlette": "sse-starlette",
    "starlette_context": "starlette-context",
    "pydantic_settings": "pydantic-settings",
}
"""What it imports beside llama-cpp-python, and how it is installed."""


def missing() -> str:
    """Why it cannot be run, in a sentence; "" where it can."""
    absent = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    return f"{NAME} needs {', '.join(absent)}, not installed here." if absent else ""


class BindingServer(StartedServer):
    """See `Peer`. Requests wait for each other, as far as it lets them. Raises PeerFailed."""

    def __init__(self, path: Path, settings: ContextSettings) -> None:
        if why := missing():
            raise PeerFailed(why, gone=True)
        port = free_port()
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
        about = f"llama-cpp-python {engine_version().binding}, {path.name}"
        command = [sys.executable, "-m", CHILD, *parts]
        super().__init__(NAME, about, command, port, wrote_with(settings.decode_threads))
