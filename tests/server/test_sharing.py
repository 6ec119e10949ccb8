"""Who shares beginnings with whom, which cells go first, and why so much was reused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.host.host import Host
from kvdesk.protocol import wire
from kvdesk.protocol.cache import CacheView, Lease
from kvdesk.protocol.chat import TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.server.config import Key, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import Sampling
from tests.server.conftest import INSPECT, Running

ONE, TWO = Key("sk-test-key-one", "one"), Key("sk-test-key-two", "two", inspect=True)
SYSTEM = "You are a careful assistant of a small library by the sea. You answer in one short sentence each time."


@pytest.fixture
def apart(engine: Host) -> Iterator[Running]:
    """A server whose keys share nothing."""
    server = Server(engine, ServerConfig(port=0, keys=(ONE, TWO), share_prefixes=False), Sampling(temperature=0.0))
    server.start()
    yield Running(engine, server)
    server.close()


def cached(client: httpx.Client, *texts: str) -> int:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    done = client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 3}).raise_for_status().json()
    return int(done["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_keys_that_share_nothing_tell_nothing(apart: Running) -> None:
    with apart.http(ONE) as one, apart.http(TWO) as two:
        assert cached(one, SYSTEM, "What is the oldest book about whales?") == 0
        assert cached(two, SYSTEM, "What is the oldest book about whales?") == 0
        assert cached(one, SYSTEM, "What is the oldest book about whales?") > 20
        assert cached(two, SYSTEM, "Where are the maps of the harbour?") > 15


def test_why_names_the_difference_and_its_usual_cause(running: Running) -> None:
    prompt = "The time is {}. " + SYSTEM + " This text is about cats and their houses."
    with running.http(INSPECT) as client, client.stream("GET", "/kv/events") as stream:
        lines = stream.iter_lines()
        with running.http() as other:
            cached(other, prompt.format("14:03"), "Hello, who are you?")
            cached(other, prompt.format("14:04"), "Hello, who are you?")
        why = next(islice(whys(lines), 1, None))
    assert "The cache held “3” at position" in why
    assert "the prompt has “4”" in why
    assert "the date or the time" in why
    assert "cannot be cut" not in why, "ten tokens alike are too few to share"


TOOLS = [{"type": "function", "function": {"name": name, "description": "x"}} for name in ("look", "find")]


@pytest.mark.parametrize("later", [TOOLS[::-1], TOOLS[:1], []], ids=["another order", "one left out", "all left out"])
def test_why_names_other_tools_with_a_call_in_the_history(running: Running, later: list[dict[str, Any]]) -> None:
    system, question = {"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Where are {len(later)}?"}
    asked: dict[str, Any] = {"messages": [system, question], "tools": TOOLS}
    with running.http(INSPECT) as client, client.stream("GET", "/kv/events") as stream:
        lines = stream.iter_lines()
        with running.http() as other:
            called = {**asked, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 40}
            first = other.post("/v1/chat/completions", json=called, timeout=60.0)
            assert first.status_code == 200, first.text
            given = first.json()["choices"][0]["message"]
            result = {"role": "tool", "content": "here", "tool_call_id": given["tool_calls"][0]["id"]}
            asked["messages"] += [given, result]
            for offered in (TOOLS, later):
                body = {**asked, "tools": offered, "max_tokens": 1}
                other.post("/v1/chat/completions", json=body, timeout=60.0).raise_for_status()
        why = next(islice(whys(lines), 2, None))
    assert "tools" in why
    assert "message was changed" not in why


def test_why_blames_no_tools_for_another_question_behind_them(running: Running) -> None:
    with running.http(INSPECT) as client:
        for question in ("Which ship came first?", "Where do they sleep?"):
            asked = {"messages": [{"role": "user", "content": question}], "tools": TOOLS, "max_tokens": 1}
            done = client.post("/v1/chat/completions", json=asked, timeout=60.0).raise_for_status().json()
    assert done["prefix_cache"]["cause"] == "edited"
    assert "tools" not in done["prefix_cache"]["message"]


def test_why_names_an_answer_that_its_client_edited(running: Running) -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": f"{SYSTEM} Who edits?"}], "max_tokens": 12}
    with running.http(INSPECT) as client, client.stream("GET", "/kv/events") as stream:
        lines = stream.iter_lines()
        with running.http() as other:
            given = other.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"]
            edited = {"role": "assistant", "content": f"{given[:8]} It was edited."}
            asked["messages"] += [edited, {"role": "user", "content": "Why?"}]
            other.post("/v1/chat/completions", json=asked).raise_for_status()
        why = next(islice(whys(lines), 1, None))
    assert "A message was changed (message 2)" in why


@pytest.mark.parametrize(
    ("again", "word"),
    [
        ('{"exact": null, "city": "Rom", "days": 3}', "another order"),
        ('{"city": "Rom", "days": 3}', "without the fields that are null"),
        ('{"city": "Oslo", "days": 3, "exact": null}', "(message 2)"),
    ],
)
def test_why_names_how_a_call_was_written_again(running: Running, again: str, word: str) -> None:
    def asked(arguments: str) -> dict[str, Any]:
        call = {"id": "c12345678", "type": "function", "function": {"name": "look", "arguments": arguments}}
        question = {"role": "user", "content": f"{SYSTEM} Who looks? {word}"}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "content": "It rains there.", "tool_call_id": call["id"]}
        tools = [{"type": "function", "function": {"name": "look"}}]
        return {"messages": [question, answer, result], "tools": tools, "tool_choice": "none", "max_tokens": 2}

    with running.http(INSPECT) as client, client.stream("GET", "/kv/events") as stream:
        lines = stream.iter_lines()
        with running.http() as other:
            for arguments in ('{"city": "Rom", "days": 3, "exact": null}', again):
                other.post("/v1/chat/completions", json=asked(arguments)).raise_for_status()
        why = next(islice(whys(lines), 1, None))
    assert word in why


def test_requests_take_no_more_sequences_than_there_are(running: Running) -> None:
    with running.http(INSPECT) as client:
        chats = {lease.conversation for lease in leases(client) if not lease.client}  # of other tests: they go last
        for i in range(8):
            cached(client, f"{SYSTEM} This is visitor {i * 7919} with a question of his own.", "Hello?")
        found = leases(client)
    assert len(found) == 4, "as many as there are sequences, and no more"
    assert all(lease.client for lease in found if lease.conversation not in chats)


def leases(client: httpx.Client) -> list[Lease]:
    return [lease for event in told(client) if isinstance(event, CacheView) for lease in event.leases]


def told(client: httpx.Client) -> list[Any]:
    return [wire.from_json(Event, event) for event in client.get("/kv/map").json()["events"]]


def whys(lines: Iterator[str]) -> Iterator[str]:
    """Of the requests that another kvdesk hears of."""
    for line in lines:
        if line.startswith("data: ") and '"type":"TurnEnded"' in line:
            event = wire.from_json(Event, json.loads(line.removeprefix("data: ")))
            assert isinstance(event, TurnEnded)
            yield event.stats.why


def test_a_program_keeps_no_more_than_its_share(engine: Host) -> None:
    server = Server(engine, ServerConfig(port=0, keys=(TWO,), client_share=0.25), Sampling(temperature=0.0))
    server.start()
    words = ["red", "blue", "green", "black", "white"]
    with Running(engine, server).http(TWO, headers={"user-agent": "hog", "x-api-key": TWO.value}) as client:
        for i, word in enumerate(words):
            cached(client, f"{word} {i} " * 40, "Which?")
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith("kvdesk_client_")]
        shown = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines if '"hog' in line}
    server.close()
    assert 100 < shown["kvdesk_client_cells"] <= 256
