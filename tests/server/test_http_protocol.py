"""Connections whose clients take nothing, on a real socket."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from kvdesk.server.streaming import EventStream
from kvdesk.server.transport.http_protocol import with_limits

WRITE_S = 0.1


async def endless() -> AsyncGenerator[bytes, None]:
    while True:
        yield bytes(1 << 16)


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    await EventStream(endless(), WRITE_S)(scope, receive, send)


async def is_cut_off() -> bool:
    """Whether the connection of a client that takes nothing is lost, once its time is over."""
    lost = asyncio.Event()

    class Told(with_limits(5.0, WRITE_S)):  # type: ignore[misc]
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(stream, http=Told, ws="none", lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    _, writer = await asyncio.open_connection(*listening.getsockname(), limit=1)
    writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
    try:
        await asyncio.wait_for(lost.wait(), 10.0)
    except TimeoutError:
        return False
    finally:
        writer.transport.abort()
        server.should_exit = server.force_exit = True
        await serving
    return True


def test_one_who_takes_nothing_is_cut_off() -> None:
    assert asyncio.run(is_cut_off())


class Transport:
    """Holds bytes that its client takes; `n_aborts`: so often it was cut off."""

    def __init__(self, n_left: int) -> None:
        self.n_left, self.n_aborts = n_left, 0

    def get_write_buffer_size(self) -> int:
        return self.n_left

    def abort(self) -> None:
        self.n_aborts += 1


class Loop:
    """Keeps what is to be called later, to be called by hand."""

    def __init__(self) -> None:
        self.later: list[Callable[[], object]] = []

    def call_later(self, _seconds: float, what: Callable[..., object], *args: object) -> None:
        self.later.append(lambda: what(*args))


def test_one_who_takes_something_is_not() -> None:
    kind = with_limits(5.0, WRITE_S)
    protocol = kind.__new__(kind)  # without a server
    transport, loop = Transport(1000), Loop()
    protocol.transport, protocol.loop = transport, loop  # type: ignore[assignment]
    protocol.flow = FlowControl(transport)  # type: ignore[arg-type]
    protocol.pause_writing()
    for n_left in (600, 100):
        transport.n_left = n_left
        loop.later.pop()()
    assert transport.n_aborts == 0
    loop.later.pop()()
    assert transport.n_aborts == 1, "now it takes nothing"
