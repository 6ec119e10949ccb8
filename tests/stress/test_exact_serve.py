"""With *Exact answers* a server gives one answer to one prompt, whatever was evicted, restored and shared before."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.protocol.cache import AuditCache
from kvdesk.server.config import Limits, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings, Sampling
from tests.server.conftest import Running, opened

ORDERS = 20
SETTINGS = ContextSettings(n_ctx=512, n_seq_max=4, n_batch=128, n_ubatch=64, n_threads=2, n_threads_batch=2, exact=True)
"""Soon full: each order evicts, shares and restores."""
LONG = "Rain falls from clouds, and clouds are made of drops of water that the wind carries over land and sea. "
PROMPTS = (
    "Explain rain.",
    "Explain rain to a child.",
    f"{LONG}Explain rain.",
    f"{LONG}Say what comes next.",
    *(f"Tell me about number {i} and what it means in culture." for i in range(6)),
)


@pytest.fixture(scope="module")
def exact(model_file: Path) -> Iterator[Running]:
    for host in opened(model_file, SETTINGS):
        server = Server(host, ServerConfig(port=0, limits=Limits(rate=1e6, burst=1_000_000)), Sampling(temperature=0.0))
        server.start()
        yield Running(host, server)
        server.close()


def _answer(http: httpx.Client, prompt: str, *, reuse: bool) -> list[Any]:
    """Each token with its probability, and that of the next likeliest."""
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": 16, "cache_prompt": reuse}
    answer = http.post("/v1/chat/completions", json={**body, "logprobs": True, "top_logprobs": 2}).raise_for_status()
    return list(answer.json()["choices"][0]["logprobs"]["content"])


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_answers_are_alike_in_every_order_of_eviction(exact: Running) -> None:
    first: dict[str, list[Any]] = {}
    with exact.http() as http:
        for seed in range(ORDERS):
            rng = random.Random(seed)
            for prompt in rng.choices(PROMPTS, k=12):
                found = _answer(http, prompt, reuse=rng.random() < 0.8)
                assert found == first.setdefault(prompt, found), f"order {seed}: {prompt}"
    assert set(first) == set(PROMPTS)
    audited = exact.answered(AuditCache())
    assert audited.state == "verified", audited.sentence
