"""`GET /kv/score`: what a run asked is added up by the server, equal to what the engine told of each request."""

import threading
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.cache.reuse.score import Score, from_json, total
from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.protocol.chat import Asked, TurnEnded, TurnStarted
from kvdesk.server.config import Key
from kvdesk.values import replace
from tests.server.conftest import INSPECT, KEY, WAIT_S, Running, served

SYSTEM = "The time is {}. You are a careful assistant of a small library by the sea, and answer in one short sentence."
QUESTION = "What is the oldest book about whales that you have on your shelves?"


def named(key: Key, run: str) -> Key:
    return replace(key, value=f"{key.value}~{run}")


def ask(client: httpx.Client, *texts: str, **more: Any) -> dict[str, Any]:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    body = {"messages": messages, "max_tokens": 3, **more}
    found: dict[str, Any] = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    return found


def score(client: httpx.Client) -> Score:
    return from_json(client.get("/kv/score").raise_for_status().json())


def test_a_run_is_scored_by_itself_and_as_the_engine_told(running: Running) -> None:
    ended: list[TurnEnded] = []
    fourth = threading.Event()

    def take() -> None:
        ended.extend(event for event in subscription.take() if isinstance(event, TurnEnded))
        if len(ended) >= 4:
            fourth.set()

    subscription = running.host.subscribe(take)
    with running.http(named(KEY, "r1")) as client, running.http(named(KEY, "r2")) as other:
        first = ask(client, SYSTEM.format("14:03"), QUESTION)
        said = first["choices"][0]["message"]["content"]
        ask(client, SYSTEM.format("14:03"), QUESTION, said, "And the newest?")
        ask(other, SYSTEM.format("09:59"), QUESTION)
        dated = ask(client, SYSTEM.format("14:04"), QUESTION, said, "And the newest?")
        assert fourth.wait(WAIT_S)
        subscription.close()
        found = score(client)
        assert score(other).requests == 1
    mine = [event.stats for i, event in enumerate(ended) if i != 2]
    assert found == total(Score().with_request(stats) for stats in mine)
    assert (found.requests, list(found.misses)) == (3, [UsualCause.DATE])
    missed = found.misses[UsualCause.DATE]
    usage = dated["usage"]
    n_read = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
    assert 30 < missed.tokens <= n_read, "all behind the time had been in the cache"
    assert missed.seconds > 0


def test_the_engine_tells_how_a_program_asked(running: Running) -> None:
    found: list[Asked | None] = []
    begun = threading.Event()

    def take() -> None:
        found.extend(event.asked for event in subscription.take() if isinstance(event, TurnStarted))
        if found:
            begun.set()

    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    subscription = running.host.subscribe(take)
    with running.http() as client:
        ask(client, SYSTEM.format("now"), QUESTION, tools=[tool, tool], reasoning_effort="none")
    assert begun.wait(WAIT_S)
    subscription.close()
    assert found == [Asked("/chat/completions", 2, thinks=False)]


def test_another_question_is_no_miss(running: Running) -> None:
    with running.http(named(KEY, "new")) as client:
        ask(client, SYSTEM.format("noon"), QUESTION)
        ask(client, SYSTEM.format("noon"), "Where are the maps?")
        assert score(client).misses == {}
        assert score(client).requests == 2


def test_another_conversation_that_quotes_the_same_text_is_no_miss(running: Running) -> None:
    """As agents ask for a title: other instructions, then the same question."""
    with running.http(named(KEY, "title")) as client:
        told = "You name conversations. " + "Names are short, and in the language of the conversation. " * 5
        ask(client, told, QUESTION)
        ask(client, "You name books, as each of your readers wants it.", QUESTION)
        assert (score(client).requests, score(client).misses) == (2, {})


@pytest.mark.parametrize("sent", ["wrong", "wrong~r1", f"{KEY.value}~", f"{KEY.value}~r 1", f"{KEY.value}~{'r' * 33}"])
def test_a_run_opens_no_door(running: Running, sent: str) -> None:
    with running.http(replace(KEY, value=sent)) as client:
        assert client.get("/kv/score").status_code == 401


def test_a_run_has_the_rights_of_its_key(running: Running) -> None:
    with running.http(named(INSPECT, "look")) as client:
        assert client.get("/kv/map").status_code == 200
    with running.http(named(KEY, "look")) as client:
        assert client.get("/kv/map").status_code == 403


def test_without_keys_a_run_has_a_name_too(running: Running) -> None:
    with (
        served(running.host, keys=()) as opened,
        opened.http(Key("anything~mine")) as client,
        opened.http(Key("~other")) as other,
    ):
        ask(client, QUESTION)
        assert score(client).requests == 1
        assert score(other).requests == 0
