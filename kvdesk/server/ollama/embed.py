"""`POST /api/embed` and `POST /api/embeddings` in Ollama's forms."""

import time
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.server.ollama.chat import durations
from kvdesk.server.openai.embeddings import EmbeddingRequest, embedded
from kvdesk.server.request.schemas import Body, Whole
from kvdesk.server.service import Service
from kvdesk.server.streaming import WholeResponse


class OllamaEmbedRequest(Body):
    """`/api/embed`. `input`: a text, or several; `truncate`: as `Embed.cuts`."""

    input: str | list[str] = ""
    dimensions: Whole | None = Field(None, ge=1)
    truncate: bool = True


class OllamaEmbeddingsRequest(Body):
    """`/api/embeddings`, the older form: one text."""

    prompt: str


async def embed(service: Service, http: Request) -> Response:
    """Ollama's vectors of texts, as `/v1/embeddings` makes them."""
    request = await service.body(http, OllamaEmbedRequest)
    return WholeResponse(_embed(service, request))


async def embeddings(service: Service, http: Request) -> Response:
    """Ollama's older form: the vector of one text."""
    request = await service.body(http, OllamaEmbeddingsRequest)
    return WholeResponse(_embedding(service, request))


async def _embed(service: Service, request: OllamaEmbedRequest) -> dict[str, Any]:
    """No text has no vector. Raises ApiError."""
    began_ns = time.monotonic_ns()
    found: dict[str, Any] = {"model": service.model_name, "data": [], "usage": {"prompt_tokens": 0}}
    if request.input:
        asked = EmbeddingRequest(input=request.input, dimensions=request.dimensions)
        found = await embedded(service, asked, own=False, cuts=request.truncate)
    vectors = [one["embedding"] for one in found["data"]]
    n_tokens = found["usage"]["prompt_tokens"]
    counted = {**durations(began_ns, 0), "prompt_eval_count": n_tokens}
    return {"model": found["model"], "embeddings": vectors, **counted}


async def _embedding(service: Service, request: OllamaEmbeddingsRequest) -> dict[str, Any]:
    """Raises ApiError."""
    if not request.prompt:
        return {"embedding": []}
    (one,) = (await embedded(service, EmbeddingRequest(input=request.prompt), own=False, cuts=True))["data"]
    return {"embedding": one["embedding"]}
