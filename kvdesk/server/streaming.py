"""Responses that a client may leave: the work ends within one step of the engine, whether it waits, reads or writes."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from kvdesk.server.errors import ApiError

_log = logging.getLogger(__name__)
_STREAM_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}
UNEXPECTED: Final = ApiError(500, "Something unexpected went wrong; the log says more.")
DONE: Final = b"data: [DONE]\n\n"
ALIVE: Final = b": the answer is coming\n\n"
"""A comment of server-sent events, which clients ignore."""
ALIVE_S: Final = 15.0
"""After so long without an event a stream shows that it is alive: clients and proxies end silent ones, Node's fetch
after 300 s."""


def sse(value: Mapping[str, Any]) -> bytes:
    """One server-sent event, named by the `type` of its value where that has one."""
    name = f"event: {value['type']}\n" if "type" in value else ""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{name}data: {data}\n\n".encode("utf-8", "replace")


class Framing(NamedTuple):
    """How the parts of a stream are written."""

    media_type: str
    write: Callable[[Mapping[str, Any]], bytes]


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


EVENTS: Final = Framing("text/event-stream", sse)
LINES: Final = Framing("application/x-ndjson", _line)


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The body of a request. Raises ApiError if it is too long, or comes too slowly."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_long(most)
    parts, n = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                n += len(part)
                if n > most:
                    raise _too_long(most)
                parts.append(part)
    except TimeoutError:
        raise ApiError(408, f"The body did not come within {seconds:g} seconds.") from None
    return b"".join(parts)


def _too_long(most: int) -> ApiError:
    return ApiError(413, f"The body is longer than {most:,} bytes.", code="body_too_large")


class WholeResponse(Response):
    """JSON that is made while the client waits."""

    def __init__(self, work: Awaitable[Any]) -> None:
        self._work = work
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await until_gone(self._respond(scope, receive, send), receive)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response: Response = JSONResponse(await self._work)
        except ApiError as error:
            response = error.response(scope["path"])
        await response(scope, receive, send)


class _TakesNothing(Exception):
    """The client has taken nothing for as long as it may."""


class EventStream(Response):
    """Server-sent events, or parts in another `framing`. What fails before the first of them is an error of the
    request; later it is the last event. While none comes, `alive` is sent every `ALIVE_S`.

    write_s  so long a client may take nothing: then its work ends. The response is not complete: the connection is
             closed (`http_protocol`)
    failed   makes an error the last event
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        write_s: float,
        *,
        failed: Callable[[ApiError], Mapping[str, Any]] = ApiError.body,
        alive: bytes = ALIVE,
        framing: Framing = EVENTS,
    ) -> None:
        self._events, self._write_s, self._failed, self._alive = events, write_s, failed, alive
        self._framing = framing
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await until_gone(self._respond(scope, receive, send), receive)
        except _TakesNothing:
            _log.info("a client took nothing of its answer for %g seconds", self._write_s)
        finally:
            await self._events.aclose()

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        events = _alive(self._events, self._alive)
        try:
            first = await anext(events, b"")
        except ApiError as error:
            await error.response(scope["path"])(scope, receive, send)
            return
        head = Response(headers=_STREAM_HEADERS, media_type=self._framing.media_type)
        headers = [pair for pair in head.raw_headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send(send, first)
        try:
            async for part in events:
                await self._send(send, part)
        except _TakesNothing:
            raise
        except ApiError as error:
            await self._send(send, self._framing.write(self._failed(error)))
        except Exception:  # noqa: BLE001 - the edge of the server: its client must hear of it
            _log.exception("a stream failed")
            await self._send(send, self._framing.write(self._failed(UNEXPECTED)))
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, part: bytes, *, more: bool = True) -> None:
        try:
            async with asyncio.timeout(self._write_s):
                await send({"type": "http.response.body", "body": part, "more_body": more})
        except TimeoutError:
            raise _TakesNothing from None


async def _alive(events: AsyncGenerator[bytes, None], alive: bytes) -> AsyncGenerator[bytes, None]:
    """The events, and `alive` if none comes for long. Raises what they raise."""
    while True:
        coming = asyncio.ensure_future(anext(events, None))
        try:
            while not (await asyncio.wait({coming}, timeout=ALIVE_S))[0]:
                yield alive
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        part = coming.result()
        if part is None:
            return
        yield part


async def until_gone(work: Awaitable[None], receive: Receive) -> None:
    """Do the work as long as the client is there. Raises what the work raises."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
    if not working.cancelled() and (error := working.exception()) is not None:
        raise error


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
