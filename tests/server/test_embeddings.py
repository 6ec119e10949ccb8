"""Embeddings and scores of documents, from processes beside the engine."""

import asyncio
import base64
import math
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import httpx2 as httpx
import psutil
import pytest

from kvdesk.host.host import Host
from kvdesk.protocol.embedding import Embed, Embedded, EmbeddingModel
from kvdesk.server.embedding_process import EmbeddingProcess
from kvdesk.server.openai.embeddings import normalized
from tests.server.conftest import Running, served
from tests.server.encoder import N_CTX, write_encoder

TEXTS = ["The sea is calm tonight.", "the tide is full"]


@pytest.fixture(scope="module")
def encoding(engine: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("encoders")
    embedding = write_encoder(folder / "encoder.gguf", gguf.PoolingType.MEAN)
    reranking = write_encoder(folder / "ranker.gguf", gguf.PoolingType.RANK)
    yield from _started(engine, embedding=embedding, reranking=reranking)


@pytest.fixture(scope="module")
def chatting(engine: Host) -> Iterator[Running]:
    yield from _started(engine)


def _started(engine: Host, **config: Path) -> Iterator[Running]:
    """A server whose processes run already: their threads are no test's own."""
    with served(engine, **config) as running:
        with running.http() as http:
            http.post("/embeddings", json={"input": "x"}).raise_for_status()
            http.post("/rerank", json={"query": "x", "documents": ["x"]})
        yield running


@pytest.fixture(scope="module")
def encoder(encoding: Running) -> Iterator[httpx.Client]:
    with encoding.http() as client:
        yield client


def asked(http: httpx.Client, path: str, **body: Any) -> Any:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_embeddings_come_in_openai_s_form(encoding: Running, encoder: httpx.Client) -> None:
    found = asked(encoder, "/v1/embeddings", input=TEXTS)
    vectors = [one["embedding"] for one in found["data"]]
    assert [one["index"] for one in found["data"]] == [0, 1]
    assert found["usage"]["prompt_tokens"] == found["usage"]["total_tokens"] == sum(map(len, TEXTS))
    for vector in vectors:
        assert math.isclose(sum(value * value for value in vector), 1.0, abs_tol=1e-5)
    with encoding.openai() as client:  # it asks for base64
        made = client.embeddings.create(model="any", input=TEXTS)
    assert [one.embedding for one in made.data] == [pytest.approx(vector, abs=1e-6) for vector in vectors]


def test_the_first_dimensions_are_those_of_a_shorter_vector(encoder: httpx.Client) -> None:
    (whole,) = asked(encoder, "/api/embed", input=TEXTS[0])["embeddings"]
    for path, of in (("/api/embed", "embeddings"), ("/v1/embeddings", "data")):
        (found,) = asked(encoder, path, input=TEXTS[0], dimensions=2)[of]
        vector = found["embedding"] if isinstance(found, dict) else found
        assert vector == pytest.approx(normalized(whole[:2], 2))


def test_ollama_counts_time_and_embeds_no_text(encoder: httpx.Client) -> None:
    found = asked(encoder, "/api/embed", input=TEXTS)
    assert found["total_duration"] >= found["load_duration"] > 0
    assert found["prompt_eval_count"] == sum(map(len, TEXTS))
    bodies: list[dict[str, Any]] = [{}, {"input": ""}, {"input": []}]
    for none in bodies:
        assert asked(encoder, "/api/embed", **none)["embeddings"] == []
    assert asked(encoder, "/api/embeddings", prompt="") == {"embedding": []}


def test_every_form_of_a_prompt_is_embedded(encoder: httpx.Client) -> None:
    text = TEXTS[0]
    (whole,) = (one["embedding"] for one in asked(encoder, "/v1/embeddings", input=text)["data"])
    for form in (
        {"prompt_string": text},
        {"content": [{"type": "text", "text": part} for part in (text[:5], text[5:])]},
    ):
        assert asked(encoder, "/v1/embeddings", input=form)["data"][0]["embedding"] == whole
    assert len(asked(encoder, "/v1/embeddings", input=[TEXTS[0], [1, 2, "a", 3]])["data"]) == 2
    packed = asked(encoder, "/v1/embeddings", input=text, encoding_format="base64")["data"][0]["embedding"]
    assert struct.unpack(f"<{len(whole)}f", base64.b64decode(packed)) == pytest.approx(whole, abs=1e-6)


def test_llama_server_s_own_form_is_a_list(encoder: httpx.Client) -> None:
    plain, scaled = (asked(encoder, "/embeddings", content=TEXTS, embd_normalize=how) for how in (-1, 0))
    assert [one["index"] for one in plain] == [0, 1]
    assert max(map(abs, scaled[0]["embedding"][0])) == pytest.approx(32760)
    largest = max(map(abs, plain[0]["embedding"][0]))
    assert [value * 32760 / largest for value in plain[0]["embedding"][0]] == pytest.approx(scaled[0]["embedding"][0])


def test_ollama_s_forms_have_the_same_vectors(encoder: httpx.Client) -> None:
    vectors = [one["embedding"] for one in asked(encoder, "/v1/embeddings", input=TEXTS)["data"]]
    found = asked(encoder, "/api/embed", model="any", input=TEXTS, truncate=True, keep_alive="5m", options={})
    assert (found["embeddings"], found["prompt_eval_count"]) == (vectors, sum(map(len, TEXTS)))
    assert asked(encoder, "/api/embed", input=TEXTS[1])["embeddings"] == vectors[1:]
    assert asked(encoder, "/api/embeddings", prompt=TEXTS[0]) == {"embedding": vectors[0]}


def test_a_long_text_is_cut_as_ollama_does_it(encoder: httpx.Client) -> None:
    long = "x" * (N_CTX + 1)
    found = asked(encoder, "/api/embed", input=[long, "x"])
    assert 100 < found["prompt_eval_count"] <= N_CTX
    assert found["embeddings"][0] == asked(encoder, "/api/embeddings", prompt=long)["embedding"]
    assert encoder.post("/api/embed", json={"input": long, "truncate": False}).status_code == 400


def test_the_model_that_chats_embeds_too(chatting: Running) -> None:
    with chatting.http() as http:
        first, again = (asked(http, "/v1/embeddings", input="Hello")["data"][0]["embedding"] for _ in range(2))
        assert http.post("/rerank", json={"query": "a", "documents": ["b"]}).status_code == 501
    assert first == again
    assert math.isclose(sum(value * value for value in first), 1.0, abs_tol=1e-5)


def test_documents_are_ranked(encoder: httpx.Client) -> None:
    found = asked(encoder, "/v1/rerank", query="sea", documents=[*TEXTS, "sea"])
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert sorted(one["index"] for one in found["results"]) == [0, 1, 2]
    assert found["usage"]["prompt_tokens"] == 3 * 3 + sum(map(len, TEXTS)) + 3
    best = asked(encoder, "/reranking", query="sea", texts=[*TEXTS, "sea"], top_n=1, return_text=True)
    assert best == [{"index": found["results"][0]["index"], "score": scores[0], "text": best[0]["text"]}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {}),
        ("/v1/embeddings", {"input": []}),
        ("/v1/embeddings", {"input": ""}),
        ("/v1/embeddings", {"input": {"content": "text"}}),
        ("/v1/embeddings", {"input": {"content": [{"type": "image_url", "image_url": {"url": "x"}}]}}),
        ("/v1/embeddings", {"input": [1 << 30]}),
        ("/v1/embeddings", {"input": ["x"] * 2049}),
        ("/api/embed", {"input": 5}),
        ("/api/embed", {"input": "x", "dimensions": 0}),
        ("/api/embeddings", {"prompt": 5}),
        ("/v1/embeddings", {"input": "x" * (N_CTX + 1)}),
        ("/v1/embeddings", {"input": "x", "dimensions": 1 << 20}),
        ("/v1/embeddings", {"input": "x", "encoding_format": "int8"}),
        ("/rerank", {"query": "x"}),
        ("/rerank", {"query": "x", "documents": []}),
        ("/rerank", {"query": "x", "documents": [1, 2]}),
        ("/rerank", {"documents": ["x"]}),
    ],
)
def test_what_is_none_is_refused(encoder: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = encoder.post(path, json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error if path.startswith("/api/") else error["message"]
    assert asked(encoder, "/v1/embeddings", input="still there")


def test_a_file_that_is_no_model_says_so(engine: Host, tmp_path: Path) -> None:
    file = tmp_path / "none.gguf"
    file.write_bytes(b"none")
    with served(engine, embedding=file) as running, running.http() as http:
        answer = http.post("/embeddings", json={"input": "x"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_supported")


def test_large_values_have_a_norm() -> None:
    for how in (1, 2, 64):
        assert sum(value**how for value in normalized([3e20, 4e20], how)) == pytest.approx(1.0)
    assert normalized([0.0, 0.0], 2) == [0.0, 0.0]


def test_clients_that_have_gone_leave_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child answers what it has begun; what others asked that have gone is never begun."""
    begun: list[str] = []
    began, goes_on = threading.Event(), threading.Event()

    def asked(_process: EmbeddingProcess, _path: Path, request: Embed) -> tuple[EmbeddingModel, Embedded]:
        begun.append(str(request.prompts[0][0]))
        began.set()
        assert goes_on.wait(10)
        return EmbeddingModel(), Embedded()

    async def several() -> None:
        asking = [asyncio.create_task(process.ask(None, Embed(((name,),)))) for name in "abc"]
        await asyncio.to_thread(began.wait, 10)
        for one in asking[:2]:
            one.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.wait(asking)
        assert [one.cancelled() for one in asking] == [True, True, False]

    monkeypatch.setattr(EmbeddingProcess, "_asked", asked)
    process = EmbeddingProcess(Path("any.gguf"), "")
    asyncio.run(several())
    process.close()
    assert begun == ["a", "c"]


def test_a_process_that_was_killed_is_started_again(engine: Host, tmp_path: Path) -> None:
    file = write_encoder(tmp_path / "killed.gguf", gguf.PoolingType.MEAN)
    with served(engine, embedding=file) as running, running.http() as http:
        before = asked(http, "/v1/embeddings", input="x")["data"]
        (child,) = (one for one in psutil.Process().children() if any(file.name in part for part in one.cmdline()))
        child.kill()
        child.wait(10)
        assert asked(http, "/v1/embeddings", input="x")["data"] == before
