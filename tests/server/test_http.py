"""The server over plain HTTP: who may ask, what is refused and how, what is told to whom."""

import gzip
import json
import socket
import time
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.host.host import Host
from kvdesk.protocol import wire
from kvdesk.protocol.cache import CacheView
from kvdesk.protocol.messages import Event
from kvdesk.server.config import host_allowed, is_loopback
from tests.server.conftest import INSPECT, KEY, Running, metrics_of, raw_request, served

CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}


def error_of(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return dict(body["error"])


def test_health_needs_no_key(running: Running) -> None:
    answer = httpx.get(f"{running.root}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/v1/models", "/slots", "/metrics", "/kv/map", "/kv/events", "/nothing"])
def test_everything_else_needs_a_key(running: Running, path: str) -> None:
    answer = httpx.get(running.root + path)
    assert answer.status_code == 401
    assert error_of(answer)["code"] == "invalid_api_key"


@pytest.mark.parametrize("path", ["/kv/map", "/kv/events"])
def test_what_others_asked_needs_the_right_to_inspect(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 403
    assert error_of(answer)["code"] == "inspect_needed"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example", ""])
def test_a_host_name_of_somebody_else_is_refused(http: httpx.Client, host: str) -> None:
    answer = http.get("/v1/models", headers={"host": host})
    assert answer.status_code in (400, 403)
    assert "model" not in answer.text


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("LOCALHOST", True),
        ("192.168.1.7:8080", True),
        ("box.local:80", True),
        ("box.local.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_hosts_are_addresses_localhost_and_allowed_names(header: str, allowed: bool) -> None:
    assert host_allowed(header, ("box.local",)) is allowed


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("box", False)])
def test_loopback_is_this_computer_alone(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_page_of_a_browser_is_refused(http: httpx.Client) -> None:
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = http.post("/v1/chat/completions", json=CHAT, headers=headers)
        assert answer.status_code == 403
        assert error_of(answer)["code"] == "origin_not_allowed"
        assert "access-control-allow-origin" not in answer.headers


NESTED = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "[" * 900 + "]" * 900}}],
}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"messages": []}', 400),
        (b'{"messages": [{"role": "<wizard>", "content": "x"}]}', 400),
        (b'{"messages": [{"role": "user", "content": 5}]}', 400),
        (b'{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}', 400),
        (b'{"messages": [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}]}', 400),
        (json.dumps({**CHAT, "add_generation_prompt": True, "continue_final_message": True}).encode(), 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "n": 0}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "functions": []}', 400),
        (b"[" * 100_000, 400),
        (json.dumps({"messages": [{"role": "user", "content": "x"}, NESTED]}).encode(), 400),
        (b" " * 300_000, 413),
    ],
)
def test_a_body_that_is_none_gets_an_error_of_the_protocol(http: httpx.Client, body: bytes, status: int) -> None:
    answer = http.post("/v1/chat/completions", content=body)
    assert answer.status_code == status
    assert error_of(answer)["message"]


def test_a_compressed_body_is_refused_as_such(http: httpx.Client) -> None:
    for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
        answer = http.post(path, content=gzip.compress(json.dumps(CHAT).encode()), headers={"content-encoding": "gzip"})
        assert answer.status_code == 415
        assert "The body is compressed (gzip)." in answer.text


def test_one_who_would_rather_have_a_websocket_is_answered(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    assert http.get("/v1/models", headers=headers).status_code == 200
    assert "WebSocket" not in caplog.text


def test_other_paths_and_methods_say_so(http: httpx.Client) -> None:
    assert error_of(http.get("/v1/nothing"))["type"] == "not_found_error"
    answer = http.get("/v1/chat/completions")
    assert (answer.status_code, error_of(answer)["type"]) == (405, "invalid_request_error")


def test_tokens_go_there_and_back(http: httpx.Client) -> None:
    text = "Grüße, 世界! <|im_end|>"
    tokens = http.post("/tokenize", json={"content": text}).json()["tokens"]
    assert http.post("/detokenize", json={"tokens": tokens}).json() == {"content": text}
    plain = http.post("/tokenize", json={"content": text, "parse_special": False}).json()["tokens"]
    assert len(plain) > len(tokens), "<|im_end|> is text then"
    pieces = http.post("/tokenize", json={"content": text, "with_pieces": True}).json()["tokens"]
    assert [one["id"] for one in pieces] == tokens
    assert http.post("/detokenize", json={"tokens": [1 << 40]}).status_code in (200, 400)


def test_usage_and_timings_are_the_engine_s(http: httpx.Client) -> None:
    clear = "What is two plus two, and what is the capital of France, please?"  # no token of its answer is a near tie
    body = {**CHAT, "messages": [{"role": "user", "content": clear}]}
    first, second = (http.post("/v1/chat/completions", json=body).json() for _ in range(2))
    for done in (first, second):
        timings, usage = done["timings"], done["usage"]
        assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"]
        assert timings["cache_n"] == usage["prompt_tokens_details"]["cached_tokens"]
        assert timings["predicted_n"] == usage["completion_tokens"] == 4
        assert timings["prompt_ms"] > 0
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == second["usage"]["prompt_tokens"] - 1
    afresh = http.post("/v1/chat/completions", json={**body, "cache_prompt": False}).json()
    assert afresh["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert afresh["choices"][0]["message"] == first["choices"][0]["message"]


def test_the_token_that_ends_an_answer_counts(http: httpx.Client) -> None:
    name = "llamacpp:tokens_predicted_total"
    before = metrics_of(http)[name]
    (end,) = http.post("/tokenize", json={"content": "<|im_end|>"}).json()["tokens"]
    ended = http.post("/v1/chat/completions", json={**CHAT, "logit_bias": {end: 100}}).json()
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert ended["choices"][0]["message"]["content"] == ""
    n_more = metrics_of(http)[name] - before
    assert ended["usage"]["completion_tokens"] == ended["timings"]["predicted_n"] == n_more == 1


def test_the_progress_of_a_prompt_streams_where_it_is_asked_for(http: httpx.Client) -> None:
    messages = [{"role": "user", "content": "Seven ships sail. " * 60}]  # several batches
    asked = {"messages": messages, "max_tokens": 2, "stream": True, "return_progress": True, "cache_prompt": False}
    lines = http.post("/v1/chat/completions", json=asked).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    found = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert len(found) > 2
    assert found[0]["processed"] == found[0]["cache"] == 0
    assert found[-1]["processed"] == found[-1]["total"] > 200
    assert [one["processed"] for one in found] == sorted({one["processed"] for one in found})


def test_a_model_answers_under_the_name_that_it_was_given(engine: Host) -> None:
    with served(engine, alias="the-best") as named, named.http() as http:
        found = http.get("/v1/models").json()
        answer = http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 1}).json()
    assert [one["id"] for one in found["data"]] == ["the-best"]
    assert answer["model"] == "the-best"


