"""What a client predicts is guessed from; accepted and rejected tokens are counted."""

import json
from collections.abc import Iterator, Sequence

import httpx2 as httpx
import pytest

from kvdesk.host.host import Host
from kvdesk.policies.drafting import Chance, Draft, DraftSize
from kvdesk.protocol.cache import UsePolicy
from kvdesk.settings import CachePolicy

ASKED = {
    "messages": [{"role": "user", "content": "Name the days of the week."}],
    "max_tokens": 24,
    "temperature": 0,
    "cache_prompt": False,
}


@pytest.fixture(autouse=True)
def _drafting(engine: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each batch has a guess if there is one, whatever it costs."""

    def two(_self: DraftSize, chances: Sequence[Chance], _most: int, _usual: object) -> Draft:
        return Draft(tuple(min(chance.most, 2) for chance in chances), 2.0)

    monkeypatch.setattr(DraftSize, "choose", two)
    monkeypatch.setattr(DraftSize, "step_ms", lambda *_: None)
    engine.submit(UsePolicy(CachePolicy(drafts=True)))
    yield
    engine.submit(UsePolicy(CachePolicy()))


def test_a_prediction_speeds_up_and_changes_nothing(http: httpx.Client) -> None:
    plain = http.post("/v1/chat/completions", json=ASKED).json()
    text = plain["choices"][0]["message"]["content"]
    parts = [{"type": "text", "text": text[:5]}, {"type": "text", "text": text}]
    for content in (text, parts):
        body = {**ASKED, "prediction": {"type": "content", "content": content}}
        done = http.post("/v1/chat/completions", json=body).json()
        assert done["choices"][0]["message"]["content"] == text
        guessed, before = (one["usage"]["completion_tokens_details"] for one in (done, plain))
        assert guessed["accepted_prediction_tokens"] > before["accepted_prediction_tokens"]
        n = sum(guessed.values())
        assert done["timings"]["draft_n"] == n
        assert done["timings"]["draft_n_accepted"] == guessed["accepted_prediction_tokens"]
        assert done["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    assert all(slot["speculative"] for slot in http.get("/slots").json())


@pytest.mark.parametrize(
    "prediction",
    [
        "text",
        {"type": "other", "content": ""},
        {"type": "content"},
        {"type": "content", "content": [{"type": "image"}]},
    ],
)
def test_what_is_no_prediction_is_refused(http: httpx.Client, prediction: object) -> None:
    answer = http.post("/v1/chat/completions", json={**ASKED, "prediction": prediction})
    assert answer.status_code == 400
    assert "prediction" in answer.json()["error"]["message"]


def test_halves_of_characters_in_a_prediction_harm_nobody(http: httpx.Client) -> None:
    body = {**ASKED, "prediction": {"type": "content", "content": "half \ud83e of one"}}
    assert http.post("/v1/chat/completions", content=json.dumps(body)).status_code == 200
