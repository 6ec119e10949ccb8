"""Servers in processes of their own: `kvdesk serve`, and an unmodified llama-server beside it.

KVDESK_LLAMA_SERVER=…/llama-server   where that is: not here
KVDESK_TOOL_MODEL=….gguf             a model that calls tools and copies a name, such as Qwen2.5 1.5B: not here
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import httpx2 as httpx
import pytest

from tests.places import ROOT, free_port

LLAMA_SERVER: Final = os.environ.get("KVDESK_LLAMA_SERVER", "")
needs_llama_server: Final = pytest.mark.skipif(
    not LLAMA_SERVER, reason="KVDESK_LLAMA_SERVER is where a llama-server is"
)
TOOL_MODEL: Final = os.environ.get("KVDESK_TOOL_MODEL", "")
needs_tool_model: Final = pytest.mark.skipif(
    not TOOL_MODEL, reason="KVDESK_TOOL_MODEL is where a model is that calls tools"
)
BEGINS_S: Final = 120.0
WAIT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs: `url` ends with /v1, `http` asks without any help."""

    url: str
    http: httpx.Client
    pid: int


@contextmanager
def kvdesk_serve(model: Path, home: Path, *options: str) -> Iterator[Served]:
    """`kvdesk serve` with the model, on any port; its settings are in `home`."""
    command = [sys.executable, "-m", "kvdesk", "serve", "--model", str(model), "--port", "0", *options]
    environment = {**os.environ, "KVDESK_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            url = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=url.removesuffix("/v1"), timeout=WAIT_S) as http:
                yield Served(url, http, process.pid)
        finally:
            process.terminate()


@contextmanager
def llama_server(
    model: Path, *options: str, environment: Mapping[str, str] | None = None, log: IO[bytes] | None = None
) -> Iterator[httpx.Client]:
    """One that runs, with these variables besides, whose output is added to `log`."""
    port = str(free_port())
    command = [LLAMA_SERVER, "-m", str(model), "--jinja", "--port", port, "-t", "2", "--no-ui"]
    command += options or ["-c", "1024", "-np", "1"]
    with (
        subprocess.Popen(
            command,
            stdout=log or subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S) as http,
    ):
        try:
            over = time.monotonic() + BEGINS_S
            while True:
                try:
                    if http.get("/health").status_code == 200:
                        break
                except httpx.TransportError:  # it does not listen yet
                    pass
                assert process.poll() is None, "llama-server ended"
                assert time.monotonic() < over, "llama-server did not begin"
                time.sleep(0.1)
            yield http
        finally:
            process.kill()
