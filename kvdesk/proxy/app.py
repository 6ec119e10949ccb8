"""Passes requests on to another server and its answers back, byte for byte, as an ASGI application.

What belongs to a connection (hop-by-hop headers) stays on it. Redirects are not followed, no cookie and no key is kept,
certificates are checked. A client that goes away ends its request there, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from kvdesk.protocol.servers import is_this_computer
from kvdesk.proxy.exchange import MOST_BODY, AnswerTap, Exchange
from kvdesk.server.errors import ApiError
from kvdesk.server.spans import PARENT
from kvdesk.server.streaming import until_gone

COMPARED: Final = (
    *("/chat/completions", "/completions", "/completion", "/responses", "/messages"),
    *("/api/chat", "/api/generate"),  # Ollama's own
)
"""Ends of the paths whose requests are compared."""
CONNECT_S: Final = 10.0
WRITE_S: Final = 600.0
"""So long the server may take nothing of a request. How long it says nothing has no limit: its client has one."""
_OF_A_CONNECTION: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
_OF_THIS_SERVER: Final = frozenset({b"host", b"expect"})
_SESSION: Final = ("session_id", "x-session-id", "x-claude-code-session-id", "conversation_id")
_Pairs = Sequence[tuple[bytes, bytes]]


class Proxy:
    """`url`: of the server, without /v1; `tell` gets each request whose prompt can be compared, when it has ended."""

    def __init__(self, url: str, tell: Callable[[Exchange], None]) -> None:
        self._url, self._tell = httpx2.URL(url), tell
        self._secret = secrets.token_bytes(16)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_S, write=WRITE_S),
            limits=httpx2.Limits(max_connections=None),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=not is_this_computer(url),
        )

    async def close(self) -> None:
        """End all connections to the server."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_compared = scope["method"] == "POST" and scope["path"].endswith(COMPARED)
        passing = _Passing(receive, MOST_BODY if is_compared else 0)
        headers = Headers(scope=scope)
        parent = {name: headers[name] for name in PARENT if name in headers}
        exchange = Exchange(scope["path"], self._client_of(headers), None, parent=parent)
        try:
            await until_gone(self._pass_on(scope, passing, send, exchange), passing.receive)
        except ApiError as error:
            await error.response(scope["path"])(scope, receive, send)
        if is_compared and exchange.status:
            exchange.body = passing.body
            self._tell(exchange)

    async def _pass_on(self, scope: Scope, passing: _Passing, send: Send, exchange: Exchange) -> None:
        """Raises ApiError if the server cannot be asked."""
        started = time.perf_counter()
        answer = await self._asked(scope, passing)
        try:
            kind, encoding = answer.headers.get("content-type", ""), answer.headers.get("content-encoding", "")
            tap = AnswerTap(kind, encoding)
            exchange.status, exchange.is_stream = answer.status_code, tap.is_stream
            headers = _kept([(name.lower(), value) for name, value in answer.headers.raw])
            await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
            async for chunk in answer.aiter_raw():
                exchange.first_byte_s = exchange.first_byte_s or time.perf_counter() - started
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                tap.feed(chunk)
                exchange.usage = tap.usage
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tap.close()
            exchange.usage, exchange.ended = tap.usage, True
        except httpx2.HTTPError:  # the answer is not complete: the connection is closed, and its client sees that
            return
        finally:
            await answer.aclose()

    async def _asked(self, scope: Scope, passing: _Passing) -> httpx2.Response:
        """The answer, of which the head has come. Raises ApiError."""
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        if not target.startswith(b"/"):
            raise ApiError(400, "The target of a request is a path.", code="invalid_target")
        pairs = [(name, value) for name, value in scope["headers"] if name not in _OF_THIS_SERVER]
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in pairs)
        request = httpx2.Request(
            scope["method"],
            self._url.copy_with(raw_path=self._url.raw_path.rstrip(b"/") + target),
            headers=_kept(pairs),
            content=passing.chunks() if has_body else None,
        )
        try:
            return await self._client.send(request, stream=True, follow_redirects=False)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            said = f"The server at {self._url} does not answer: {str(error) or type(error).__name__}"
            raise ApiError(502, said, code="upstream_unreachable") from error

    def _client_of(self, headers: Headers) -> bytes:
        """By which requests belong to one client, from which no key can be found."""
        names = ("user-agent", "authorization", "x-api-key", *_SESSION)
        found = "\n".join(headers.get(name, "") for name in names)
        return hashlib.blake2b(found.encode("utf-8", "replace"), key=self._secret, digest_size=16).digest()


class _Passing:
    """The body of a request on its way, of which up to `most` bytes are kept."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most = receive, most
        self._coming: asyncio.Queue[Message] = asyncio.Queue(1)
        self._kept = bytearray()
        self._is_whole = most > 0

    @property
    def body(self) -> bytes | None:
        """What was kept; None if it was longer."""
        return bytes(self._kept) if self._is_whole else None

    async def receive(self) -> Message:
        """The next message, which `chunks` gets too. It waits until that has taken the one before."""
        message = await self._receive()
        if message["type"] == "http.request":
            await self._coming.put(message)
        return message

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        more = True
        while more:
            message = await self._coming.get()
            chunk, more = message.get("body", b""), message.get("more_body", False)
            self._is_whole = self._is_whole and len(self._kept) + len(chunk) <= self._most
            if self._is_whole:
                self._kept += chunk
            else:
                self._kept.clear()
            if chunk:
                yield chunk


def _kept(pairs: _Pairs) -> list[tuple[bytes, bytes]]:
    """Without the headers that belong to a connection, also those that `Connection` lists."""
    listed = {
        word.strip().lower() for name, value in pairs if name == b"connection" for word in value.split(b",")
    } | _OF_A_CONNECTION
    return [(name, value) for name, value in pairs if name not in listed]
