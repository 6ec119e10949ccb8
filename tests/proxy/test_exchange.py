"""What a server counted is read from its answer, whole or a stream, within bounds."""

import json
from typing import Any

import pytest

from kvdesk.cache.reuse.prompt_change import Part, Prompt
from kvdesk.proxy import exchange, sessions
from kvdesk.proxy.exchange import AnswerTap, Usage
from kvdesk.proxy.sessions import Sessions

TIMINGS = {"cache_n": 90, "prompt_n": 10, "prompt_per_second": 50.0, "predicted_n": 7}


def tapped(*pieces: bytes, kind: str = "application/json", encoding: str = "") -> Usage:
    tap = AnswerTap(kind, encoding)
    for piece in pieces:
        tap.feed(piece)
    tap.close()
    return tap.usage


def events(*values: Any) -> bytes:
    return b"".join(b"event: x\r\ndata: " + json.dumps(value).encode() + b"\r\n\r\n" for value in values)


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (
            {"usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}},
            Usage(100, 60, 5),
        ),
        ({"usage": {"prompt_tokens": 100, "completion_tokens": 5}}, Usage(100, -1, 5)),
        ({"usage": {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64}}, Usage(100, 64)),
        (
            {"usage": {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}}},
            Usage(100, 60, 5),
        ),
        (
            {"usage": {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}},
            Usage(100, 60),
        ),
        ({"usage": {"prompt_tokens": 100, "completion_tokens": 7}, "timings": TIMINGS}, Usage(100, 90, 7, 50.0)),
        ({"content": "x", "timings": TIMINGS}, Usage(100, 90, 7, 50.0)),
        ([{"timings": TIMINGS}, {}], Usage(100, 90, 7, 50.0)),
        ({"usage": {"prompt_tokens": "many", "prompt_tokens_details": [1]}, "timings": {"prompt_n": True}}, Usage()),
        ({"choices": []}, Usage()),
        *(({"timings": TIMINGS | {"prompt_per_second": speed}}, Usage(100, 90, 7)) for speed in (10**400, -1, "9")),
        ({"model": "a", "done": True, "prompt_eval_count": 26, "eval_count": 290}, Usage(26, -1, 290)),
        ({"message": {"role": "assistant"}, "done": True, "prompt_eval_count": 26}, Usage(26, -1, 0)),
        (3, Usage()),
    ],
)
def test_an_answer_says_what_it_cost(value: Any, usage: Usage) -> None:
    text = json.dumps(value).encode()
    assert tapped(text[:7], text[7:]) == usage


def test_a_stream_says_so_in_its_events_however_it_is_cut() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}}
    delta = {"type": "message_delta", "usage": {"output_tokens": 12}}
    stream = events(start, {"usage": None}, delta) + b"data: [DONE]\n\n"
    for n in (1, 7, 1000):
        pieces = [stream[i : i + n] for i in range(0, len(stream), n)]
        assert tapped(*pieces, kind="text/event-stream; charset=utf-8") == Usage(100, 90, 12)
    completed = {"type": "response.completed", "response": {"usage": {"input_tokens": 9}}, "timings": TIMINGS}
    assert tapped(events(completed), kind="text/event-stream") == Usage(100, 90, 7, 50.0)


@pytest.mark.parametrize(("data", "encoding"), [(b"\x1f\x8b broken", "gzip"), (b"?", "br"), (b'{"usage": {', "")])
def test_what_cannot_be_read_says_nothing(data: bytes, encoding: str) -> None:
    assert tapped(data, encoding=encoding) == Usage()


def test_long_lines_are_passed_over_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_MOST_LINE", 200)
    counted = events({"usage": {"prompt_tokens": 3}})
    tap = AnswerTap("text/event-stream", "")
    for piece in (b"data: ", *[b"x" * 150] * 9, b"\n", counted):
        tap.feed(piece)
        assert len(tap._rest) <= 200
    assert tap.usage.prompt == 3
    assert tapped(b'{"usage": {"prompt_tokens": 3}, "x": "' + b"x" * 300 + b'"}') == Usage()


def test_prompts_that_are_kept_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_BYTES", 1000)
    kept = Sessions()
    for i in range(3000):
        kept.keep(bytes([i % 200]), Prompt((Part("user", f"{i} " * 20),)), 100)
        assert kept._n_bytes == sum(n for prompts in kept._clients.values() for _, n in prompts) <= 1000
    monkeypatch.setattr(sessions, "MOST_BYTES", 1 << 30)
    for i in range(3000):
        kept.keep(i.to_bytes(2), Prompt((Part("user", "x"),)), 1)
        kept.keep(b"busy", Prompt((Part("user", f"{i}"),)), 1)
    assert len(kept._clients) == sessions.MOST_CLIENTS
    assert len(kept._clients[b"busy"]) == sessions.MOST_PROMPTS
    assert kept._n_bytes == sum(n for prompts in kept._clients.values() for _, n in prompts)
