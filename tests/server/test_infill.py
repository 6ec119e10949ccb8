"""`/infill`: its prompt, and what of a request is refused."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.protocol.model import Endpoint, InfillTokens, ModelInfo
from kvdesk.server.errors import ApiError
from kvdesk.server.llama_server.infill import InfillRequest, infill_prompt, tokens_to_fill

MARKS = InfillTokens(prefix=1, suffix=2, middle=3)
FILLED: dict[str, Any] = {
    "input_prefix": "def one():\n",
    "input_suffix": "\n\ndef two(): ...",
    "prompt": "    return",
    "n_predict": 3,
}


def test_the_prompt_marks_what_is_before_and_behind() -> None:
    assert infill_prompt(MARKS, [9], [0], [10, 11], [20, 21], [30], 64) == [9, 0, 1, 10, 11, 30, 2, 20, 21, 3]


def test_long_texts_leave_what_is_near() -> None:
    tokens = infill_prompt(MARKS, [], [], range(100, 200), range(200, 300), (), 16)
    assert tokens == [1, *range(188, 200), 2, 200, 201, 3]


def test_what_is_between_is_written(http: httpx.Client) -> None:
    files = [{"filename": "three.py", "text": "def three(): ..."}, {"text": "x = 1"}]
    plain, beside = (http.post("/infill", json={**FILLED, "input_extra": extra}) for extra in ([], files))
    if plain.status_code == 501:  # the embedded model has no tokens for it
        assert plain.json()["error"]["type"] == "not_supported_error"
        return
    prompt = plain.json()["prompt"]
    between = [prompt.index(FILLED[name]) for name in ("input_prefix", "prompt", "input_suffix")]
    assert sorted(between) == between
    assert plain.json()["tokens_predicted"] == 3
    assert "def three(): ..." in beside.json()["prompt"]
    assert beside.json()["prompt"].endswith(prompt[prompt.index("def one") :])
    streamed = http.post("/infill", json={**FILLED, "stream": True}).text.strip().split("\n\n")
    assert json.loads(streamed[-1].removeprefix("data: "))["stop"] is True


def test_what_an_editor_sends_is_read_and_then_filled(http: httpx.Client) -> None:
    """As llama.vim and llama.vscode ask: first for nothing but the files around, then for the text between."""
    around = [{"filename": "three.py", "text": "def three(): return 1 + 2 + 3 + 4 + 5 + 6 + 7\n" * 2, "time": [1, 2]}]
    first = {"input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0, "samplers": []}
    limits = {"t_max_prompt_ms": 500, "t_max_predict_ms": 60_000, "cache_prompt": True, "input_extra": around}
    warm = http.post("/infill", json={**first, **limits, "temperature": 0.0, "response_fields": [""]})
    if warm.status_code == 501:  # the embedded model has no tokens for it
        return
    assert (warm.status_code, warm.json()) == (200, {})
    wanted = ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "tokens_cached", "prefix_cache/reused"]
    asked = {**FILLED, **limits, "n_indent": 4, "samplers": ["top_k", "top_p", "infill"], "response_fields": wanted}
    found = http.post("/infill", json=asked)
    assert set(found.json()) == set(wanted)
    assert found.json()["prefix_cache/reused"] > 20, "the files are in the cache"
    assert found.json()["timings/predicted_n"] == 3
    assert found.headers["x-kvdesk-passed-over"] == "t_max_prompt_ms, n_indent, samplers.infill"


def test_a_model_without_the_tokens_says_so() -> None:
    model = ModelInfo(Endpoint("http://box", "plain"), "plain", infill=InfillTokens(prefix=1, suffix=2))
    service: Any = SimpleNamespace(model=model, state=SimpleNamespace(context=SimpleNamespace(n_batch=64)))
    with pytest.raises(ApiError) as caught:
        asyncio.run(tokens_to_fill(service, InfillRequest(input_prefix="a", input_suffix="b")))
    assert caught.value.status == 501


@pytest.mark.parametrize("extra", [{}, {"filename": "ok"}, {"filename": 123, "text": "abc"}, "text"])
def test_files_have_a_text(http: httpx.Client, extra: Any) -> None:
    assert http.post("/infill", json={**FILLED, "input_extra": [extra]}).status_code == 400
    assert http.post("/infill", json={"input_prefix": "a"}).json()["error"]["param"] == "input_suffix"
