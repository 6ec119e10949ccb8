"""Streams whose clients take nothing, or whose work fails, with a `send` of our own in the place of a socket."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import pytest
from starlette.types import Message

from kvdesk.server import streaming
from kvdesk.server.errors import ApiError
from kvdesk.server.streaming import ALIVE, UNEXPECTED, EventStream, sse

WRITE_S = 0.05


class Client:
    """Takes so many parts and then nothing more; it never goes away by itself."""

    def __init__(self, parts: int) -> None:
        self._left = parts
        self.taken: list[bytes] = []
        self.n_waits = 0  # so often something was to be sent that it did not take
        self.has_all = False

    async def send(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            return
        if not self._left:
            self.n_waits += 1
            await asyncio.Event().wait()
        self._left -= 1
        self.taken.append(message["body"])
        self.has_all = not message["more_body"]

    async def receive(self) -> Message:
        await asyncio.Event().wait()
        raise AssertionError


class Work:
    """Three parts of an answer. `error`: raised in the place of the third."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.is_over = False

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"1"
            yield b"2"
            if self._error is not None:
                raise self._error
            yield b"3"
        finally:
            self.is_over = True


def answered(client: Client, work: Work, failed: Callable[[ApiError], Mapping[str, Any]] = ApiError.body) -> None:
    stream = EventStream(work.parts(), WRITE_S, failed=failed)
    asyncio.run(asyncio.wait_for(stream({"type": "http"}, client.receive, client.send), 10.0))


@pytest.mark.parametrize("parts", [0, 1, 2, 3], ids=lambda n: f"after {n} parts")
def test_one_who_takes_nothing_is_waited_for_once(parts: int, caplog: pytest.LogCaptureFixture) -> None:
    client, work = Client(parts), Work()
    answered(client, work)
    assert (client.n_waits, len(client.taken), client.has_all) == (1, parts, False)
    assert work.is_over, "its place is free"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("failed", [ApiError.body, ApiError.anthropic_body])
def test_work_that_fails_is_told_to_its_client_as_its_protocol_has_it(
    failed: Callable[[ApiError], Mapping[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    client, work = Client(9), Work(TimeoutError("of the work, not of the client"))
    answered(client, work, failed)
    assert client.taken == [b"1", b"2", sse(failed(UNEXPECTED)), b""]
    assert client.taken[2].startswith(b"event: error\n" if failed is ApiError.anthropic_body else b"data: ")
    assert client.has_all
    assert "a stream failed" in caplog.text


@pytest.mark.parametrize("alive", [ALIVE, sse({"type": "ping"})])
def test_a_stream_that_waits_says_that_it_is_alive(monkeypatch: pytest.MonkeyPatch, alive: bytes) -> None:
    monkeypatch.setattr(streaming, "ALIVE_S", 0.001)
    waited = asyncio.Event()

    async def parts() -> AsyncGenerator[bytes, None]:
        await waited.wait()
        yield b"answer"

    class Watcher(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if self.taken.count(alive) == 2:
                waited.set()

    client = Watcher(99)
    stream = EventStream(parts(), WRITE_S, alive=alive)
    asyncio.run(asyncio.wait_for(stream({"type": "http"}, client.receive, client.send), 10.0))
    assert client.taken[:2] == [alive, alive]
    assert [part for part in client.taken if part != alive] == [b"answer", b""]
