"""A relay that records what passes a socket, and the messages of HTTP in it: what a client and a server really sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Final

from kvdesk.values import dataclass

_CHUNK: Final = 1 << 16
_OF_A_CONNECTION: Final = (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"host")


@dataclass(frozen=True, slots=True)
class Passed:
    """A request with its answer. Heads are the first line and the headers that do not belong to a connection."""

    request: tuple[bytes, ...]
    sent: bytes
    answer: tuple[bytes, ...]
    came: bytes


class Relay:
    """Listens on this computer and passes everything on to `port`. `passed`: when it has been closed."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._recorded: list[tuple[bytearray, bytearray]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Relay:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listening, *self._sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended
                pass
            one.close()
        for thread in self._threads:
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def passed(self) -> list[Passed]:
        """What passed as requests with their answers; an answer that broke off, and its request, are left out."""
        found = []
        for up, down in self._recorded:
            answers = _messages(bytes(down))
            for (head, sent), (answer, came) in zip(_messages(bytes(up)), answers, strict=False):
                found.append(Passed(head, sent, answer, came))
        return found

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:  # it was closed
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            both = bytearray(), bytearray()
            self._recorded.append(both)
            self._sockets += (client, server)
            for one, other, record in ((client, server, both[0]), (server, client, both[1])):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._threads.append(threading.Thread(target=_pump, args=(one, other, record)))
                self._threads[-1].start()


def _pump(one: socket.socket, other: socket.socket, record: bytearray) -> None:
    try:
        while data := one.recv(_CHUNK):
            record += data
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:  # one of both has gone away
        return


def _messages(data: bytes) -> Iterator[tuple[tuple[bytes, ...], bytes]]:
    """Head and body of each whole message of one direction of a connection."""
    while b"\r\n\r\n" in data:
        head, _, data = data.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        pairs = [(name.lower(), value.strip()) for name, _, value in (one.partition(b":") for one in lines)]
        headers = dict(pairs)
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            body, data = _unchunked(data)
            if body is None:
                return
        else:
            n = int(headers.get(b"content-length", 0))
            body, data = data[:n], data[n:]
            if len(body) < n:
                return
        kept = sorted(b": ".join(pair) for pair in pairs if pair[0] not in _OF_A_CONNECTION)
        yield (line, *kept), body


def _unchunked(data: bytes) -> tuple[bytes | None, bytes]:
    """The body and what follows it; None if it breaks off. A client may close before it has read the last
    chunk, which is empty.
    """
    body = b""
    while b"\r\n" in data:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        if len(data) < n + 2:
            break
        body, data = body + data[:n], data[n + 2 :]
        if n == 0:
            return body, data
    return (None if data else body), b""
