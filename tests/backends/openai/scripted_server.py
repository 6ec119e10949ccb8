"""A server whose every answer a test writes: status, headers, pieces of the body, and where it breaks."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Pieces = Iterator[bytes | None]
"""The body piece by piece; None: wait until the client has gone, or the test ends."""
MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "somebody"}]}


def event(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def chunk(text: str = "", finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more})


DONE = event(b"[DONE]")


class ScriptedServer:
    """`answers`: by path, a JSON value or a function of the request that gives status, headers and pieces."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/v1/models": MODELS}
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.gone = threading.Event()  # a client went away in the middle of an answer
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._answer(self, None)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                outer._answer(self, json.loads(self.rfile.read(length)))

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def asked(self) -> list[Any]:
        """The bodies of the requests for answers."""
        return [body for path, _, body in self.requests if path == "/v1/chat/completions"]

    def says(self, *pieces: bytes | None, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        """What it answers to every request for an answer."""
        self.answers["/v1/chat/completions"] = lambda _body: (
            status,
            {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in headers.items()},
            iter(pieces),
        )

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        self.requests.append((handler.path, dict(handler.headers), body))
        found = self.answers.get(handler.path)
        if found is None:
            status, headers, pieces = 404, {"Content-Type": "text/plain"}, iter([b"not here"])
        elif isinstance(found, Callable):  # type: ignore[arg-type]
            status, headers, pieces = found(body)
        else:
            status, headers, pieces = 200, {"Content-Type": "application/json"}, iter([json.dumps(found).encode()])
        try:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Connection", "close")
            handler.end_headers()
            for piece in pieces:
                if piece is None:
                    self._wait_for_the_end(handler)
                    return
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            self.gone.set()

    def _wait_for_the_end(self, handler: BaseHTTPRequestHandler) -> None:
        handler.connection.settimeout(0.02)
        while not self.over.is_set():
            try:
                if not handler.connection.recv(1):
                    self.gone.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.gone.set()
                return
