"""Requests of every protocol replayed by the engine, on a tiny model."""

from pathlib import Path
from typing import Any

import pytest

from kvdesk import paths
from kvdesk.errors import UserError
from kvdesk.testing import KvCache

SYSTEM = "You keep a lighthouse. " * 4
KEEPER = {"role": "system", "content": SYSTEM}
HELLO = {"role": "user", "content": "Is the lamp lit?"}
CALL = {"type": "tool_use", "id": "t1", "name": "lamp", "input": {"floor": 3}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "It is lit."}
ANTHROPIC = {"system": SYSTEM, "tools": [{"name": "lamp", "input_schema": {"type": "object"}}], "max_tokens": 9}
FUNCTION = {"type": "function_call", "call_id": "c1", "name": "lamp", "arguments": "{}"}


@pytest.mark.parametrize(
    "requests",
    [
        [[KEEPER, HELLO], [KEEPER, HELLO, {"role": "assistant", "content": "It is."}, HELLO]],
        [
            {**ANTHROPIC, "messages": [HELLO]},
            {
                **ANTHROPIC,
                "messages": [HELLO, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}],
            },
        ],
        [
            {"instructions": SYSTEM, "input": [HELLO]},
            {
                "instructions": SYSTEM,
                "input": [HELLO, FUNCTION, {"type": "function_call_output", "call_id": "c1", "output": "It is lit."}],
            },
        ],
        [SYSTEM * 2, f"{SYSTEM * 2} Nobody lit the lamp."],
        [list(range(40, 80)), list(range(40, 99))],
    ],
    ids=["messages", "anthropic", "responses", "text", "tokens"],
)
def test_what_continues_is_reused(requests: list[Any], talking_file: Path) -> None:
    replay = KvCache().replay(requests, talking_file, n_ctx=1024)
    first, second = replay.turns
    assert replay.model == talking_file.name
    assert first.n_reused == 0 < first.n_read
    assert second.n_reused >= first.n_prompt - 8, "the marks behind the last message alone may differ"
    replay.assert_reused(2, at_least=0.8)


def test_what_begins_otherwise_is_read_again(talking_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the embedded model, where no other is given."""
    monkeypatch.setattr(paths, "embedded_model", lambda: talking_file)
    tokens = [[5, *range(40, 80)], [6, *range(40, 99)]]
    replay = KvCache().replay(tokens, n_ctx=1024)
    assert replay.model == talking_file.name
    assert replay.turns[1].share == 0
    assert replay.turns[1].at == 0


@pytest.mark.parametrize(
    ("request_", "n_ctx", "sentence"),
    [([{"role": "user", "content": 3}], 512, r"Request 2: messages\.0\.content"), ("x" * 40_000, 512, "Request 2: ")],
)
def test_what_cannot_be_read_is_said_with_its_number(
    request_: Any, n_ctx: int, sentence: str, talking_file: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        KvCache().replay([[HELLO], request_], talking_file, n_ctx=n_ctx)
