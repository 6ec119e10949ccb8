"""What a server is, by what it says of itself."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2 as httpx
import pytest

from kvdesk.backends.openai.block_events import EventsAddress
from kvdesk.backends.openai.block_watch import events_address
from kvdesk.backends.openai.client import client_of
from kvdesk.backends.openai.kinds import Asked, ask
from kvdesk.backends.openai.problems import KeyRefused, Nonsense, ServerError
from kvdesk.errors import UserError
from kvdesk.protocol.features import Feature
from kvdesk.protocol.servers import is_readable_on_the_way, server_url
from tests.backends.openai.scripted_server import ScriptedServer

T = TypeVar("T")
VLLM = {"publisher": "zmq", "endpoint": "tcp://*:7000", "replay_endpoint": None, "topic": "", "buffer_steps": 10_000}


def of(server: ScriptedServer, look: Callable[[httpx.AsyncClient], Awaitable[T]], key: str = "") -> T:
    async def run() -> T:
        async with client_of(server.url, key) as client:
            return await look(client)

    return asyncio.run(run())


def asked(server: ScriptedServer, key: str = "") -> Asked:
    return of(server, ask, key)


def models(owner: str, **more: Any) -> dict[str, Any]:
    return {"data": [{"id": "m", "owned_by": owner, **more}, {"id": "other", "owned_by": owner}]}


def test_llama_server_tells_its_slots_and_counters(server: ScriptedServer) -> None:
    server.answers |= {
        "/v1/models": models("llamacpp", meta={"n_ctx": 2048, "n_params": 7}),
        "/props": {"build_info": "b9999-abc", "total_slots": 2, "default_generation_settings": {"n_ctx": 4096}},
        "/slots": [{"id": 0, "is_processing": True}, {"id": 1, "is_processing": False}],
        "/metrics": lambda _: (
            200, {}, iter([b"# HELP x\nllamacpp:prompt_tokens_total 1234\nllamacpp:tokens_predicted_total 56\n"])
        ),
    }  # fmt: skip
    found = asked(server)
    assert (found.found.kind, found.n_ctx, found.found.models) == ("llama-server", 4096, ("m", "other"))
    assert found.found.facts[:3] == (
        "llama-server, build b9999-abc.",
        "2 slots with 4,096 tokens each, 1 of them busy.",
        "So far it has read 1,234 tokens and written 56.",
    )
    assert found.found.features == {Feature.CHAT, Feature.CONTINUE}


def test_what_llama_server_does_not_show_is_said(server: ScriptedServer) -> None:
    server.answers["/v1/models"] = models("llamacpp")
    found = asked(server).found
    assert found.facts[0] == "Its counters are off; start llama-server with --metrics."
    assert "kvdesk watch -- llama-server" in found.limit, "where its cells would be"


@pytest.mark.parametrize(("owner", "kind"), [("vllm", "vLLM"), ("sglang", "SGLang"), ("me", "other"), (None, "other")])
def test_others_chat(server: ScriptedServer, owner: str, kind: str) -> None:
    server.answers["/v1/models"] = models(owner, max_model_len=8192)
    found = asked(server)
    assert (found.found.kind, found.n_ctx) == (kind, 8192)
    assert "Context: 8,192 tokens." in found.found.facts


@pytest.mark.parametrize("status", [401, 403])
def test_another_kvdesk_that_refuses_its_cells_says_what_to_do(server: ScriptedServer, status: int) -> None:
    server.answers["/v1/models"] = models("kvdesk")
    server.answers["/kv/map"] = lambda _: (status, {"Content-Type": "application/json"}, iter([b"{}"]))
    found = asked(server).found
    assert found.features == {Feature.CHAT, Feature.CONTINUE}
    assert found.facts[0] == "Another kvdesk. It answers chats."
    assert found.limit == ("It shows its cells to a key only. Start it with --inspect-key and connect with that key.")
    assert asked(server, "sk-other").found.limit == (
        "It does not show its cells to this key. Start it with --inspect-key and connect with that key."
    )


def test_a_server_that_needs_a_key_is_not_told_to_refuse_one(server: ScriptedServer) -> None:
    server.answers["/v1/models"] = lambda _: (401, {}, iter([b"no"]))
    with pytest.raises(KeyRefused, match=r"^The server needs a key \(401\). Enter it where you connect.$"):
        asked(server)
    with pytest.raises(KeyRefused, match=r"^The server refuses the key \(401\).$"):
        asked(server, "sk-wrong")


def test_another_kvdesk_shows_its_cache_to_a_key_that_may_look(server: ScriptedServer) -> None:
    server.answers["/v1/models"] = models("kvdesk")
    assert Feature.CACHE_VIEW not in asked(server).found.features
    assert asked(server).found.limit.startswith("Its cache is not shown: ")
    server.answers["/kv/map"] = {"type": "CacheView"}
    assert asked(server).found.features == {Feature.CHAT, Feature.CONTINUE, Feature.CACHE_VIEW}


def test_a_server_that_publishes_its_blocks_has_a_map_of_them(server: ScriptedServer) -> None:
    server.answers["/v1/models"] = models("vllm")
    assert Feature.BLOCK_MAP in asked(server).found.features  # one that does not tell where is tried
    server.answers["/kv_event_sources"] = {}
    assert Feature.BLOCK_MAP not in asked(server).found.features
    server.answers["/kv_event_sources"] = {"0": {"publisher": "zmq", "endpoint": "ipc:///tmp/events"}}
    assert (
        asked(server).found.limit == "The server publishes its KV events at ipc:///tmp/events, which only it can reach."
    )
    server.answers["/v1/models"] = models("sglang")
    assert Feature.BLOCK_MAP not in asked(server).found.features
    server.answers["/server_info"] = {"kv_events": None}
    assert Feature.BLOCK_MAP not in asked(server).found.features
    server.answers["/server_info"] = {"kv_events": {"endpoint_host": "*", "endpoint_port_base": 5557}}
    assert Feature.BLOCK_MAP in asked(server).found.features


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ({"endpoint_port_base": 7000, "endpoint_host": "0.0.0.0"}, EventsAddress("tcp://127.0.0.1:7000")),
        (
            {"endpoint_port_base": 7, "endpoint_host": "gpu", "replay_endpoint_port_base": 8, "topic": "t"},
            EventsAddress("tcp://gpu:7", "tcp://gpu:8", "t"),
        ),
        ({"endpoint_port_base": "7"}, None),
        ({"endpoint_port_base": 70000}, None),
    ],
)
def test_where_sglang_publishes(server: ScriptedServer, told: dict[str, Any], address: EventsAddress | None) -> None:
    server.answers["/server_info"] = {"kv_events": told}
    assert of(server, lambda client: events_address(client, "SGLang")) == address


@pytest.mark.parametrize(
    ("sources", "address"),
    [
        (None, EventsAddress("tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558")),
        ({}, None),
        ([], None),
        ({"0": {"publisher": "null", "endpoint": "tcp://*:5557"}}, None),
        (
            {"0": VLLM | {"replay_endpoint": "tcp://[::]:7001", "topic": "kv"}, "1": VLLM},
            EventsAddress("tcp://127.0.0.1:7000", "tcp://127.0.0.1:7001", "kv"),
        ),
        ({"0": VLLM | {"endpoint": "tcp://[fd00::7]:40123"}}, EventsAddress("tcp://[fd00::7]:40123")),
    ],
)
def test_where_vllm_publishes(server: ScriptedServer, sources: Any, address: EventsAddress | None) -> None:
    if sources is not None:
        server.answers["/kv_event_sources"] = lambda _: (200, {}, iter([json.dumps(sources).encode()]))
    assert of(server, lambda client: events_address(client, "vLLM")) == address


@pytest.mark.parametrize("value", [[], {}, {"data": "x"}, {"data": [{"id": 5}]}, 7])
def test_what_names_no_models_is_no_server(server: ScriptedServer, value: Any) -> None:
    server.answers["/v1/models"] = lambda _: (200, {}, iter([json.dumps(value).encode()]))
    with pytest.raises(Nonsense):
        asked(server)


@pytest.mark.parametrize("models", [[], None])
def test_a_server_without_models_says_what_to_do(server: ScriptedServer, models: Any) -> None:
    """As Ollama does before its first download."""
    said = json.dumps({"object": "list", "data": models}).encode()
    server.answers["/v1/models"] = lambda _: (200, {}, iter([said]))
    with pytest.raises(ServerError, match=r"^The server has no model yet\. Download or load one there"):
        asked(server)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("192.168.1.5:8080", "http://192.168.1.5:8080"),
        (" http://bigbox:8080/v1/ ", "http://bigbox:8080"),
        ("https://api.example.org/v1", "https://api.example.org"),
        ("https://example.org/llm/v1", "https://example.org/llm"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("HTTP://BigBox", "http://bigbox"),
    ],
)
def test_addresses_are_kept_in_one_form(text: str, url: str) -> None:
    assert server_url(text) == url
    assert server_url(url) == url


@pytest.mark.parametrize(
    "text", ["", "  ", "ftp://x", "http://", "http://a b", "http://x:99999", "http://u:p@x", "x" * 600]
)
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(UserError):
        server_url(text)


def test_who_could_read_along() -> None:
    assert is_readable_on_the_way("http://bigbox:8080")
    assert not is_readable_on_the_way("https://bigbox:8080")
    assert not is_readable_on_the_way("http://127.0.0.1:8080")
    assert not is_readable_on_the_way("http://[::1]:8080")
    assert not is_readable_on_the_way("http://localhost")
