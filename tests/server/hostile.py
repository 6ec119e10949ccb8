"""Clients that mean harm, or die: bodies that are none, connections that end anywhere, readers who do not read."""

import json
import random
import socket
import string
import time
from typing import Any

import httpx2 as httpx
from hypothesis import strategies as st

from tests.server.conftest import Running, metrics_of, raw_request

FIELDS = (
    *("messages", "prompt", "n", "stream", "stream_options", "stop", "seed", "max_tokens", "temperature", "top_p"),
    *("logprobs", "top_logprobs", "logit_bias", "response_format", "grammar", "json_schema", "tools", "tool_choice"),
    *("top_k", "min_p", "samplers", "mirostat", "repeat_last_n", "dry_sequence_breakers", "cache_prompt", "echo"),
    *("best_of", "n_probs", "return_tokens", "response_fields", "wibble", "system", "stop_sequences", "thinking"),
    *("output_config", "input", "instructions", "text"),
    *("reasoning", "max_output_tokens", "previous_response_id", "include", "store"),
    *("options", "format", "think", "raw", "suffix", "images", "dimensions"),
)
_BLOCKS = ("text", "thinking", "tool_use", "tool_result", "image", "input_text", "output_text", "x")
_ITEMS = ("message", "function_call", "function_call_output", "reasoning", "item_reference", "x")
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
_roles = st.sampled_from(["user", "assistant", "system", "tool", "x"])
_messages = st.lists(st.fixed_dictionaries({}, optional={"role": _roles, "content": _values}), max_size=3)
_parts = st.fixed_dictionaries(
    {"type": st.sampled_from(_BLOCKS)},
    optional=dict.fromkeys(("text", "thinking", "id", "name", "input", "tool_use_id", "content"), _values),
)
_block_messages = st.fixed_dictionaries({"role": _roles}, optional={"content": st.lists(_parts, max_size=3)})
_items = st.fixed_dictionaries(
    {"type": st.sampled_from(_ITEMS)},
    optional={
        **dict.fromkeys(("id", "call_id", "name", "arguments", "output", "encrypted_content"), _values),
        "role": _roles,
        "content": st.lists(_parts, max_size=3) | _values,
    },
)
BODIES = st.one_of(
    st.binary(max_size=200),
    _values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(FIELDS), _values, max_size=5).map(lambda value: json.dumps(value).encode()),
    st.tuples(_messages, st.dictionaries(st.sampled_from(FIELDS[2:]), _values, max_size=3)).map(
        lambda pair: json.dumps({"messages": pair[0], "max_tokens": 1, **pair[1]}).encode()
    ),
    st.dictionaries(st.sampled_from(FIELDS), _values, max_size=3).map(
        lambda value: json.dumps({"prompt": "Hi", "input": "Hi", "max_tokens": 1, **value}).encode()
    ),
    st.lists(_block_messages, max_size=3).map(lambda value: json.dumps({"messages": value, "max_tokens": 1}).encode()),
    st.lists(_items, max_size=3).map(lambda value: json.dumps({"input": value, "max_output_tokens": 1}).encode()),
)
PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/completion",
    "/infill",
    "/apply-template",
    "/tokenize",
    "/detokenize",
)
MESSAGES = ("/v1/messages", "/v1/messages/count_tokens")
RESPONSES = ("/v1/responses", "/v1/responses/input_tokens")
OLLAMA = ("/api/chat", "/api/generate", "/api/show")


def send(http: httpx.Client, path: str, body: bytes) -> None:
    """It is answered, or refused in the form of the protocol; never an error of ours. Long answers are cut off."""
    with http.stream("POST", path, content=body) as answer:
        kind = answer.headers.get("content-type", "")
        assert answer.status_code in (200, 400, 404, 413, 501, 503), (answer.status_code, body)
        if answer.status_code != 200:
            error = json.loads(answer.read())["error"]
            assert error if path in OLLAMA else error["message"], body
        elif not kind.startswith(("text/event-stream", "application/x-ndjson")):
            answer.read()


def one_that_dies(running: Running, rng: random.Random) -> None:
    """A request whose client goes away at any moment, mostly in the middle of the answer."""
    data = raw_request(PATHS[0], a_request(rng))
    with socket.create_connection(("127.0.0.1", running.server.port)) as raw:
        if rng.random() < 0.3:
            raw.sendall(data[: rng.randrange(len(data))])
            return
        raw.sendall(data)
        raw.settimeout(rng.random() * 0.05 + 0.001)
        try:
            raw.recv(rng.choice([1, 100, 10_000]))
        except TimeoutError:
            pass


def a_request(rng: random.Random, **more: Any) -> dict[str, Any]:
    """Words at random, some of them the same as in other requests."""
    words = ["".join(rng.choices(string.ascii_lowercase, k=4)) for _ in range(rng.randrange(1, 30))]
    system = f"You are helper number {rng.randrange(3)} of this house. Answer in few words."
    messages = [{"role": "system", "content": system}, {"role": "user", "content": " ".join(words)}]
    stream = rng.random() < 0.5
    return {
        "messages": messages,
        "max_tokens": rng.randrange(1, 4),
        "stream": stream,
        "n": rng.choice([1, 1, 1, 2]),
        **more,
    }


def wait_until_quiet(http: httpx.Client, seconds: float = 30.0) -> None:
    """No request runs or waits any more."""
    until = time.monotonic() + seconds
    while True:
        values = metrics_of(http)
        busy = values["llamacpp:requests_processing"] + values["llamacpp:requests_deferred"]
        if not busy:
            return
        assert time.monotonic() < until, f"{busy:g} requests never ended"
        time.sleep(0.02)
