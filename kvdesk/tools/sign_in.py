"""Signing in to a server with an address (OAuth 2.1 of `mcp`), on a page in the browser that returns to a local port.
Tokens are stored like keys. Imports `mcp`, which takes half a second.
"""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from kvdesk.loose_json import object_in
from kvdesk.tools.servers import Keys, ToolServerError, tokens_of
from kvdesk.translation import tr

_PATH: Final = "/signed-in"
_MOST_BYTES: Final = 1 << 16
_READ_S: Final = 10.0
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


async def signing_in(stack: AsyncExitStack, url: str, keys: Keys, ask: Callable[[str], None]) -> OAuthClientProvider:
    """The object that signs requests to the server. ask: called with the address of the sign-in page when it is needed.
    Raises OSError if no port is free.
    """
    tokens = _Tokens(url, keys)
    stack.push_async_callback(tokens.close)
    await tokens.read()
    door = _Door(tokens.port, ask)
    stack.push_async_callback(door.close)
    metadata = OAuthClientMetadata(
        client_name="kvdesk", redirect_uris=[AnyUrl(door.address)], token_endpoint_auth_method="none"
    )
    return OAuthClientProvider(url, metadata, tokens, door.open, door.answer)


class _Tokens:
    """Implements `mcp.client.auth.TokenStorage`: the tokens for one server, and kvdesk's registration there."""

    def __init__(self, url: str, keys: Keys) -> None:
        self._name, self._keys = tokens_of(url), keys
        self._found: dict[str, Any] = {}
        self._keeping: asyncio.Task[str] | None = None

    async def close(self) -> None:
        """Wait for what is being kept, so that nothing is written once the server has ended."""
        if self._keeping is not None:
            await asyncio.wait([self._keeping])

    async def read(self) -> None:
        self._found = object_in(await asyncio.to_thread(self._keys.get, self._name))

    @property
    def port(self) -> int:
        """The port in the address that kvdesk registered; 0 if it is not registered."""
        client = self._client()
        return (client.redirect_uris[0].port or 0) if client is not None and client.redirect_uris else 0

    async def get_tokens(self) -> OAuthToken | None:
        """Expired tokens come without `access_token`, so that they are refreshed before use."""
        try:
            tokens = OAuthToken.model_validate(self._found.get("tokens"))
        except ValidationError:
            return None
        over = self._found.get("over")
        is_over = isinstance(over, int | float) and time.time() >= over
        return tokens.model_copy(update={"access_token": ""}) if is_over else tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        over = time.time() + tokens.expires_in if tokens.expires_in else None
        await self._keep(tokens=tokens.model_dump(exclude_none=True), over=over)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._keep(client=client_info.model_dump(mode="json", exclude_none=True))

    def _client(self) -> OAuthClientInformationFull | None:
        try:
            return OAuthClientInformationFull.model_validate(self._found.get("client"))
        except ValidationError:
            return None

    async def _keep(self, **what: Any) -> None:
        self._found |= what
        text = json.dumps(self._found)
        self._keeping = asyncio.create_task(asyncio.to_thread(self._keys.keep, self._name, text))
        await asyncio.shield(self._keeping)


class _Door:
    """A local port to which the browser returns. It listens only while a person signs in."""

    def __init__(self, port: int, ask: Callable[[str], None]) -> None:
        self._ask = ask
        self._socket = _bound(port)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}{_PATH}"
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] | None = None
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> None:
        """Open the sign-in page. Raises ToolServerError if the address is not safe to open."""
        parts = urlsplit(address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
            raise ToolServerError(
                tr("It wants you to sign in at an address without https, which kvdesk does not open.")
            )
        self._state = parse_qs(parts.query).get("state", [""])[0]
        self._answer = asyncio.get_running_loop().create_future()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_MOST_BYTES)
        self._ask(address)

    async def answer(self) -> AuthorizationCodeResult:
        """Wait until the person has signed in. Raises ToolServerError if that was refused."""
        assert self._answer is not None
        return await self._answer

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_READ_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, said = self._take(head.partition(" ")[2].partition(" ")[0])
            body = f"<!doctype html><meta charset=utf-8><title>kvdesk</title><p>{said}".encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    def _take(self, target: str) -> tuple[str, str]:
        """Status and sentence for the browser. Another `state` does not come from the page that was opened."""
        parts = urlsplit(target)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != _PATH or not self._state or given.get("state") != self._state:
            return "404 Not Found", tr("There is nothing here.")
        if self._answer is not None and not self._answer.done():
            if code := given.get("code"):
                self._answer.set_result(AuthorizationCodeResult(code=code, state=self._state, iss=given.get("iss")))
            else:
                self._answer.set_exception(ToolServerError(tr("You were not signed in.")))
        return "200 OK", tr("You can close this page and return to kvdesk.")


def _bound(port: int) -> socket.socket:
    """A socket bound to this port, or to any free one if it is taken."""
    found = socket.socket()
    try:
        found.bind(("127.0.0.1", port))
    except OSError:
        if not port:
            raise
        found.bind(("127.0.0.1", 0))
    return found
