"""What the gate refuses before a request is read; the rest is in test_http.py, over real connections."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from kvdesk.server.config import Key, Limits, ServerConfig
from kvdesk.server.transport.gate import Gate
from kvdesk.values import replace


def test_more_requests_than_are_answered_at_once_are_refused_in_the_protocols_form() -> None:
    """uvicorn's own refusal is plain text, which no client of the protocol can read."""
    assert asyncio.run(_asked(3, at_once=2)) == [200, 200, (503, "overloaded")]
    assert asyncio.run(_asked(3, at_once=3)) == [200, 200, 200]


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://evil.example"])
@pytest.mark.parametrize(("method", "status"), [("OPTIONS", 200), ("GET", 401)])
def test_a_page_that_may_ask_can_read_why_it_was_refused(origin: str, method: str, status: int) -> None:
    """Without the header a browser tells the page of a network error, whatever the answer says."""
    config = ServerConfig(port=0, keys=(Key("sk-a-key-that-is-needed"),), origins=("http://localhost:3000",))
    sent = asyncio.run(_sent(Gate(_nobody, config), method, (b"origin", origin.encode())))
    headers = dict(sent[0]["headers"])
    assert b"Content-Length" in headers, "simple clients look for the usual spelling"
    if "evil" in origin:
        assert (sent[0]["status"], headers.get(b"Access-Control-Allow-Origin")) == (403, None)
    else:
        assert (sent[0]["status"], headers[b"Access-Control-Allow-Origin"]) == (status, origin.encode())


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        *((origin, True) for origin in ("http://localhost", "https://127.0.0.1:3000", "http://[::1]:80")),
        *((origin, False) for origin in ("http://localhost.evil.com", "http://notlocalhost", "http://localhost:1x")),
    ],
)
def test_all_pages_of_this_computer_may_be_allowed(origin: str, allowed: bool) -> None:
    sent = asyncio.run(
        _sent(Gate(_nobody, ServerConfig(port=0, origins=("localhost",))), "OPTIONS", (b"origin", origin.encode()))
    )
    assert (sent[0]["status"], (b"Access-Control-Allow-Credentials", b"true") in sent[0]["headers"]) == (
        (200, True) if allowed else (403, False)
    )


async def _nobody(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError("no request gets here")


async def _asked(n: int, at_once: int) -> list[Any]:
    """The status of so many requests at once, with its code where it is an error; then of one more, which must pass."""
    go_on = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(app, replace(ServerConfig(port=0), limits=Limits(connections=at_once)))
    running = [asyncio.create_task(_status(gate)) for _ in range(n)]
    await asyncio.sleep(0)
    go_on.set()
    found = [await task for task in running]
    assert await _status(gate) == 200
    return found


async def _status(gate: Gate) -> Any:
    sent = await _sent(gate)
    status = sent[0]["status"]
    return status if status == 200 else (status, json.loads(sent[1]["body"])["error"]["code"])


async def _sent(gate: Gate, method: str = "GET", *more: tuple[bytes, bytes]) -> list[Message]:
    """The parts of the answer. `more`: headers of the request."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": method, "path": "/v1/models", "headers": [(b"host", b"127.0.0.1"), *more]}
    await gate(scope | {"client": ("127.0.0.1", 1)}, receive, send)
    return sent
