"""Who may ask: the Host header, the origin of a page, the key, how often, how many at once. Before any request is read.

kvdesk's own ASGI middleware. What passes has its key in `scope["state"]["key"]`, and may leave headers of its
answer in `scope["state"]["headers"]`.
"""

import re
import time
from collections import OrderedDict
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kvdesk.server.config import NOBODY, Key, ServerConfig, host_allowed
from kvdesk.server.errors import ApiError

OPEN: Final = frozenset({"/", "/health", "/v1/health"})
"""Paths that tell nothing but that there is a server: without a key."""
LOCAL: Final = "localhost"
"""An allowed origin that is every page of this computer, as llama-server has it."""
_LOCAL_PAGE: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
_MOST_CLIENTS: Final = 1000  # whose rates are remembered
_METHODS: Final = "GET, POST, DELETE, OPTIONS"


class Gate:
    """Refuses what may not pass, in the form of the protocol."""

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self._app, self._config = app, config
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when that was counted
        self._n_inside = 0  # requests whose answer has not ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1003})
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        state = scope.setdefault("state", {})
        cors = _cors(origin) if origin and self._allows(origin) else []

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = (*message["headers"], *cors, *state.get("headers", ()))
                message["headers"] = [(name.title(), value) for name, value in found]  # as simple clients look for them
            await send(message)

        try:
            self._check_host(headers)
            self._check_origin(headers, origin)
            if scope["method"] == "OPTIONS":
                await _preflight(headers)(scope, receive, with_headers)
                return
            key = self._key(scope["path"], headers)
            self._count(key.value or str((scope.get("client") or ("",))[0]))
            if self._n_inside >= self._config.limits.connections:
                raise ApiError(503, "Too many requests are being answered.", code="overloaded", retry_s=1)
        except ApiError as error:
            await error.response(scope["path"])(scope, receive, with_headers)
            return
        state["key"] = key
        self._n_inside += 1
        try:
            await self._app(scope, receive, with_headers)
        finally:
            self._n_inside -= 1

    def _check_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if not host_allowed(host, self._config.names):
            raise ApiError(
                403,
                f"This server does not answer to the name {host[:200]!r}. Use its address, or allow the name where it "
                "is started (--allow-host).",
                code="host_not_allowed",
            )

    def _check_origin(self, headers: Headers, origin: str) -> None:
        """A page in a browser, unless it was allowed. Requests without an origin that a page sent say so otherwise."""
        from_page = origin or (headers.get("sec-fetch-site", "none") not in ("none", "same-origin"))
        if from_page and not self._allows(origin):
            raise ApiError(
                403,
                f"Pages of {origin[:200] or 'other sites'} may not ask this server. Allow the origin where it is "
                "started (--allow-origin).",
                code="origin_not_allowed",
            )

    def _allows(self, origin: str) -> bool:
        known = self._config.origins
        return "*" in known or origin in known or (LOCAL in known and bool(_LOCAL_PAGE.fullmatch(origin)))

    def _key(self, path: str, headers: Headers) -> Key:
        if path in OPEN:
            return NOBODY
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        bearer = sent.strip() if scheme.lower() == "bearer" else ""
        sent_keys = [one for one in (bearer, headers.get("x-api-key", "")) if one]
        if not sent_keys and not self._config.keys:
            return NOBODY
        key = next((key for one in sent_keys if (key := self._config.key_of(one)) is not None), None)
        if key is None:
            said = (
                "The API key is wrong." if sent_keys else "An API key is needed: send it as Authorization: Bearer KEY."
            )
            raise ApiError(401, said, code="invalid_api_key")
        return key

    def _count(self, client: str) -> None:
        limits, now = self._config.limits, time.monotonic()
        left, at = self._rates.pop(client, (float(limits.burst), now))
        left = min(float(limits.burst), left + (now - at) * limits.rate)
        if left < 1.0:
            self._rates[client] = (left, now)
            raise ApiError(429, "Too many requests at once.", code="rate_limit_exceeded", retry_s=1)
        self._rates[client] = (left - 1.0, now)
        while len(self._rates) > _MOST_CLIENTS:
            self._rates.popitem(last=False)


def _preflight(headers: Headers) -> Response:
    asked = headers.get("access-control-request-headers", "authorization, content-type")
    allowed = {"access-control-allow-methods": _METHODS, "access-control-allow-headers": asked}
    return Response(headers={**allowed, "access-control-max-age": "600"})


def _cors(origin: str) -> list[tuple[bytes, bytes]]:
    allowed = (b"access-control-allow-origin", origin.encode("latin-1", "replace"))
    return [allowed, (b"access-control-allow-credentials", b"true"), (b"vary", b"Origin")]
