"""A whole connection to a server that publishes its blocks: map, counters, and the blocks of a chat."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from kvdesk.backends.openai.backend import OpenAIBackend
from kvdesk.chat import Message, new_conversation_id, new_message_id
from kvdesk.host.host import Host
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.chat import Generate, LoadModel
from kvdesk.protocol.model import Endpoint
from kvdesk.settings import ContextSettings, Sampling
from tests.backends.openai.publisher import Publisher
from tests.backends.openai.scripted_server import DONE, ScriptedServer, chunk, event


class Watching:
    """A host with a connection on a thread of its own; the latest view can be waited for."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.view: BlockMapView | None = None
        self.host = Host(OpenAIBackend)
        self.subscription = self.host.subscribe(self.take)
        self.thread = threading.Thread(target=self.host.run)
        self.thread.start()

    def take(self) -> None:
        with self.changed:
            for told in self.subscription.take():
                if isinstance(told, BlockMapView):
                    self.view = told
            self.changed.notify_all()

    def wait(self, right: Callable[[BlockMapView], bool]) -> BlockMapView:
        with self.changed:
            assert self.changed.wait_for(lambda: self.view is not None and right(self.view), 20.0), self.view
            assert self.view is not None
            return self.view

    def close(self) -> None:
        self.host.shut_down()
        self.thread.join()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    made = Publisher()
    yield made
    made.close()


@pytest.fixture
def server(publisher: Publisher) -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    live, replay = (int(address.rsplit(":", 1)[1]) for address in (publisher.address.live, publisher.address.replay))
    told = {"endpoint_host": "*", "endpoint_port_base": live, "replay_endpoint_port_base": replay}
    server.answers |= {
        "/v1/models": {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 4096}]},
        "/server_info": {"kv_events": told},
        "/metrics": lambda _: (200, {}, iter([b"# TYPE sglang:token_usage gauge\nsglang:token_usage 0.5\n"])),
        "/tokenize": {"tokens": [10, 10, 11, 11, 7], "count": 5, "max_model_len": 4096},
    }
    server.says(chunk("Hi"), event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}), DONE)
    yield server
    server.close()


@pytest.fixture
def watching(server: ScriptedServer) -> Iterator[Watching]:
    made = Watching()
    made.host.submit(LoadModel(Endpoint(server.url, ""), ContextSettings()))
    yield made
    made.close()


def test_blocks_counters_and_the_blocks_of_a_chat(
    server: ScriptedServer, publisher: Publisher, watching: Watching
) -> None:
    publisher.await_subscriber()
    publisher.store(0, 10, None)
    publisher.store(1, 11, 10)
    publisher.store(2, 12, 11)
    view = watching.wait(lambda view: len(view.blocks.blocks) == 3 and view.metrics.usage is not None)
    assert view.metrics.usage == 0.5
    assert view.address == publisher.address.live
    conversation = new_conversation_id()
    message = Message(new_message_id(), conversation, None, "user", "Hello")
    watching.host.submit(Generate(conversation, new_message_id(), (message,), Sampling()))
    view = watching.wait(lambda view: any(block.n_used for block in view.blocks.blocks))
    assert [block.n_used for block in view.blocks.blocks] == [1, 1, 0]
    assert [body["messages"] for path, _, body in server.requests if path == "/tokenize"] == [
        [{"role": "user", "content": "Hello"}]
    ]


def test_what_cannot_be_listened_to_is_said(server: ScriptedServer) -> None:
    server.answers["/server_info"]["kv_events"]["endpoint_host"] = "no host"
    made = Watching()
    try:
        made.host.submit(LoadModel(Endpoint(server.url, ""), ContextSettings()))
        assert "is no address of KV events" in made.wait(lambda view: bool(view.problem)).problem
    finally:
        made.close()
