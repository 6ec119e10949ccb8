"""One server for all tests here: an engine on a thread of its own, HTTP over a real socket. It has the tiny model of
`tests.backends.local.talking`, and in the matrix the embedded one too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


@pytest.fixture(scope="session")
def running(engine: Host) -> Iterator[Running]:
    limits = Limits(rate=1e6, burst=1_000_000, header_s=1.0, body_bytes=200_000)
    config = ServerConfig(port=0, keys=(KEY, INSPECT), limits=limits)
    server = Server(engine, config, Sampling(temperature=0.0))
    server.start()
    yield Running(engine, server)
    server.close()


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
