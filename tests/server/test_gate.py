"""What the gate refuses before a request is read; the rest is in test_http.py, over real connections."""

import asyncio
import json
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from kvdesk.server.config import Limits, ServerConfig
from kvdesk.server.transport.gate import Gate
from kvdesk.values import replace


def test_more_requests_than_are_answered_at_once_are_refused_in_the_protocols_form() -> None:
    """uvicorn's own refusal is plain text, which no client of the protocol can read."""
    assert asyncio.run(_asked(3, at_once=2)) == [200, 200, (503, "overloaded")]
    assert asyncio.run(_asked(3, at_once=3)) == [200, 200, 200]


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
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": [(b"host", b"127.0.0.1")]}
    await gate(scope | {"client": ("127.0.0.1", 1)}, receive, send)
    status = sent[0]["status"]
    return status if status == 200 else (status, json.loads(sent[1]["body"])["error"]["code"])
