"""Streams of `/v1/messages` and `/v1/responses`, event by event, beside those of llama-server for the same requests.
None calls a tool: llama-server does not force the small models to (KVDESK_LLAMA_SERVER: `serving`).
"""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import pytest

from tests.server.conftest import KEY, Running, engine, running  # noqa: F401 - fixtures
from tests.stress.serving import llama_server, needs_llama_server

WEATHER: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED: Any = [{"role": "user", "content": "Use the tool: how is the weather in Rome?"}]
MESSAGES_TOOL: Any = {"name": "weather", "description": "Tells it.", "input_schema": WEATHER}
RESPONSES_TOOL: Any = {"type": "function", "name": "weather", "description": "Tells it.", "parameters": WEATHER}
MESSAGES: Any = {"messages": ASKED, "temperature": 0.0, "max_tokens": 12}
RESPONSES: Any = {"input": ASKED, "temperature": 0.0, "max_output_tokens": 12}
CALLED: Any = {"type": "tool_use", "id": "t12345678", "name": "weather", "input": {"city": "Rome"}}
TOLD: Any = {"type": "tool_result", "tool_use_id": "t12345678", "content": "sunny"}
HISTORY: Any = [*ASKED, {"role": "assistant", "content": [CALLED]}, {"role": "user", "content": [TOLD]}]
ITEMS: Any = [
    *ASKED,
    {"type": "function_call", "call_id": "c12345678", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "c12345678", "output": "sunny"},
]
ONLY_HERE: Final = ("ping",)
"""Events that llama-server does not send: Anthropic sends one behind the first."""
OTHER_NAMES: Final = {"response.incomplete": "response.completed"}
"""An answer that is cut off is complete in llama-server's."""


def stream(http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = http.post(path, json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def kind(event: dict[str, Any]) -> str:
    """Its type, with that of what it brings."""
    inner = next((event[name]["type"] for name in ("content_block", "item") if name in event), "")
    delta = event["delta"].get("type", "") if isinstance(event.get("delta"), dict) else ""
    return " ".join(part for part in (OTHER_NAMES.get(event["type"], event["type"]), inner, delta) if part)


def fields(value: Any, at: str = "") -> Iterator[str]:
    """Paths of all fields, lists as their first value."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield f"{at}.{name}"
            yield from fields(part, f"{at}.{name}")
    elif isinstance(value, list) and value:
        yield from fields(value[0], f"{at}[]")


@pytest.fixture(scope="module")
def other(model_file: Path) -> Iterator[httpx.Client]:
    with llama_server(model_file) as http:
        yield http


@pytest.mark.stress
@pytest.mark.timeout(3600)
@needs_llama_server
@pytest.mark.parametrize("engine", ["embedded"], indirect=True)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {**MESSAGES, "system": "Be brief."}),
        ("/v1/messages", {**MESSAGES, "messages": HISTORY, "tools": [MESSAGES_TOOL], "tool_choice": {"type": "none"}}),
        ("/v1/responses", {**RESPONSES, "instructions": "Be brief."}),
        ("/v1/responses", {**RESPONSES, "input": ITEMS, "tools": [RESPONSES_TOOL], "tool_choice": "none"}),
    ],
    ids=["text", "result", "response", "output"],
)
def test_a_stream_has_every_event_and_field_of_llama_servers(
    running: Running,  # noqa: F811
    other: httpx.Client,
    path: str,
    body: dict[str, Any],
) -> None:
    with running.http(KEY) as http:
        ours, theirs = stream(http, path, body), stream(other, path, body)
    ours = [event for event in ours if event["type"] not in ONLY_HERE]
    assert [name for name, _ in groupby(map(kind, ours))] == [name for name, _ in groupby(map(kind, theirs))]
    known: dict[str, set[str]] = {}
    for event in ours:
        known.setdefault(kind(event), set()).update(fields(event))
    missing = {f"{kind(event)}: {field}" for event in theirs for field in set(fields(event)) - known[kind(event)]}
    assert not missing
