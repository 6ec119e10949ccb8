"""Forty tasks for tools with a model that calls them: with `required` every call can be run; with `auto` as many of
them are right as llama-server gets from the same model with the same seeds.

KVDESK_TOOL_MODEL=….gguf, KVDESK_LLAMA_SERVER=…/llama-server (for `auto`): see `serving`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import pytest

from tests.stress.conftest import Row
from tests.stress.serving import TOOL_MODEL, kvdesk_serve, llama_server, needs_llama_server, needs_tool_model

N_CTX: Final = "2048"
MOST_TOKENS: Final = 128
TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
pytestmark = [pytest.mark.stress, pytest.mark.timeout(7200), needs_tool_model]


def tool(name: str, description: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TEXT: Final = {"type": "string"}
TOOLS: Final = {
    "get_weather": tool(
        "get_weather",
        "Weather of a city on one of the next days.",
        ("city",),
        city=TEXT,
        days={"type": "integer"},
        unit=TEXT | {"enum": ["celsius", "fahrenheit"]},
    ),
    "read_file": tool("read_file", "Text of a file.", ("path",), path=TEXT, lines={"type": "integer"}),
    "send_mail": tool(
        "send_mail",
        "Send a mail.",
        ("to", "subject", "body"),
        to={"type": "array", "items": TEXT},
        subject=TEXT,
        body=TEXT,
    ),
    "set_timer": tool("set_timer", "Start a timer.", ("seconds",), seconds={"type": "number"}, label=TEXT),
    "search": tool(
        "search",
        "Search the web.",
        ("query",),
        query=TEXT,
        filters={"type": "object", "properties": {"site": TEXT, "since": TEXT}, "required": ["site"]},
    ),
}
CITIES: Final = ("Paris", "São Paulo", "Reykjavík", "Tokyo", "Nairobi", "New York", "Zürich", "Oslo")
FILES: Final = (
    "src/parser.py",
    "README.md",
    "/etc/hosts",
    "notes/one two.txt",
    "C:\\temp\\a.log",
    "a.json",
    "b",
    "x.y.z",
)
PEOPLE: Final = ("ann@example.org", "bob@example.org", "eve@example.org", "kim@example.org")
SUBJECTS: Final = ("Lunch", "The report", "Rain tomorrow", "Thank you", "Holiday", "The key", "A question", "New desk")
TIMES: Final = ("90 seconds", "two minutes", "half a minute", "10 s", "an hour", "5 minutes", "45 seconds", "3 minutes")
THINGS: Final = ("blue whales", "the tallest tree", "GGUF files", "tea", "old maps", "bridges", "owls", "rain gauges")
TASKS: Final = tuple(
    task
    for i in range(8)
    for task in (
        ("get_weather", f"How is the weather in {CITIES[i]} in {i + 1} days? Use the tool."),
        ("read_file", f"Read the file {FILES[i]} and tell me what it says."),
        (
            "send_mail",
            f'Send a mail to {PEOPLE[i % 4]} with the subject "{SUBJECTS[i]}" that says "See you at {i + 1}".',
        ),
        ("set_timer", f"Start a timer of {TIMES[i]} for the tea."),
        ("search", f"Search the web for {THINGS[i]}, only on example.org."),
    )
)
"""Which tool is right for each."""


def has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the value follows a schema of these tools."""
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    if schema["type"] == "array":
        return all(has_type(one, schema["items"]) for one in value)
    if schema["type"] == "object":
        known, needed = schema["properties"], schema["required"]
        return all(key in value for key in needed) and all(
            k in known and has_type(v, known[k]) for k, v in value.items()
        )
    return True


def calls_of(http: httpx.Client, number: int, choice: str) -> list[tuple[str, Any]]:
    """The calls of an answer that can be run: a tool that was offered, with arguments of its schema."""
    body = {
        "messages": [{"role": "user", "content": TASKS[number][1]}],
        "tools": [*TOOLS.values()],
        "tool_choice": choice,
        "max_tokens": MOST_TOKENS,
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repeat_penalty": 1.0,
        "seed": number,
    }
    message = http.post("/v1/chat/completions", json=body).raise_for_status().json()["choices"][0]["message"]
    found = []
    for call in message.get("tool_calls") or ():
        try:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        except ValueError:
            continue
        if name in TOOLS and has_type(arguments, TOOLS[name]["function"]["parameters"]):
            found.append((name, arguments))
    return found


def n_right(http: httpx.Client, row: Row, name: str) -> int:
    """Tasks whose first call can be run and is of the right tool."""
    n = 0
    for number, (wanted, _) in enumerate(TASKS):
        calls = calls_of(http, number, "auto")
        n += bool(calls) and calls[0][0] == wanted
        row.say(f"{name}: {n} of {number + 1} right; {calls}")
    return n


def test_every_required_call_can_be_run(row: Row, tmp_path: Path) -> None:
    with kvdesk_serve(Path(TOOL_MODEL), tmp_path, "--n-ctx", N_CTX) as served:
        for number in range(len(TASKS)):
            calls = calls_of(served.http, number, "required")
            row.say(f"required: {number + 1} of {len(TASKS)}; {calls}")
            assert calls, TASKS[number]


@needs_llama_server
def test_auto_calls_as_often_as_llama_server(row: Row, tmp_path: Path) -> None:
    with kvdesk_serve(Path(TOOL_MODEL), tmp_path, "--n-ctx", N_CTX) as served:
        ours = n_right(served.http, row, "kvdesk")
    with llama_server(Path(TOOL_MODEL), "-c", N_CTX, "-np", "1") as http:
        theirs = n_right(http, row, "llama-server")
    assert ours >= max(theirs, 1)
