"""The proxy as a server on this computer, from its socket to the last line about what passed."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

import uvicorn

from kvdesk.proxy.app import Proxy
from kvdesk.proxy.exchange import Exchange
from kvdesk.proxy.report import Finding, Reporter
from kvdesk.server.config import DEFAULT_HOST, Limits, ServerConfig
from kvdesk.server.spans import spans_of
from kvdesk.server.transport.gate import Gate
from kvdesk.server.transport.http_protocol import with_limits
from kvdesk.server.transport.sockets import bound

MOST_WAITING: Final = 64 << 20
"""Bytes of requests that wait to be compared. What comes beyond is counted only."""
_LIMITS: Final = Limits(rate=1e9, burst=1 << 30, write_s=600.0)
"""As many requests as the server itself takes; a client may take nothing of its answer for ten minutes."""
_END_S: Final = 3


class ProxyServer:
    """`port` 0: any that is free. `tell` gets each request explained, on its own thread. `listen`, then `run`."""

    def __init__(self, url: str, port: int, tell: Callable[[Finding], None]) -> None:
        self.port, self._tell = port, tell
        self.reporter = Reporter()
        self._spans = spans_of()
        self._proxy = Proxy(url, self._ended)
        self._reading = ThreadPoolExecutor(1, "kvdesk-proxy")
        self._lock = Lock()
        self._n_waiting = 0  # bytes
        self._server: _Uvicorn | None = None

    @property
    def url(self) -> str:
        return f"http://{DEFAULT_HOST}:{self.port}"

    def listen(self) -> socket.socket:
        """Raises UserError if the port is taken."""
        listening = bound(DEFAULT_HOST, self.port)
        self.port = int(listening.getsockname()[1])
        return listening

    def run(self, listening: socket.socket) -> None:
        """Until Ctrl+C, SIGTERM or `stop`. When it returns everything was reported. Raises KeyboardInterrupt."""
        config = uvicorn.Config(
            Gate(self._proxy, ServerConfig(limits=_LIMITS)),
            http=with_limits(_LIMITS.header_s, _LIMITS.write_s),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_END_S,
        )
        self._server = _Uvicorn(config, self._proxy)
        try:
            self._server.run(sockets=[listening])
        finally:
            listening.close()
            self._reading.shutdown()

    def stop(self) -> None:
        """From any thread, once `run` was called."""
        if self._server is not None:
            self._server.should_exit = True

    def _ended(self, exchange: Exchange) -> None:
        """On the event loop, which goes on while the request is compared."""
        n = len(exchange.body or b"")
        with self._lock:
            if self._n_waiting + n > MOST_WAITING:
                exchange.body, n = None, 0
            self._n_waiting += n
        self._reading.submit(self._explain, exchange, n)

    def _explain(self, exchange: Exchange, n: int) -> None:
        try:
            found = self.reporter.explain(exchange)
            if self._spans is not None:
                self._spans.add(exchange.path, found.model, exchange.parent, exchange.began_ns, found.reused)
            self._tell(found)
        finally:
            with self._lock:
                self._n_waiting -= n


class _Uvicorn(uvicorn.Server):
    """Ends the connections to the other server before it ends."""

    def __init__(self, config: uvicorn.Config, proxy: Proxy) -> None:
        super().__init__(config)
        self._proxy = proxy

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._proxy.close()
