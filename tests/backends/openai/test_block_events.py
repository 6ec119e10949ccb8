"""The reader of KV events against a publisher of ours that speaks both wire formats over real ZMQ."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kvdesk.backends.openai import block_events
from kvdesk.backends.openai.block_events import BlockEventReader, EventsAddress, Heard
from kvdesk.errors import UserError
from tests.backends.openai.publisher import Publisher


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
    with closing(BlockEventReader(publisher.address, ear.hear)) as reader:
        reader.start()
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


def test_a_server_that_was_started_again_is_noticed_whatever_its_numbers(publisher: Publisher) -> None:
    """Its numbers have already passed those that were heard before it ended."""
    publisher.store(0, 10, None, heard=False)
    ear = Ear()
    with closing(BlockEventReader(publisher.address, ear.hear)) as reader:
        reader.start()
        ear.wait(lambda heard: len(heard.map.blocks) == 1)
        publisher.close()
        ear.wait(lambda heard: "no longer publishes KV events" in heard.problem)
        with closing(Publisher(publisher.frames, publisher.address)) as again:
            for seq, name in enumerate((20, 21, 22)):
                again.store(seq, name, None, heard=False)
            again.await_subscriber()
            again.store(3, 23, None)
            heard = ear.wait(lambda heard: len(heard.map.blocks) == 4 and not heard.problem)
            assert [block.key[1] for block in heard.map.blocks] == [f"{name:016x}" for name in (20, 21, 22, 23)]
            assert (heard.map.n_restarts, heard.map.n_missed) == (1, 0)


def test_an_address_at_which_nobody_publishes_is_said(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_events, "SILENT_S", 0.1)
    monkeypatch.setattr(block_events, "REPLAY_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        silent = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        for address, problem in (
            (EventsAddress(silent, publisher.address.replay), f"No KV events come from {silent}. "),
            (EventsAddress(publisher.address.replay), "No KV events come from "),  # no publisher, but one of ZMQ's
            (EventsAddress(publisher.address.live, silent), f"Missed messages cannot be asked for: {silent} does not"),
        ):
            ear = Ear()
            with closing(BlockEventReader(address, ear.hear)) as reader:
                reader.start()
                assert ear.wait(lambda heard: heard.problem).problem.startswith(problem)


def test_without_replay_what_was_missed_is_counted_and_nonsense_is_said(publisher: Publisher) -> None:
    ear = Ear()
    with closing(BlockEventReader(EventsAddress(publisher.address.live), ear.hear)) as reader:
        reader.start()
        publisher.await_subscriber()
        publisher.store(3, 10, None)
        ear.wait(lambda heard: heard.map.first_seq == 3)
        publisher.store(7, 11, 10)
        ear.wait(lambda heard: heard.map.n_missed == 3)
        publisher.pub.send_multipart((b"", (8).to_bytes(8, "big"), b"\xc1"))
        heard = ear.wait(lambda heard: heard.problem)
        assert "Message 8" in heard.problem
        publisher.pub.send(b"hello")
        assert len(ear.wait(lambda heard: "not a KV event" in heard.problem).map.blocks) == 2
        assert publisher.asked == []


def test_an_address_that_is_none_is_said() -> None:
    for address in (EventsAddress("nowhere"), EventsAddress("tcp://127.0.0.1:5557", "tcp://")):
        with pytest.raises(UserError, match="is not an address"):
            BlockEventReader(address, lambda _: None).start()
