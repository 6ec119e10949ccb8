"""The pipes of a local server as the streams that `mcp` reads and writes. Imports `mcp`: half a second."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from mcp import types
from mcp.client import Transport
from mcp.shared.message import SessionMessage

from kvdesk.children.process import Child, child_command
from kvdesk.codec import encode
from kvdesk.tools.server_child import FLAG, MOST_LINE, Start
from kvdesk.translation import tr

MOST_AT_ONCE: Final = 1000
"""Messages of a server, and so many a second for good: no call has so many parts, and they would heat the processor."""
_A_SECOND: Final = 50.0
_CLOSING_S: Final = 2.0
"""From the end of its input to its end."""

Streams = tuple[
    "anyio.streams.memory.MemoryObjectReceiveStream[SessionMessage | Exception]",
    "anyio.streams.memory.MemoryObjectSendStream[SessionMessage]",
]


class LocalServer:
    """One local server. heard: called with the method of each request and notification of the server.

    ended             it has ended by itself; sentence, detail: why, and its last words
    """

    def __init__(self, start: Start, heard: Callable[[str], None]) -> None:
        self._start, self._heard = start, heard
        self.ended = asyncio.Event()
        self._is_closing = False
        self.sentence = self.detail = ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Starts it, and ends it behind the block. Raises OSError."""
        loop = asyncio.get_running_loop()
        child = await _started()
        child.send(encode(self._start))
        to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](0)

        async def deliver(line: bytes) -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                if (message := self._message(line)) is not None:
                    await to_client.send(message)

        def read() -> None:
            for line in self._paced(child):
                try:
                    asyncio.run_coroutine_threadsafe(deliver(line), loop).result()
                except (RuntimeError, asyncio.CancelledError):  # the loop has ended
                    return
            if self._is_closing:
                return
            self.detail = self.detail or child.ending()
            with suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(self._end(to_client), loop)

        async def write() -> None:
            async for one in from_client:
                child.send(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        reader = threading.Thread(target=read, name="kvdesk-tool-server", daemon=True)
        reader.start()
        writer = asyncio.create_task(write())
        try:
            yield incoming, outgoing
        finally:
            self._is_closing = True
            writer.cancel()
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await asyncio.to_thread(_close, child, reader)
                to_client.close()
                from_client.close()

    async def _end(self, to_client: anyio.streams.memory.MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        to_client.close()
        self.ended.set()

    def _paced(self, child: Child) -> Iterator[bytes]:
        """Its messages, until it ends or sends too many."""
        left, at = float(MOST_AT_ONCE), time.monotonic()
        for line in child.messages():
            now = time.monotonic()
            left, at = min(MOST_AT_ONCE, left + _A_SECOND * (now - at)) - 1, now
            if left < 0:
                self.sentence = tr("It sent messages without end, and was ended.")
                self.detail = child.last_words
                child.kill()
                return
            yield line

    def _message(self, line: bytes) -> SessionMessage | None:
        """None for what is no message."""
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return None
        if isinstance(method := getattr(message, "method", None), str):
            self._heard(method)
        return SessionMessage(message)


def _close(child: Child, reader: threading.Thread) -> None:
    """Close its input, upon which it ends; kill it where it does not. The thread that reads it ends first: it waits for
    the end of the output, which `Child.close` would take from it.
    """
    child.send(b"")
    reader.join(_CLOSING_S)
    child.kill()
    reader.join(_CLOSING_S)
    child.close()


async def _started() -> Child:
    """The process between. One that is not wanted any more when it has started is ended. Raises OSError."""
    start = asyncio.create_task(asyncio.to_thread(lambda: Child(child_command(FLAG), max_message_bytes=MOST_LINE + 1)))
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        await asyncio.to_thread((await start).close)
        raise


def transport(server: LocalServer) -> Transport:
    """As `mcp.client.Client` takes it."""
    return server.streams()
