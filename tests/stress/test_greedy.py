"""The same greedy request again and again beside other clients: with `--exact` every answer is the same, and by
default no more of them differ than llama-server's.

KVDESK_LLAMA_SERVER=…/llama-server   for the comparison
KVDESK_LLAMA_MODEL=model.gguf        another model than the embedded one
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2 as httpx
import pytest

from tests.stress.conftest import Row
from tests.stress.serving import kvdesk_serve, llama_server, needs_llama_server

pytestmark = [pytest.mark.stress, pytest.mark.timeout(7200)]
PROMPTS: Final = ("Explain rain.", "Why is the sky blue?", "Tell me a joke.", "What is a river?")
REPEATS: Final = 20
N_LOADS: Final = 2
OTHERS: Final = ("tea", "birds", "Python", "cats", "salt", "sleep", "music", "gravity", "foxes", "maps", "glass")
N_CTX: Final = 4096
N_SLOTS: Final = 4


def ask(http: httpx.Client, prompt: str, n: int) -> str:
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": n,
        "temperature": 0,
        "seed": 1,
        "cache_prompt": True,
    }
    answer = http.post("/v1/chat/completions", json=body).raise_for_status().json()
    return str(answer["choices"][0]["message"]["content"])


@contextmanager
def load(http: httpx.Client) -> Iterator[None]:
    """Clients that ask other things all the while."""
    over = threading.Event()

    def one(number: int) -> None:
        rng = random.Random(number)
        while not over.is_set():
            ask(
                http,
                f"Say {rng.randrange(3, 9)} things about {' and '.join(rng.sample(OTHERS, 3))}.",
                rng.randrange(8, 64),
            )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(N_LOADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def n_other(http: httpx.Client, row: Row, name: str) -> int:
    """Of all answers, those that are not the usual one to their prompt."""
    answers: dict[str, Counter[str]] = {prompt: Counter() for prompt in PROMPTS}
    with load(http):
        for i in range(REPEATS):
            for prompt in PROMPTS:
                answers[prompt][ask(http, prompt, 32)] += 1
            row.say(f"{name}: {[[*found.values()] for found in answers.values()]} after {i + 1} of {REPEATS}")
    return sum(found.total() - max(found.values()) for found in answers.values())


@pytest.fixture
def model(model_file: Path) -> Path:
    return Path(os.environ.get("KVDESK_LLAMA_MODEL") or model_file)


def test_exact_answers_are_all_alike(model: Path, row: Row, tmp_path: Path) -> None:
    with kvdesk_serve(model, tmp_path, "--exact", "--n-ctx", str(N_CTX), "--n-seq-max", str(N_SLOTS)) as served:
        assert n_other(served.http, row, "--exact") == 0


@needs_llama_server
def test_no_more_answers_differ_than_llama_servers(model: Path, row: Row, tmp_path: Path) -> None:
    with kvdesk_serve(model, tmp_path, "--n-ctx", str(N_CTX), "--n-seq-max", str(N_SLOTS)) as served:
        ours = n_other(served.http, row, "kvdesk")
    with llama_server(model, "-c", str(N_CTX), "-np", str(N_SLOTS), "--kv-unified") as http:
        theirs = n_other(http, row, "llama-server")
    assert ours <= theirs
