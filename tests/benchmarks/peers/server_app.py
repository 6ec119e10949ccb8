"""An OpenAI-compatible server for tests of peers: the last message says how it behaves."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.backends.openai.scripted_server import DONE, Pieces, ScriptedServer, event

WORDS = ("The ", "lamp ", "burns", ".")
Answer = tuple[int, dict[str, str], Pieces]


@contextmanager
def running(*models: str) -> Iterator[ScriptedServer]:
    """It has these models, or one that is called tiny."""
    with closing(ScriptedServer()) as server:
        server.answers |= {
            "/v1/models": {"data": [{"id": name} for name in models or ("tiny",)]},
            "/v1/chat/completions": _answer,
            "/text/v1/models": lambda _: (200, {"Content-Type": "text/plain"}, iter([b"hello"])),
            "/locked/v1/models": lambda _: (401, {}, iter([b""])),
        }
        yield server


def _answer(asked: dict[str, Any]) -> Answer:
    said = asked["messages"][-1]["content"]
    if "too long" in said:
        return _json(400, {"error": {"message": "the request exceeds\n the context"}})
    if "no stream" in said:
        return _json(200, {"choices": []})
    return 200, {"Content-Type": "text/event-stream"}, _events(said, asked["max_tokens"])


def _json(status: int, value: object) -> Answer:
    return status, {"Content-Type": "application/json"}, iter([json.dumps(value).encode()])


def _events(said: str, n_tokens: int) -> Pieces:
    if "silent" in said:
        yield None
    yield event({"choices": [{"delta": {"role": "assistant", "content": None}}]})
    if "crash" in said:
        yield event({"error": {"message": "out of memory"}})
        return
    if "garbage" in said:
        yield event(b"{nonsense")
        return
    if "Use a tool" in said:
        yield event({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "set_lamp"}}]}}]})
        yield DONE
        return
    endless = "endless" in said
    words = [f"word{i} " for i in range(n_tokens)] if endless else WORDS[:n_tokens]
    for word in words:
        yield event({"choices": [{"delta": {"content": word}}]})
        time.sleep(0.005 * endless)
    yield event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    details = {"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": 15}}
    yield event({"choices": [], "usage": {"completion_tokens": len(words) + 1, **details}})
    yield DONE
