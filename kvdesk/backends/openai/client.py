"""The HTTP client of one server, and requests with small answers. Limits what a server can make kvdesk store."""

import json
from typing import Any, Final

import httpx2

from kvdesk import __version__
from kvdesk.backends.openai.problems import Nonsense, ServerError, refused
from kvdesk.protocol.servers import is_this_computer
from kvdesk.translation import tr

CONNECT_S: Final = 10.0
SILENT_S: Final = 600.0
"""Longest silence: a long prompt takes minutes on a slow server, and the user can stop it at any time."""
_SHORT: Final = httpx2.Timeout(15.0, connect=CONNECT_S)  # of what a server knows at once
MOST_BYTES: Final = 8 << 20
"""Limit for an answer that is not a stream."""


def client_of(url: str, key: str) -> httpx2.AsyncClient:
    """A client of the server at `url`. No proxy is used for this computer itself. Raises ServerError for a key that
    cannot be sent.
    """
    if not (key.isascii() and key.isprintable()):
        raise ServerError(tr("The key has characters that no key can have."))
    headers = {"User-Agent": f"kvdesk/{__version__}", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    timeout = httpx2.Timeout(SILENT_S, connect=CONNECT_S, pool=None)
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=timeout, limits=limits, trust_env=not is_this_computer(url)
    )


async def get_json(client: httpx2.AsyncClient, path: str) -> Any:
    """The JSON at `path`. Raises ServerError and the errors of httpx2."""
    async with client.stream("GET", path, timeout=_SHORT) as response:
        return as_json(await read_ok(response))


async def get_text(client: httpx2.AsyncClient, path: str) -> str:
    """The text at `path`. Raises ServerError and the errors of httpx2."""
    async with client.stream("GET", path, timeout=_SHORT) as response:
        return (await read_ok(response)).decode("utf-8", "replace")


async def read_ok(response: httpx2.Response) -> bytes:
    """The body of an answer. Raises ServerError if its status is not 200."""
    body = await read_some(response)
    if response.status_code != 200:
        has_key = "Authorization" in response.request.headers
        raise refused(response.status_code, body, response.headers.get("retry-after", ""), has_key=has_key)
    return body


async def read_some(response: httpx2.Response) -> bytes:
    """The body. Raises Nonsense if it is too large."""
    parts: list[bytes] = []
    n_bytes = 0
    async for part in response.aiter_bytes():
        n_bytes += len(part)
        if n_bytes > MOST_BYTES:
            raise Nonsense(f"more than {MOST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


def as_json(body: bytes) -> Any:
    """Raises Nonsense."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Nonsense(f"{error}: {body[:200]!r}") from error
