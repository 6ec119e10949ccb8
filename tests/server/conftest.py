"""One server for all tests here: an engine on a thread of its own, HTTP over a real socket. It has the tiny model of
`tests.backends.local.talking`, and in the matrix the embedded one too.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import openai
import pytest

from kvdesk.backends.local.engine import Engine
from kvdesk.host.host import Host
from kvdesk.protocol.cache import AuditCache, Audited, ContextReady
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.server.config import Key, Limits, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings, Sampling
from tests.backends.local.conftest import CHATTING
from tests.server.scripted import Calling, serving

KEY, INSPECT = Key("sk-test-plain-key", "plain"), Key("sk-test-inspect-key", "inspector", inspect=True)
SETTINGS = ContextSettings(n_ctx=1024, n_seq_max=4, n_batch=128, n_ubatch=64, n_threads=1, n_threads_batch=1)
WAIT_S = 60.0


@dataclass(frozen=True)
class Running:
    """An engine that runs, and servers on it."""

    host: Host
    server: Server

    @property
    def root(self) -> str:
        return self.server.url.removesuffix("/v1")

    def http(self, key: Key = KEY, **more: object) -> httpx.Client:
        """A client without any help. `more`: of httpx.Client."""
        options = {"base_url": self.root, "headers": {"authorization": f"Bearer {key.value}"}, "timeout": WAIT_S}
        return httpx.Client(**(options | more))  # type: ignore[arg-type]

    def openai(self, key: Key = KEY) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.server.url, api_key=key.value, timeout=WAIT_S, max_retries=0)

    def answered(self, command: AuditCache) -> Audited:
        """Ask the engine itself."""
        found: list[Audited] = []
        there = threading.Event()

        def take() -> None:
            for event in subscription.take():
                if isinstance(event, Audited):
                    found.append(event)
                    there.set()

        subscription = self.host.subscribe(take)
        self.host.submit(command)
        assert there.wait(WAIT_S)
        subscription.close()
        return found[0]


def metrics_of(http: httpx.Client) -> dict[str, float]:
    """What `/metrics` says, by name and labels."""
    lines = http.get("/metrics").raise_for_status().text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def raw_request(path: str, body: object) -> bytes:
    """A request with the key, for a socket."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY.value}\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@pytest.fixture(scope="session", params=CHATTING)
def engine(request: pytest.FixtureRequest, talking_file: Path, model_file: Path) -> Iterator[Host]:
    """A model, running."""
    yield from opened(talking_file if request.param == "tiny" else model_file, SETTINGS)


def opened(model: Path, settings: ContextSettings) -> Iterator[Host]:
    """The model with a context, until the end: for fixtures."""
    ready = threading.Event()

    def take() -> None:
        events: list[Event] = subscription.take()
        if any(isinstance(event, ContextReady) for event in events):
            ready.set()

    host = Host(Engine)
    subscription = host.subscribe(take)
    thread = threading.Thread(target=host.run, name="test-engine")
    thread.start()
    host.submit(LoadModel(LocalFile(model), settings))
    assert ready.wait(WAIT_S)
    subscription.close()
    yield host
    host.shut_down()
    thread.join()


@contextmanager
def served(host: Host, **config: Any) -> Iterator[Running]:
    """A server on any port. `config`: of ServerConfig."""
    config.setdefault("keys", (KEY, INSPECT))
    config.setdefault("limits", Limits(rate=1e6, burst=1_000_000))
    server = Server(host, ServerConfig(**({"port": 0} | config)), Sampling(temperature=0.0))
    server.start()
    try:
        yield Running(host, server)
    finally:
        server.close()


@pytest.fixture(scope="session")
def running(engine: Host) -> Iterator[Running]:
    limits = Limits(rate=1e6, burst=1_000_000, header_s=1.0, body_bytes=200_000)
    with served(engine, limits=limits) as found:
        yield found


@pytest.fixture(scope="session")
def http(running: Running) -> Iterator[httpx.Client]:
    with running.http() as client:
        yield client


@pytest.fixture(scope="session")
def inspector(running: Running) -> Iterator[httpx.Client]:
    with running.http(INSPECT) as client:
        yield client


@pytest.fixture(scope="session")
def client(running: Running) -> Iterator[openai.OpenAI]:
    with running.openai() as made:
        yield made


@pytest.fixture(scope="module")
def script() -> Iterator[tuple[Calling, Server]]:
    with serving() as found:
        yield found


@pytest.fixture
def scripted_server(script: tuple[Calling, Server]) -> tuple[Calling, Server]:
    """One that was asked nothing yet, and answers as `Calling` does."""
    script[0].begin()
    return script


@pytest.fixture
def backend(scripted_server: tuple[Calling, Server]) -> Calling:
    """Of `scripted`: what it answers, and what it was asked."""
    return scripted_server[0]


@pytest.fixture
def scripted(scripted_server: tuple[Calling, Server]) -> Iterator[openai.OpenAI]:
    """A client of a server whose answers are given."""
    with openai.OpenAI(base_url=scripted_server[1].url, api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture
def scripted_http(scripted_server: tuple[Calling, Server]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{scripted_server[1].url}/", timeout=WAIT_S) as made:
        yield made
