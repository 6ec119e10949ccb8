"""The server: its own thread with uvicorn's event loop, from `start` to `close`.

Made by `kvdesk serve`, and by the window's switch. What it imports is loaded only then.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable

import uvicorn

from kvdesk.errors import UserError
from kvdesk.host.host import Host
from kvdesk.protocol.cache import LedgerRow
from kvdesk.server.app import make_app
from kvdesk.server.bridge import HostBridge
from kvdesk.server.config import ServerConfig
from kvdesk.server.embedding_process import EmbeddingProcess
from kvdesk.server.service import Service
from kvdesk.server.spans import Spans, spans_of
from kvdesk.server.state import ServerState
from kvdesk.server.transport.http_protocol import with_limits
from kvdesk.server.transport.places import Places
from kvdesk.server.transport.sockets import bound
from kvdesk.settings import Sampling
from kvdesk.translation import tr

_START_S = 30.0
_IDLE_S = 30  # so long a connection without a request stays
_END_S = 3  # so long answers may go on after `close`; then their clients are cut off
_log = logging.getLogger(__name__)


class _Uvicorn(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


class Server:
    """Serves what `host` runs. `sampling`: for what requests do not say. `start` and `close` from one thread."""

    def __init__(self, host: Host, config: ServerConfig, sampling: Sampling | None = None) -> None:
        self._host, self.config = host, config
        self._sampling = sampling or Sampling()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: Service | None = None
        self._closing = asyncio.Event()
        self._spans: Spans | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self.port = config.port

    @property
    def url(self) -> str:
        """Where clients find it: the base of the protocol."""
        host = self.config.host
        if host in ("0.0.0.0", "::", ""):
            host = socket.gethostname()
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/v1"

    @property
    def n_asked(self) -> int:
        """Requests that the engine has not ended yet."""
        return 0 if self._service is None else self._service.bridge.n_asked

    @property
    def memory(self) -> tuple[LedgerRow, ...]:
        """What it keeps beside the engine."""
        return () if self._service is None else self._service.memory

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Returns when requests are answered. Raises UserError: another address than this computer's own without a key,
        an address that is taken or that there is not.
        """
        check(self.config)
        self._spans = spans_of()
        listening = bound(self.config.host, self.config.port)
        self.port = int(listening.getsockname()[1])
        self._thread = threading.Thread(target=self._run, args=(listening,), name="kvdesk-server", daemon=True)
        self._thread.start()
        if not self._started.wait(_START_S):
            raise UserError(tr("The server did not start."))

    def close(self) -> None:
        """Stop every answer and free the port. Returns when the thread has ended."""
        if self._loop is not None and self.running:
            self._loop.call_soon_threadsafe(self._closing.set)
        if self._thread is not None:
            self._thread.join()

    def _run(self, listening: socket.socket) -> None:
        try:
            asyncio.run(self._serve(listening))
        except Exception:  # noqa: BLE001 - the edge of the thread
            _log.exception("the server ended")
        finally:
            listening.close()
            self._started.set()

    async def _serve(self, listening: socket.socket) -> None:
        state = ServerState()
        bridge = HostBridge(self._host, state)
        places = Places(lambda: state.n_parallel, self.config.limits.waiting)
        embedding = EmbeddingProcess(self.config.embedding, self.config.pooling)
        ranking = EmbeddingProcess(self.config.reranking, "rank") if self.config.reranking else embedding
        service = Service(bridge, self.config, self._sampling, places, embedding, ranking, spans=self._spans)
        self._service = service
        limits = self.config.limits
        config = uvicorn.Config(
            make_app(service),
            http=with_limits(limits.header_s, limits.write_s),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=2 * limits.connections,  # idle ones too; `Gate` refuses requests, in the protocol's form
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_END_S,
        )
        self._loop, server = asyncio.get_running_loop(), _Uvicorn(config, self._started.set)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            closing = asyncio.create_task(self._closing.wait())
            await asyncio.wait({serving, closing}, return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            bridge.end()
            server.should_exit = True
            await serving
        finally:
            bridge.close()
            embedding.close()
            ranking.close()


def check(config: ServerConfig) -> None:
    """Raises UserError if anybody on the network could ask."""
    if not config.is_loopback and not config.keys:
        raise UserError(
            tr("An address that other computers can reach needs an API key: {host}.").format(host=config.host)
        )
