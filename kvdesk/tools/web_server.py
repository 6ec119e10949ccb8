"""A server with an address as streams for `mcp`. Imports `mcp`, which takes half a second."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.client.streamable_http import streamable_http_client

from kvdesk.protocol.servers import is_this_computer
from kvdesk.tools.inbound import Inbound, Received
from kvdesk.tools.server_child import MOST_LINE
from kvdesk.tools.servers import ToolServerError
from kvdesk.translation import marked, tr

_CONNECT_S: Final = 30.0
_NOT_COMPRESSED: Final = {"Accept-Encoding": "identity"}
"""A compressed body of one kilobyte can expand to a gigabyte."""
_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_STATUSES: Final = {
    401: marked("It needs a valid key in a header such as Authorization (401)."),
    403: marked("It does not allow that (403)."),
    404: marked("No tool server answers at this address (404)."),
    429: marked("It received too many requests (429)."),
}


class WebServer(Inbound):
    """One server with an address."""

    def __init__(
        self, url: str, headers: Mapping[str, str], heard: Callable[[str], None], auth: httpx2.Auth | None = None
    ) -> None:
        """auth: signs each request. Raises ToolServerError for headers that cannot be sent."""
        super().__init__(heard)
        self._url, self._headers, self._auth = url, _checked(headers), auth
        self._refusal = ""  # of its last answer

    def why(self, error: BaseException) -> str:
        if isinstance(error, OAuthRegistrationError):
            return tr("It wants you to sign in, and kvdesk cannot register itself there: give a key in a header.")
        if isinstance(error, OAuthFlowError):
            return tr("Signing in there failed.")
        return super().why(error) or ("" if isinstance(error, ToolServerError) else self._refusal)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Connects at the first message."""
        timeout = httpx2.Timeout(_CONNECT_S, read=None)  # a call may take as long as its own limit
        http = httpx2.AsyncClient(
            headers={**_NOT_COMPRESSED, **self._headers},
            auth=self._auth,
            timeout=timeout,
            event_hooks={"response": [self._on_response]},
            trust_env=not is_this_computer(self._url),  # a proxy of the environment would look for it on its own
        )
        to_client, incoming = anyio.create_memory_object_stream[Received](0)
        async with (
            http,
            streamable_http_client(self._url, http_client=http, max_sse_event_size=MOST_LINE) as (read, write),
            to_client,
            incoming,
        ):

            async def pass_on() -> None:
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    async for one in read:
                        if not self._counts():
                            break
                        if not isinstance(one, Exception):
                            self._look(one.message)
                        await to_client.send(one)
                if self.sentence:
                    await self._end(to_client)
                to_client.close()

            passing = asyncio.create_task(pass_on())
            try:
                yield incoming, write
            finally:
                passing.cancel()
                await asyncio.wait([passing])

    async def _on_response(self, response: httpx2.Response) -> None:
        """Before its body is read."""
        status = response.status_code
        said = _STATUSES.get(status, marked("It answered with HTTP error {status}."))
        if response.request.url == self._url:
            self._refusal = tr(said).format(status=status) if status >= 400 else ""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.sentence = tr("It sends compressed data, which kvdesk does not accept.")
            raise httpx2.DecodingError(self.sentence, request=response.request)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _Limited(response, self)


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Values without blanks around them. What else no header can have is refused here: `h11` would quote the value,
    which mostly is a key, in its error.
    """
    found = {name: value.strip() for name, value in headers.items()}
    for name, value in found.items():
        if not _NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise ToolServerError(tr("The header {name} has characters that no header can have.").format(name=name))
    return found


class _Limited(httpx2.AsyncByteStream):
    """A body with a limit on its bytes; `mcp` limits only events."""

    def __init__(self, response: httpx2.Response, server: WebServer) -> None:
        self._response, self._server = response, server
        self._inner = response.stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._inner, httpx2.AsyncByteStream)
        n = 0
        async for part in self._inner:
            n += len(part)
            if n > MOST_LINE:
                self._server.sentence = tr("It sent a message that is too long.")
                raise httpx2.ReadError(self._server.sentence, request=self._response.request)
            yield part

    async def aclose(self) -> None:
        assert isinstance(self._inner, httpx2.AsyncByteStream)
        await self._inner.aclose()
