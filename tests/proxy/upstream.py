"""A server behind the proxy that does as it is told, and remembers what reached it; and the proxy before it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kvdesk.proxy.report import Finding
from kvdesk.proxy.server import ProxyServer
from kvdesk.values import dataclass

WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as it reached the server; names of headers in lower case."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Upstream:
    """`status`, `headers` and `pieces` of every answer; `hold` is asked before each piece but the first."""

    def __init__(self) -> None:
        self.begin()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._answer(self)

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.port = int(self.server.server_address[1])
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def begin(self) -> None:
        """Nothing has come yet, and nothing else was said about answers."""
        self.status, self.headers = 200, [("Content-Type", "text/event-stream")]
        self.pieces: Sequence[bytes] = [b"data: [DONE]\n\n"]
        self.hold: Callable[[], object] = bool
        self.arrived: list[Arrived] = []
        self.gone = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        headers = tuple((name.lower(), value) for name, value in handler.headers.items())
        self.arrived.append(Arrived(handler.requestline, headers, _body(handler)))
        try:
            handler.send_response_only(self.status)
            for name, value in self.headers:
                handler.send_header(name, value)
            handler.end_headers()
            for i, piece in enumerate(self.pieces):
                if i:
                    self.hold()
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            self.gone.set()


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("transfer-encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("content-length", 0)))
    parts = []
    while n := int(handler.rfile.readline(), 16):
        parts.append(handler.rfile.read(n))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(parts)


class Findings:
    """What the proxy says of each request."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._changed = threading.Condition()

    def add(self, finding: Finding) -> None:
        with self._changed:
            self.found.append(finding)
            self._changed.notify_all()

    def wait(self, n: int) -> list[Finding]:
        """The first so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.found) >= n, WAIT_S)
            return self.found[:n]


@contextmanager
def proxy_to(url: str) -> Iterator[tuple[ProxyServer, Findings]]:
    """A proxy that listens, on a thread of its own."""
    findings = Findings()
    server = ProxyServer(url, 0, findings.add)
    listening = server.listen()
    thread = threading.Thread(target=server.run, args=(listening,))
    thread.start()
    try:
        yield server, findings
    finally:
        server.stop()
        thread.join()
