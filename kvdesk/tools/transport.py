"""The pipes of a local server as streams for `mcp`. Imports `mcp`, which takes half a second."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from mcp.shared.message import SessionMessage

from kvdesk.children.process import Child, child_command
from kvdesk.codec import encode
from kvdesk.tools.inbound import Inbound, Received, parsed
from kvdesk.tools.server_child import FLAG, MOST_LINE, Start

_CLOSING_S: Final = 2.0
"""From the end of its input to its exit."""

Streams = tuple[
    "anyio.streams.memory.MemoryObjectReceiveStream[Received]",
    "anyio.streams.memory.MemoryObjectSendStream[SessionMessage]",
]


class LocalServer(Inbound):
    """One local server."""

    def __init__(self, start: Start, heard: Callable[[str], None]) -> None:
        super().__init__(heard)
        self._start = start
        self._is_closing = False

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Start the server, and end it after the block. Raises OSError."""
        loop = asyncio.get_running_loop()
        child = await _started()
        child.send(encode(self._start))
        to_client, incoming = anyio.create_memory_object_stream[Received](0)
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

    def _paced(self, child: Child) -> Iterator[bytes]:
        """Its messages, until it ends or sends too many."""
        for line in child.messages():
            if not self._counts():
                self.detail = child.last_words
                child.kill()
                return
            yield line

    def _message(self, line: bytes) -> SessionMessage | None:
        """None if it is no valid message."""
        if (message := parsed(line)) is None:
            return None
        self._look(message)
        return SessionMessage(message)


def _close(child: Child, reader: threading.Thread) -> None:
    """Close its input, and kill it if it does not end then. The reading thread ends first: it waits for the end of the
    output, which `Child.close` would read instead.
    """
    child.send(b"")
    reader.join(_CLOSING_S)
    child.kill()
    reader.join(_CLOSING_S)
    child.close()


async def _started() -> Child:
    """The process between kvdesk and the server, ended if nobody waits for it any more. Raises OSError."""
    start = asyncio.create_task(asyncio.to_thread(lambda: Child(child_command(FLAG), max_message_bytes=MOST_LINE + 1)))
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        await asyncio.to_thread((await start).close)
        raise
