"""Who shares beginnings with whom, which cells go first, and why so much was reused."""

from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.host.host import Host
from kvdesk.protocol import wire
from kvdesk.protocol.cache import ANSWER_ID, CacheView, Lease
from kvdesk.protocol.messages import Event
from kvdesk.server.config import Key
from tests.server.conftest import INSPECT, Running, metrics_of, served

ONE, TWO = Key("sk-test-key-one", "one"), Key("sk-test-key-two", "two", inspect=True)
SYSTEM = "You are a careful assistant of a small library by the sea. You answer in one short sentence each time."


@pytest.fixture
def apart(engine: Host) -> Iterator[Running]:
    """A server whose keys share nothing."""
    with served(engine, keys=(ONE, TWO), share_prefixes=False) as found:
        yield found


def cached(client: httpx.Client, system: str, question: str) -> int:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return int(answered(client, messages=messages)["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_keys_that_share_nothing_tell_nothing(apart: Running) -> None:
    with apart.http(ONE) as one, apart.http(TWO) as two:
        assert cached(one, SYSTEM, "What is the oldest book about whales?") == 0
        assert cached(two, SYSTEM, "What is the oldest book about whales?") == 0
        assert cached(one, SYSTEM, "What is the oldest book about whales?") > 20
        assert cached(two, SYSTEM, "Where are the maps of the harbour?") > 15


def answered(client: httpx.Client, **body: Any) -> Any:
    """The answer to such a chat request."""
    return client.post("/v1/chat/completions", json={"max_tokens": 1, **body}).raise_for_status().json()


def why(client: httpx.Client, **body: Any) -> str:
    """What the server says of the prompt of such a request and the cache."""
    return str(answered(client, **body)["prefix_cache"]["message"])


def test_why_names_the_difference_and_its_usual_cause(inspector: httpx.Client) -> None:
    prompt = "The time is {}. " + SYSTEM + " This text is about cats and their houses."
    for time in ("14:03", "14:04"):
        said = why(inspector, messages=[{"role": "user", "content": prompt.format(time)}])
    assert "The cache held “3” at position" in said
    assert "the prompt has “4”" in said
    assert "the date or the time" in said
    assert "cannot be cut" not in said, "ten tokens alike are too few to share"


TOOLS = [{"type": "function", "function": {"name": name, "description": "x"}} for name in ("look", "find")]


@pytest.mark.parametrize("later", [TOOLS[::-1], TOOLS[:1], []], ids=["another order", "one left out", "all left out"])
def test_why_names_other_tools_with_a_call_in_the_history(inspector: httpx.Client, later: list[dict[str, Any]]) -> None:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Where are {len(later)}?"}]
    called = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 40}
    given = answered(inspector, messages=messages, tools=TOOLS, **called)["choices"][0]["message"]
    messages += [given, {"role": "tool", "content": "here", "tool_call_id": given["tool_calls"][0]["id"]}]
    for offered in (TOOLS, later):
        said = why(inspector, messages=messages, tools=offered)
    assert "tools" in said
    assert "message was changed" not in said


def test_why_blames_no_tools_for_another_question_behind_them(inspector: httpx.Client) -> None:
    for question in ("Which ship came first?", "Where do they sleep?"):
        found = answered(inspector, messages=[{"role": "user", "content": question}], tools=TOOLS)["prefix_cache"]
    assert found["cause"] == "edited"
    assert "tools" not in found["message"]


def test_why_names_an_answer_that_its_client_edited(inspector: httpx.Client) -> None:
    messages = [{"role": "user", "content": f"{SYSTEM} Who edits?"}]
    given = answered(inspector, messages=messages, max_tokens=12)["choices"][0]["message"]["content"]
    edited = {"role": "assistant", "content": f"{given[:8]} It was edited."}
    said = why(inspector, messages=[*messages, edited, {"role": "user", "content": "Why?"}])
    assert "A message was changed (message 2)" in said


@pytest.mark.parametrize(
    ("again", "word"),
    [
        ('{"exact": null, "city": "Rom", "days": 3}', "another order"),
        ('{"city": "Rom", "days": 3}', "without the fields that are null"),
        ('{"city": "Oslo", "days": 3, "exact": null}', "(message 2)"),
    ],
)
def test_why_names_how_a_call_was_written_again(inspector: httpx.Client, again: str, word: str) -> None:
    for arguments in ('{"city": "Rom", "days": 3, "exact": null}', again):
        call = {"id": "c12345678", "type": "function", "function": {"name": "look", "arguments": arguments}}
        question = {"role": "user", "content": f"{SYSTEM} Who looks? {word}"}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "content": "It rains there.", "tool_call_id": call["id"]}
        said = why(inspector, messages=[question, answer, result], tools=TOOLS, tool_choice="none")
    assert word in said


def test_requests_take_no_more_sequences_than_there_are(inspector: httpx.Client) -> None:
    chats = {lease.conversation for lease in leases(inspector) if not lease.client}  # of other tests: they go last
    for i in range(8):
        cached(inspector, f"{SYSTEM} This is visitor {i * 7919} with a question of his own.", "Hello?")
    found = leases(inspector)
    assert len(found) == 4, "as many as there are sequences, and no more"
    assert all(lease.client for lease in found if lease.conversation not in chats)


def test_who_asks_the_same_again_takes_no_other_sequence(inspector: httpx.Client) -> None:
    def ask(text: str) -> str:
        return str(answered(inspector, messages=[{"role": "user", "content": text}], max_tokens=24)["id"])

    kept = [ask(f"{i} {SYSTEM}") for i in range(3)]
    *_, last = [ask(f"Again: {SYSTEM}") for _ in range(5)]
    found = {f"{ANSWER_ID}{lease.conversation}" for lease in leases(inspector) if lease.client}
    assert last in found
    assert found <= {*kept, last}, "the others of the five were this one"


def leases(client: httpx.Client) -> list[Lease]:
    told = [wire.from_json(Event, event) for event in client.get("/kv/map").json()["events"]]
    return [lease for event in told if isinstance(event, CacheView) for lease in event.leases]


def test_a_program_keeps_no_more_than_its_share(engine: Host) -> None:
    with served(engine, client_share=0.25) as running, running.http(INSPECT) as client:
        client.headers["user-agent"] = "hog"
        for i, word in enumerate(("red", "blue", "green", "black", "white")):
            cached(client, f"{word} {i} " * 40, "Which?")
        shown = metrics_of(client)
    (n_cells,) = (n for name, n in shown.items() if name.startswith('kvdesk_client_cells{client="hog'))
    assert 100 < n_cells <= 256
