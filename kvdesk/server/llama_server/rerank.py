"""`POST /v1/rerank`: how well documents answer a query, in Jina's form, or for `texts` in that of TEI."""

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.message import storable
from kvdesk.protocol.embedding import Rank
from kvdesk.server.errors import ApiError
from kvdesk.server.request.schemas import Body, Whole
from kvdesk.server.service import Service
from kvdesk.server.streaming import WholeResponse


class RerankRequest(Body):
    """`/v1/rerank`. `texts`: what TEI calls the documents; `return_text`: with those."""

    query: str
    documents: list[str] | None = Field(None, min_length=1, max_length=10_000)
    texts: list[str] | None = Field(None, min_length=1, max_length=10_000)
    top_n: Whole | None = Field(None, ge=1)
    return_text: bool = False


async def rerank(service: Service, http: Request) -> Response:
    """How well documents answer a query, in Jina's form, or for `texts` in that of TEI. Needs `--reranking-model`."""
    return WholeResponse(_rerank(service, await service.body(http, RerankRequest)))


async def _rerank(service: Service, request: RerankRequest) -> Any:
    """Raises ApiError."""
    documents = request.documents or request.texts
    if documents is None:
        raise ApiError(400, "The field documents is missing.", "documents", "missing_required_parameter")
    model, _ = await service.ranking.ask(service.model_file, None)
    if model.pooling != "rank":
        said = "The model does not rank documents: start the server with --reranking-model."
        raise ApiError(501, said, code="not_supported")
    asked = Rank(storable(request.query), tuple(map(storable, documents)))
    model, found = await service.ranking.ask(service.model_file, asked)
    scores = [vector[0] for (vector,) in found.vectors]
    best = sorted(range(len(documents)), key=lambda i: scores[i], reverse=True)[: request.top_n]
    if request.documents is None:
        return [
            {"index": i, "score": scores[i], **({"text": documents[i]} if request.return_text else {})} for i in best
        ]
    n_tokens = sum(found.n_tokens)
    return {
        "model": model.name,
        "object": "list",
        "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        "results": [{"index": i, "relevance_score": scores[i]} for i in best],
    }
