"""The routes of the server, as a Starlette application behind the gate."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from kvdesk.server import kv
from kvdesk.server.anthropic import messages
from kvdesk.server.errors import ApiError
from kvdesk.server.llama_server import tokens
from kvdesk.server.llama_server.completions import complete
from kvdesk.server.llama_server.infill import infill
from kvdesk.server.llama_server.props import lora_adapters, props
from kvdesk.server.llama_server.rerank import rerank
from kvdesk.server.llama_server.slot_actions import slot_action
from kvdesk.server.llama_server.slots import slots
from kvdesk.server.metrics import metrics
from kvdesk.server.ollama import about, embed
from kvdesk.server.ollama.chat import chat
from kvdesk.server.ollama.generate import generate
from kvdesk.server.openai import models, responses
from kvdesk.server.openai.chat_completions import apply_template, chat_completions, input_tokens
from kvdesk.server.openai.completions import completions
from kvdesk.server.openai.embeddings import embeddings
from kvdesk.server.service import Service
from kvdesk.server.streaming import UNEXPECTED
from kvdesk.server.transport.gate import Gate

Endpoint = Callable[[Service, Request], Awaitable[Response]]
_log = logging.getLogger(__name__)
_POST: Final[dict[str, Endpoint]] = {
    "/v1/messages": messages.create,
    "/v1/messages/count_tokens": messages.count_tokens,
    "/tokenize": tokens.tokenize,
    "/detokenize": tokens.detokenize,
    "/slots/{slot}": slot_action,
    "/completion": complete,
    "/completions": complete,
    "/v1/completions": completions,
    "/infill": infill,
    "/embedding": embeddings,
    "/apply-template": apply_template,
    "/api/chat": chat,
    "/api/generate": generate,
    "/api/embed": embed.embed,
    "/api/embeddings": embed.embeddings,
    "/api/pull": about.pull,
    "/api/show": about.show,
}
_GET: Final[dict[str, Endpoint]] = {
    "/v1/models/{name:path}": models.model,
    "/v1/responses/{id}": responses.get,
    "/v1/responses/{id}/input_items": responses.input_items,
    "/slots": slots,
    "/metrics": metrics,
    "/props": props,
    "/lora-adapters": lora_adapters,
    "/": about.root,
    "/api/version": about.version,
    "/api/tags": about.tags,
    "/api/ps": about.running,
    "/kv/map": kv.kv_map,
    "/kv/score": kv.kv_score,
    "/kv/events": kv.kv_events,
}
_DELETE: Final[dict[str, Endpoint]] = {"/v1/responses/{id}": responses.delete}
_POST_BOTH: Final[dict[str, Endpoint]] = {
    "/chat/completions": chat_completions,
    "/chat/completions/input_tokens": input_tokens,
    "/responses": responses.create,
    "/responses/input_tokens": responses.input_tokens,
    "/embeddings": embeddings,
    "/rerank": rerank,
    "/reranking": rerank,
}
"""Also behind `/v1`, as those of `_GET_BOTH`."""
_GET_BOTH: Final[dict[str, Endpoint]] = {"/health": models.health, "/models": models.models}


def make_app(service: Service) -> Gate:
    """All endpoints, behind the gate."""
    handlers: Any = {ApiError: _api_error, HTTPException: _http_error, ClientDisconnect: _gone}
    handlers |= {RecursionError: _nested, Exception: _unexpected}
    return Gate(Starlette(routes=list(routes(service)), exception_handlers=handlers), service.config)


def routes(service: Service) -> Iterator[Route]:
    """Every path with what answers it. The docstrings of those are the descriptions in docs/serving-reference.md."""
    for method, own, both in (("POST", _POST, _POST_BOTH), ("GET", _GET, _GET_BOTH), ("DELETE", _DELETE, {})):
        paths = {**own, **both, **{f"/v1{path}": endpoint for path, endpoint in both.items()}}
        for path, endpoint in paths.items():
            yield Route(path, partial(endpoint, service), methods=[method])


async def _api_error(request: Request, error: ApiError) -> Response:
    return error.response(request.url.path)


async def _http_error(request: Request, error: HTTPException) -> Response:
    said = {404: f"There is no {request.url.path[:200]} here.", 405: f"{request.method} is not for this path."}
    return ApiError(error.status_code, said.get(error.status_code, str(error.detail))).response(request.url.path)


async def _gone(_request: Request, _error: ClientDisconnect) -> Response:
    return Response(status_code=499)


async def _nested(request: Request, _error: Exception) -> Response:
    return ApiError(400, "The request is nested too deeply.", code="invalid_value").response(request.url.path)


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("unexpected error in a request", exc_info=error)
    return UNEXPECTED.response(request.url.path)
