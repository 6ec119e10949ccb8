"""`POST /v1/embeddings`, OpenAI's form, and `/embeddings`, llama-server's own."""

import base64
import struct
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.protocol.embedding import Embed
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.mixed_prompts import prompts_of
from kvdesk.server.request.schemas import Body, Whole
from kvdesk.server.service import Service
from kvdesk.server.streaming import WholeResponse

_MOST_INPUTS = 2048  # as OpenAI's
_LARGEST = 32760.0  # of a vector that is scaled to whole numbers of 16 bits


class EmbeddingRequest(Body):
    """`/v1/embeddings`. `input` is read by `kvdesk.server.mixed_prompts`; `content` is llama-server's name for it;
    `dimensions`: only this many, the first ones, as OpenAI and Ollama have it.

    embd_normalize  -1: as it is, 0: to whole numbers of 16 bits, n: by the n-norm
    """

    input: Any = None
    content: Any = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Whole | None = Field(None, ge=1)
    embd_normalize: Whole = Field(2, ge=-1, le=64)


async def embeddings(service: Service, http: Request) -> Response:
    """Vectors of texts or token ids, from a process beside the engine. Its model is that of `--embedding-model`, or
    else the one that chats. Behind `/v1` the answer has OpenAI's form, otherwise llama-server's, as for `content`.
    """
    request = await service.body(http, EmbeddingRequest)
    own = not http.url.path.startswith("/v1/") or request.input is None
    return WholeResponse(embedded(service, request, own=own))


async def embedded(service: Service, request: EmbeddingRequest, *, own: bool, cuts: bool = False) -> Any:
    """The answer in OpenAI's form, or llama-server's `own`. `cuts`: as in `Embed`. Raises ApiError."""
    param = "content" if request.input is None else "input"
    given = getattr(request, param)
    if given is None:
        raise ApiError(400, "The field input is missing.", "input", "missing_required_parameter")
    prompts = tuple(prompts_of(given, param, _MOST_INPUTS))
    model, _ = await service.embedding.ask(service.model_file, None)
    if model.pooling == "none" and not own:
        said = "This server's pooling is none: one vector a token, which is not OpenAI's form. /embeddings has it."
        raise ApiError(400, said, code="not_supported")
    n_first = model.n_embd if request.dimensions is None else request.dimensions
    if n_first > model.n_embd:
        raise invalid("dimensions", f"this model has {model.n_embd}")
    model, found = await service.embedding.ask(service.model_file, Embed(prompts, cuts))
    pools = model.pooling not in ("none", "rank")
    vectors = [
        [normalized(vector[:n_first], request.embd_normalize) if pools else list(vector) for vector in of_one]
        for of_one in found.vectors
    ]
    if own:
        return [{"index": i, "embedding": of_one} for i, of_one in enumerate(vectors)]
    n_tokens = sum(found.n_tokens)
    packed = request.encoding_format == "base64"
    return {
        "model": model.name,
        "object": "list",
        "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        "data": [
            {"object": "embedding", "index": i, "embedding": _packed(vector) if packed else vector}
            for i, (vector,) in enumerate(vectors)
        ],
    }


def normalized(vector: Sequence[float], how: int) -> list[float]:
    """As llama.cpp does it (common.cpp, `common_embd_normalize`)."""
    if how == -1:
        return list(vector)
    largest = max(map(abs, vector), default=0.0)
    if not largest:
        return list(vector)
    if how == 0:
        return [value / largest * _LARGEST for value in vector]
    size = sum((abs(value) / largest) ** how for value in vector) ** (1.0 / how)
    return [value / largest / size for value in vector]


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