def test_slots_and_metrics_count_and_tell_nothing_else(http: httpx.Client, inspector: httpx.Client) -> None:
    http.post("/v1/chat/completions", json=CHAT).raise_for_status()
    slots = http.get("/slots").json()
    assert [slot["id"] for slot in slots] == [0, 1, 2, 3]
    used = next(slot for slot in slots if slot.get("n_prompt_tokens"))
    assert not used["is_processing"]
    assert used["n_prompt_tokens_processed"] + used["n_prompt_tokens_cache"] == used["n_prompt_tokens"]
    assert not any("kvdesk_client" in slot for slot in slots)
    assert any(slot.get("kvdesk_client", "").endswith("plain") for slot in inspector.get("/slots").json())
    values = metrics_of(http)
    assert values["llamacpp:tokens_predicted_total"] >= 4
    assert values["kvdesk_cells"] == 1024
    assert 0 < values["kvdesk_cells_used"] <= values["kvdesk_cells_high_water"]
    assert values["llamacpp:requests_processing"] == 0


def test_another_kvdesk_reads_the_map_and_what_happens(
    running: Running, http: httpx.Client, inspector: httpx.Client
) -> None:
    http.post("/v1/chat/completions", json=CHAT).raise_for_status()
    told = [wire.from_json(Event, event) for event in inspector.get("/kv/map").json()["events"]]
    (view,) = [event for event in told if isinstance(event, CacheView)]
    assert any(lease.client.endswith(KEY.name) for lease in view.leases)
    with inspector.stream("GET", "/kv/events") as stream:
        kinds = []
        lines = stream.iter_lines()
        with running.http() as other:
            other.post("/v1/chat/completions", json=CHAT).raise_for_status()
        for line in lines:
            if line.startswith("data: "):
                event = wire.from_json(Event, json.loads(line.removeprefix("data: ")))
                kinds.append(type(event).__name__)
                if "TurnEnded" in kinds and "CacheView" in kinds[kinds.index("TurnEnded") :]:
                    break
    assert kinds[0] == "BackendReady"
    assert {"ModelLoaded", "ContextReady", "TokenTexts", "TurnStarted"} <= set(kinds)


def test_a_client_that_goes_away_frees_its_turn(running: Running, http: httpx.Client) -> None:
    long = {"messages": [{"role": "user", "content": "Tell me everything about the sea."}], "max_tokens": 900}
    for stream in (True, False):
        with socket.create_connection(("127.0.0.1", running.server.port)) as raw:
            raw.sendall(raw_request("/v1/chat/completions", {**long, "stream": stream}))
            wait_until(lambda: any(slot["is_processing"] for slot in http.get("/slots").json()))
        wait_until(lambda: not any(slot["is_processing"] for slot in http.get("/slots").json()), seconds=5.0)


def test_headers_that_do_not_come_close_the_connection(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.server.port)) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: lo")
        raw.settimeout(10.0)
        assert raw.recv(100) == b"", "header_s is 1 second here"


def test_the_key_says_who_asked(inspector: httpx.Client) -> None:
    inspector.post("/v1/chat/completions", json=CHAT, headers={"user-agent": "my-editor/3 (x)"}).raise_for_status()
    told = [wire.from_json(Event, event) for event in inspector.get("/kv/map").json()["events"]]
    names = {lease.client for event in told if isinstance(event, CacheView) for lease in event.leases}
    assert f"my-editor/3 · {INSPECT.name}" in names


def wait_until(true: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it never became true"
