"""A tool server over HTTP that misbehaves in one way at one step; on threads of this process."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.tools.hostile import asking, notice, reply, right

Json = dict[str, Any]


@dataclass(slots=True)
class Web:
    """A server that runs. got: what was posted to it; elsewhere: paths that were asked beside it, and of another server
    to which it redirects; follows: the same request comes again for each redirect.
    """

    url: str = ""
    other: str = ""
    got: list[Json] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    follows: bool = False


class Handler(BaseHTTPRequestHandler):
    """One request. Set for each server: what it does, and at which step."""

    protocol_version = "HTTP/1.1"
    web: Web
    step: str
    act: Callable[[Handler, Json], None]
    over: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.partition("?")[0] != "/mcp":
            self.web.elsewhere.append(self.path)
            self.whole(b"", 404)
            return
        message = json.loads(body)
        self.web.got.append(message)
        with suppress(OSError):
            if message.get("method") == self.step:
                type(self).act(self, message)
            elif "id" in message and "method" in message:
                self.json(right(message))
            else:
                self.whole(b"", 202)

    def do_GET(self) -> None:
        self.whole(b"", 405)

    do_DELETE = do_GET  # noqa: N815 - the name that is called

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that is called
        """Nothing."""

    def begin(self, status: int = 200, kind: str = "application/json", n: int | None = None, **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if n is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(n))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self, body: bytes, status: int = 200, kind: str = "application/json", **more: str) -> None:
        self.begin(status, kind, len(body), **more)
        self.wfile.write(body)

    def json(self, value: Any, status: int = 200, **more: str) -> None:
        self.whole(json.dumps(value).encode(), status, **more)

    def event(self, value: Any, **more: str) -> None:
        lines = [f"{name}: {text}\n" for name, text in more.items()]
        self.wfile.write(("".join(lines) + f"data: {json.dumps(value)}\n\n").encode())
        self.wfile.flush()

    def events(self, *values: Any) -> None:
        self.begin(kind="text/event-stream")
        for value in values:
            self.event(value)


@dataclass(frozen=True, slots=True)
class Act:
    """does: what it does instead of its answer; says: what the sentence has. is_silent: there is never an answer;
    is_harmless: there is one.
    """

    does: Callable[[Handler, Json], None]
    says: str = ""
    is_silent: bool = False
    is_harmless: bool = False


def status(code: int, body: bytes = b"<h1>No</h1>", kind: str = "text/html") -> Callable[[Handler, Json], None]:
    return lambda handler, _: handler.whole(body, code, kind)


def redirects(code: int, where: str) -> Callable[[Handler, Json], None]:
    def act(handler: Handler, _message: Json) -> None:
        web = handler.web
        handler.whole(b"", code, Location=where.replace("OTHER", web.other).replace("SELF", web.url))

    return act


def wait(handler: Handler) -> None:
    handler.over.wait(60)


def hangs(handler: Handler, _message: Json) -> None:
    wait(handler)


def hangs_in_the_body(handler: Handler, message: Json) -> None:
    handler.begin(n=1000)
    handler.wfile.write(json.dumps(right(message)).encode()[:10])
    handler.wfile.flush()
    wait(handler)


def hangs_up(handler: Handler, _message: Json) -> None:
    handler.close_connection = True
    handler.connection.close()


def cuts_the_body(handler: Handler, message: Json) -> None:
    handler.begin(n=1000)
    handler.wfile.write(json.dumps(right(message)).encode())
    handler.close_connection = True


def body_without_end(handler: Handler, _message: Json) -> None:
    handler.begin()
    while not handler.over.is_set():
        handler.wfile.write(b" " * 65536)


def bomb(handler: Handler, _message: Json) -> None:
    handler.whole(gzip.compress(b" " * (64 << 20)), Content_Encoding="gzip")


def events_without_end(make: Callable[[Json], Any]) -> Callable[[Handler, Json], None]:
    def act(handler: Handler, message: Json) -> None:
        handler.begin(kind="text/event-stream")
        while not handler.over.is_set():
            handler.event(make(message))

    return act


def event_without_end(handler: Handler, _message: Json) -> None:
    handler.begin(kind="text/event-stream")
    handler.wfile.write(b"data: ")
    while not handler.over.is_set():
        handler.wfile.write(b"x" * 65536)


def keeps_alive(handler: Handler, _message: Json) -> None:
    handler.begin(kind="text/event-stream")
    while not handler.over.wait(0.05):
        handler.wfile.write(b": still here\n\n")
        handler.wfile.flush()


def slowly(handler: Handler, message: Json) -> None:
    handler.begin(kind="text/event-stream")
    for letter in f"data: {json.dumps(right(message))}\n\n":
        handler.wfile.write(letter.encode())
        handler.wfile.flush()
        time.sleep(0.002)  # what is tested is slow


def resumes_for_ever(handler: Handler, _message: Json) -> None:
    handler.begin(kind="text/event-stream")
    handler.wfile.write(b"id: 1\nretry: 1\ndata:\n\n")


def no_words(handler: Handler, message: Json) -> None:
    handler.events({**right(message), "id": 999})


HTTP: Final[dict[str, Act]] = {
    "400": Act(status(400), "error 400."),
    "401": Act(status(401), "in a header"),
    "403": Act(status(403), "(403)"),
    "404": Act(status(404), "(404)"),
    "405": Act(status(405), "error 405."),
    "418": Act(status(418), "error 418."),
    "429": Act(status(429), "(429)"),
    "500": Act(status(500), "error 500."),
    "503 with JSON": Act(status(503, b'{"error": "busy"}', "application/json"), "error 503."),
    "500 with an error": Act(
        lambda handler, message: handler.json(reply(message, error={"code": 1, "message": "It broke"}), 500),
        "error 500.",
    ),
    "202": Act(status(202, b"")),
    "204": Act(status(204, b"")),
    "301 elsewhere": Act(redirects(301, "OTHER/mcp")),
    "302 elsewhere": Act(redirects(302, "OTHER/mcp")),
    "307 elsewhere": Act(redirects(307, "OTHER/mcp")),
    "308 elsewhere": Act(redirects(308, "OTHER/mcp")),
    "307 to itself": Act(redirects(307, "SELF")),
    "307 to a file": Act(redirects(307, "file:///etc/passwd")),
    "307 to nowhere": Act(redirects(307, "http://[")),
    "a page": Act(status(200, b"<html>Welcome</html>")),
    "an empty body": Act(status(200, b"", "application/json"), "protocol"),
    "no JSON": Act(status(200, b"hello", "application/json"), "protocol"),
    "a list": Act(lambda handler, message: handler.json([right(message)]), "protocol"),
    "another number": Act(lambda handler, message: handler.json({**right(message), "id": 999}), is_silent=True),
    "no type": Act(lambda handler, message: handler.whole(json.dumps(right(message)).encode(), kind="")),
    "hang": Act(hangs, is_silent=True),
    "hang in the body": Act(hangs_in_the_body, is_silent=True),
    "hang up": Act(hangs_up),
    "cut the body": Act(cuts_the_body),
    "a body without end": Act(body_without_end, "too long"),
    "a compressed body": Act(bomb, "compressed"),
    "events without end": Act(events_without_end(lambda _: notice("notifications/message")), "too many messages"),
    "questions without end": Act(events_without_end(lambda _: asking("roots/list")), "too many messages"),
    "an event without end": Act(event_without_end),
    "events without an answer": Act(lambda handler, _: handler.events(notice("notifications/message"))),
    "an event that is no JSON": Act(lambda handler, _: handler.events("no JSON"), "protocol"),
    "a stream that stays open": Act(keeps_alive, is_silent=True),
    "a stream to be resumed": Act(resumes_for_ever),
    "a slow stream": Act(slowly, is_harmless=True),
    "an answer to another": Act(no_words, is_harmless=True),
    "an answer behind a question": Act(
        lambda handler, message: handler.events(asking("roots/list"), right(message)),
        is_harmless=True,
    ),
    "an answer as an event": Act(lambda handler, message: handler.events(right(message)), is_harmless=True),
}  # fmt: skip


class Elsewhere(BaseHTTPRequestHandler):
    web: Web

    def do_POST(self) -> None:
        self.web.elsewhere.append(self.path)
        self.send_error(404)

    do_GET = do_POST  # noqa: N815 - the name that is called

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that is called
        """Nothing."""


@contextmanager
def serving(step: str, act: str) -> Iterator[Web]:
    """A server that does `act` at `step`, and another one beside it."""
    web, over = Web(), threading.Event()
    handler = type("Case", (Handler,), {"web": web, "step": step, "act": staticmethod(HTTP[act].does), "over": over})
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        ThreadingHTTPServer(("127.0.0.1", 0), type("Other", (Elsewhere,), {"web": web})) as other,
    ):
        server.daemon_threads = other.daemon_threads = True
        server.block_on_close = False
        web.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        web.follows = act == "307 to itself"
        web.other = f"http://127.0.0.1:{other.server_address[1]}"
        for one in (server, other):
            threading.Thread(target=one.serve_forever, daemon=True).start()
        try:
            yield web
        finally:
            over.set()
            server.shutdown()
            other.shutdown()
