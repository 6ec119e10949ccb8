"""The reader of KV events against a publisher of ours that speaks both wire formats over real ZMQ."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import zmq

from kvdesk.backends.openai.block_events import END, BlockEventReader, EventsAddress, Heard
from kvdesk.errors import UserError


@dataclass
class Publisher:
    """A PUB socket and its ROUTER, on ports of their own. frames: of a reply, 2 (no topic) or 3."""

    frames: int = 3
    sent: list[tuple[int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = zmq.Context()
        self.pub, self.router = self.context.socket(zmq.XPUB), self.context.socket(zmq.ROUTER)
        self.pub.linger = self.router.linger = 0
        ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (self.pub, self.router)]
        self.address = EventsAddress(*(f"tcp://127.0.0.1:{port}" for port in ports))
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


@pytest.fixture(params=[2, 3])
def publisher(request: pytest.FixtureRequest) -> Iterator[Publisher]:
    made = Publisher(request.param)
    yield made
    made.close()


class Ear:
    """What the reader said last, to be waited for."""

    def __init__(self) -> None:
        self.said = threading.Condition()
        self.heard: Heard | None = None

    def hear(self, heard: Heard) -> None:
        with self.said:
            self.heard = heard
            self.said.notify_all()

    def wait(self, right: Any) -> Heard:
        with self.said:
            assert self.said.wait_for(lambda: self.heard is not None and right(self.heard), 20.0), self.heard
            assert self.heard is not None
            return self.heard


def test_what_was_before_and_what_was_missed_is_asked_for(publisher: Publisher) -> None:
    publisher.store(0, 10, None, heard=False)
    ear = Ear()
    reader = BlockEventReader(publisher.address, ear.hear)
    reader.start()
    try:
        publisher.await_subscriber()
        ear.wait(lambda heard: len(heard.map.blocks) == 1)
        publisher.store(1, 11, 10, heard=False)
        publisher.store(2, 12, 11)
        heard = ear.wait(lambda heard: len(heard.map.blocks) == 3)
        assert publisher.asked == [0, 1]
        assert (heard.map.n_missed, heard.map.n_messages, heard.map.first_seq) == (0, 3, 0)
        assert heard.map.n_rows == 1
        reader.use([10, 10, 11, 11, 5])
        heard = ear.wait(lambda heard: heard.map.blocks[0].n_used == 1)
        assert [block.n_used for block in heard.map.blocks] == [1, 1, 0]
        publisher.sent.clear()  # started again: its numbers begin anew
        publisher.store(0, 20, None)
        heard = ear.wait(lambda heard: heard.map.n_restarts == 1)
        assert [block.key[1] for block in heard.map.blocks] == [f"{20:016x}"]
    finally:
        reader.close()


def test_without_replay_what_was_missed_is_counted_and_nonsense_is_said(publisher: Publisher) -> None:
    ear = Ear()
    reader = BlockEventReader(EventsAddress(publisher.address.live), ear.hear)
    reader.start()
    try:
        publisher.await_subscriber()
        publisher.store(3, 10, None)
        ear.wait(lambda heard: heard.map.first_seq == 3)
        publisher.store(7, 11, 10)
        ear.wait(lambda heard: heard.map.n_missed == 3)
        publisher.pub.send_multipart((b"", (8).to_bytes(8, "big"), b"\xc1"))
        heard = ear.wait(lambda heard: heard.problem)
        assert "Message 8" in heard.problem
        publisher.pub.send(b"hello")
        assert len(ear.wait(lambda heard: "another kind" in heard.problem).map.blocks) == 2
        assert publisher.asked == []
    finally:
        reader.close()


def test_an_address_that_is_none_is_said() -> None:
    for address in (EventsAddress("nowhere"), EventsAddress("tcp://127.0.0.1:5557", "tcp://")):
        with pytest.raises(UserError, match="is no address"):
            BlockEventReader(address, lambda _: None).start()
