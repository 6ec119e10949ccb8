"""Why a prompt was read goes out with the answer, in every protocol; texts only to a key that may see them."""

import json
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.server.config import Key
from tests.server.conftest import INSPECT, KEY, Running, metrics_of
from tests.server.test_score import QUESTION, SYSTEM

HEADER = "x-kvdesk-prefix-cache"
USER = {"role": "user", "content": QUESTION}


def chat(system: str) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": system}, USER], "max_tokens": 3}


def message(system: str) -> dict[str, Any]:
    return {"system": system, "messages": [USER], "max_tokens": 3}


def response(system: str) -> dict[str, Any]:
    return {"instructions": system, "input": QUESTION, "max_output_tokens": 3, "store": False}


def text(system: str) -> dict[str, Any]:
    return {"prompt": f"{system} {QUESTION}", "max_tokens": 3}


PROTOCOLS = {
    "/v1/chat/completions": chat,
    "/v1/messages": message,
    "/v1/responses": response,
    "/completion": text,
    "/v1/completions": text,
}


def told(found: Any) -> list[dict[str, Any]]:
    """Every such object in an answer, or in an event of one."""
    if not isinstance(found, dict):
        return []
    here = [found["prefix_cache"]] if "prefix_cache" in found else []
    return here + [one for name in ("message", "response") for one in told(found.get(name))]


@pytest.mark.parametrize("path", PROTOCOLS)
def test_every_protocol_says_what_was_reused_and_why_not_more(running: Running, path: str) -> None:
    title = path.replace("/", " ")
    with running.http(Key(f"{INSPECT.value}~{path.encode().hex()[:20]}")) as client:
        client.post(path, json=PROTOCOLS[path](SYSTEM.format(f"14:03 {title}"))).raise_for_status()
        again = client.post(path, json=PROTOCOLS[path](SYSTEM.format(f"14:04 {title}"))).raise_for_status()
        streamed = PROTOCOLS[path](SYSTEM.format(f"14:05 {title}")) | {"stream": True}
        stream = client.post(path, json=streamed).raise_for_status()
    (found,) = told(again.json())
    assert found["cause"] == UsualCause.DATE
    assert 0 <= found["reused"] <= found["at_token"]
    assert found["read"] > 30
    assert "The cache held “" in found["message"]
    expected = f'reused={found["reused"]}, read={found["read"]}, cause="date", at_token={found["at_token"]}'
    assert again.headers[HEADER] == expected
    events = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: {")]
    in_stream = [one for event in events for one in told(event)]
    assert in_stream
    assert all(one == in_stream[0] for one in in_stream)
    assert stream.headers[HEADER].startswith(f"reused={in_stream[0]['reused']}, ")


TURNS: dict[str, tuple[str, str, Callable[[Any], list[Any]], str]] = {
    "/v1/chat/completions": ("messages", "max_tokens", lambda done: [done["choices"][0]["message"]], ""),
    "/v1/messages": (
        *("messages", "max_tokens", lambda done: [{"role": "assistant", "content": done["content"]}]),
        "/v1/messages/count_tokens",
    ),
    "/v1/responses": ("input", "max_output_tokens", lambda done: done["output"], "/v1/responses/input_tokens"),
}
"""Field of the conversation, that of the limit, what of an answer goes back, and what counts a prompt."""


@pytest.mark.parametrize("path", TURNS)
def test_every_turn_finds_all_before_it_in_the_cache(http: httpx.Client, path: str) -> None:
    """Of an answer the token sampled last is not in the cache."""
    field, limit, answer_of, counting = TURNS[path]
    said: list[Any] = []
    before = 0
    for turn in range(4):
        said.append({"role": "user", "content": f"Tell me about the mountains of the moon. ({turn}, {path})"})
        body = {field: said, limit: 10, "temperature": 0.8, "seed": turn}
        counted = http.post(counting, json=body).raise_for_status().json()["input_tokens"] if counting else None
        done = http.post(path, json=body).raise_for_status().json()
        found, usage = done["prefix_cache"], done["usage"]
        n_prompt = found["reused"] + found["read"]
        assert counted in (None, n_prompt)
        assert found["reused"] >= before - 1
        before = n_prompt + usage.get("completion_tokens", usage.get("output_tokens"))
        said += answer_of(done)


def test_texts_of_the_cache_need_the_right_to_see_them(running: Running) -> None:
    with running.http(Key(f"{KEY.value}~texts")) as client:
        first = client.post("/v1/chat/completions", json=chat(SYSTEM.format("Monday, 9:01"))).raise_for_status().json()
        found = client.post("/v1/chat/completions", json=chat(SYSTEM.format("Monday, 9:02"))).raise_for_status().json()
    assert set(first["prefix_cache"]) == {"reused", "read", "cause", "at_token", "message"}
    reused, read = found["prefix_cache"]["reused"], found["prefix_cache"]["read"]
    usage = found["usage"]
    assert (reused, read + reused) == (usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"])
    assert found["prefix_cache"]["message"] == (
        f"{reused:,} of {reused + read:,} tokens were in the cache, {read:,} prefilled. "
        "Cause: date or time in the system prompt."
    )


def test_what_a_program_does_not_share_says_so(running: Running) -> None:
    with running.http(Key(f"{KEY.value}~alone")) as client:
        for _ in range(2):
            body = chat(SYSTEM.format("alone")) | {"cache_prompt": False}
            found = client.post("/v1/chat/completions", json=body).raise_for_status().json()["prefix_cache"]
        assert list(client.get("/kv/score").json()["misses"]) == ["not shared"]
    assert (found["reused"], found["cause"]) == (0, "not shared")


def test_misses_are_counted_by_cause(running: Running, http: httpx.Client) -> None:
    names = [f'kvdesk_prefix_{what}_total{{cause="date"}}' for what in ("misses", "reread_tokens", "reread_seconds")]
    before = metrics_of(http)
    with running.http(Key(f"{KEY.value}~counted")) as client:
        for time in ("10:31", "10:32"):
            client.post("/v1/chat/completions", json=chat(SYSTEM.format(time))).raise_for_status()
    after = metrics_of(http)
    misses, tokens, seconds = (after[name] - before.get(name, 0.0) for name in names)
    assert misses >= 1
    assert tokens > 30
    assert seconds > 0
