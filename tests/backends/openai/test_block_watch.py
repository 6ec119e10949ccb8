"""A whole connection to a server that publishes its blocks: map, counters, and the blocks of a chat."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from kvdesk.backends.openai.backend import OpenAIBackend
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import Endpoint
from kvdesk.settings import ContextSettings
from tests.backends.heard import Heard, ask
from tests.backends.openai.publisher import Publisher
from tests.backends.openai.scripted_server import DONE, ScriptedServer, chunk, event


class Watching(Heard):
    """A host with a connection; the latest view can be waited for."""

    def __init__(self) -> None:
        super().__init__(OpenAIBackend)

    def seen(self, right: Callable[[BlockMapView], bool]) -> BlockMapView:
        self.wait(lambda: any(map(right, self.of(BlockMapView)[-1:])))
        return self.of(BlockMapView)[-1]


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
    view = watching.seen(lambda view: len(view.blocks.blocks) == 3 and view.metrics.usage is not None)
    assert view.metrics.usage == 0.5
    assert view.address == publisher.address.live
    watching.send(ask("Hello"))
    view = watching.seen(lambda view: any(block.n_used for block in view.blocks.blocks))
    assert [block.n_used for block in view.blocks.blocks] == [1, 1, 0]
    assert [body["messages"] for path, _, body in server.requests if path == "/tokenize"] == [
        [{"role": "user", "content": "Hello"}]
    ]


def test_what_cannot_be_listened_to_is_said(server: ScriptedServer) -> None:
    server.answers["/server_info"]["kv_events"]["endpoint_host"] = "no host"
    with closing(Watching()) as made:
        made.host.submit(LoadModel(Endpoint(server.url, ""), ContextSettings()))
        assert "is not an address for KV events" in made.seen(lambda view: bool(view.problem)).problem
