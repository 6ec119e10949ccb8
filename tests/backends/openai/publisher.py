"""A publisher of KV events over real ZMQ, whose every message a test writes."""

import threading
import time
from dataclasses import dataclass, field

import msgspec
import zmq

from kvdesk.backends.openai.block_events import END, EventsAddress


@dataclass
class Publisher:
    """A PUB socket and its ROUTER, on ports of their own or at `at`. frames: of a reply, 2 (no topic) or 3."""

    frames: int = 3
    at: EventsAddress | None = None
    sent: list[tuple[int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = zmq.Context()
        self.pub, self.router = self.context.socket(zmq.XPUB), self.context.socket(zmq.ROUTER)
        self.pub.linger = self.router.linger = 0
        ends = (self.at.live, self.at.replay) if self.at is not None else ("tcp://127.0.0.1:*",) * 2
        for socket, end in zip((self.pub, self.router), ends, strict=True):
            socket.bind(end)
        self.address = EventsAddress(*(socket.last_endpoint.decode() for socket in (self.pub, self.router)))
        self.asked: list[int] = []
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def await_subscriber(self) -> None:
        assert self.pub.poll(10_000), "nobody subscribed"
        self.pub.recv()

    def store(self, seq: int, name: int, parent: int | None, *, heard: bool = True) -> None:
        """A block of two tokens; one that is not `heard` can only be asked for."""
        event = {"type": "BlockStored", "block_hashes": [name], "parent_block_hash": parent, "token_ids": [name, name]}
        payload = msgspec.msgpack.encode([time.time(), [event | {"block_size": 2}]])
        self.sent.append((seq, payload))
        if heard:
            self.pub.send_multipart((b"", seq.to_bytes(8, "big"), payload))

    def answer(self) -> None:
        while not self.closing.is_set():
            if not self.router.poll(20):
                continue
            client, _, first = self.router.recv_multipart()
            self.asked.append(int.from_bytes(first, "big"))
            topic = [b""] if self.frames == 3 else []
            for seq, payload in self.sent:
                if seq >= self.asked[-1]:
                    self.router.send_multipart((client, b"", *topic, seq.to_bytes(8, "big"), payload))
            self.router.send_multipart((client, b"", *topic, END, b""))

    def close(self) -> None:
        self.closing.set()
        self.thread.join()
        self.pub.close()
        self.router.close()
        self.context.term()
