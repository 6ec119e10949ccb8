"""The routes of the server, as a Starlette application behind the gate."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kvdesk.protocol.prompt import Detokenize, Tokenize
from kvdesk.server import kv, metrics, ollama, ollama_chat
from kvdesk.server.chat import Chat
from kvdesk.server.chat_completions import ChatCompletion, check
from kvdesk.server.completion import Service, key_of, may_inspect
from kvdesk.server.completions import completions
from kvdesk.server.embeddings import embeddings
from kvdesk.server.errors import ApiError
from kvdesk.server.gate import Gate
from kvdesk.server.infill import infill
from kvdesk.server.llama_completions import complete
from kvdesk.server.messages_events import MessageEvents
from kvdesk.server.messages_request import MessagesRequest, chat_of_messages
from kvdesk.server.props import props
from kvdesk.server.rerank import rerank
from kvdesk.server.responses import UNEXPECTED, EventStream
from kvdesk.server.responses_events import ResponseEvents
from kvdesk.server.responses_request import ResponsesRequest, chat_of_response, messages_of_items
from kvdesk.server.schemas import ChatRequest, DetokenizeRequest, TokenizeRequest
from kvdesk.server.slot_actions import slot_action
from kvdesk.server.slots import slots

Endpoint = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger(__name__)
_VIEW_S = 1.0  # so long counts wait for the cache


def make_app(service: Service) -> Gate:
    """All endpoints, behind the gate."""
    endpoints = Endpoints(service)
    posts: dict[str, Endpoint] = {
        "/chat/completions": endpoints.chat_completions,
        "/completions": partial(completions, service),
        "/responses": endpoints.responses,
        "/responses/input_tokens": endpoints.input_tokens,
    }
    gets: dict[str, Endpoint] = {"/health": endpoints.health, "/models": endpoints.models}
    routes = [
        Route(f"{prefix}{path}", endpoint, methods=[method])
        for method, paths in (("POST", posts), ("GET", gets))
        for path, endpoint in paths.items()
        for prefix in ("", "/v1")
    ]
    routes += [
        Route("/v1/models/{name:path}", endpoints.model, methods=["GET"]),
        Route("/v1/responses/{id}", endpoints.response, methods=["GET"]),
        Route("/v1/responses/{id}", endpoints.delete_response, methods=["DELETE"]),
        Route("/v1/messages", endpoints.messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", endpoints.count_tokens, methods=["POST"]),
        Route("/tokenize", endpoints.tokenize, methods=["POST"]),
        Route("/detokenize", endpoints.detokenize, methods=["POST"]),
        Route("/slots", endpoints.slots, methods=["GET"]),
        Route("/slots/{slot}", partial(slot_action, service), methods=["POST"]),
        Route("/metrics", endpoints.metrics, methods=["GET"]),
        Route("/completion", partial(complete, service), methods=["POST"]),
        Route("/infill", partial(infill, service), methods=["POST"]),
        *(
            Route(path, partial(embeddings, service), methods=["POST"])
            for path in ("/embeddings", "/v1/embeddings", "/embedding")
        ),
        *(
            Route(f"{prefix}/{path}", partial(rerank, service), methods=["POST"])
            for path in ("rerank", "reranking")
            for prefix in ("", "/v1")
        ),
        Route("/api/version", partial(ollama.version, service), methods=["GET"]),
        Route("/api/tags", partial(ollama.tags, service), methods=["GET"]),
        Route("/api/chat", partial(ollama_chat.chat, service), methods=["POST"]),
        Route("/api/show", partial(ollama.show, service), methods=["POST"]),
        Route("/props", partial(props, service), methods=["GET"]),
        Route("/apply-template", endpoints.apply_template, methods=["POST"]),
        Route("/kv/map", endpoints.kv_map, methods=["GET"]),
        Route("/kv/score", endpoints.kv_score, methods=["GET"]),
        Route("/kv/events", endpoints.kv_events, methods=["GET"]),
    ]
    handlers: Any = {ApiError: _api_error, HTTPException: _http_error, ClientDisconnect: _gone}
    handlers |= {RecursionError: _nested, Exception: _unexpected}
    return Gate(Starlette(routes=routes, exception_handlers=handlers), service.config)


class Endpoints:
    """One method for each path."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def health(self, _request: Request) -> Response:
        if self._service.state.ready:
            return JSONResponse({"status": "ok"})
        error = ApiError(503, "Loading model" if self._service.state.loading else "No model is open.")
        return error.response()

    async def models(self, _request: Request) -> Response:
        found = self._model()
        names = {"first_id": found["id"], "last_id": found["id"]} if found is not None else {}
        data = [found] if found is not None else []
        return JSONResponse({"object": "list", "data": data, "has_more": False, **names})

    async def model(self, request: Request) -> Response:
        found = self._model()
        if found is None or request.path_params["name"] != found["id"]:
            raise ApiError(404, "There is no such model; /v1/models lists what there is.", code="model_not_found")
        return JSONResponse(found)

    async def chat_completions(self, request: Request) -> Response:
        asked = await self._service.body(request, ChatRequest)
        check(asked)
        chat = await Chat.make(self._service, asked, request)
        return chat.response(ChatCompletion(asked, chat.conversation, self._service.model_name))

    async def apply_template(self, request: Request) -> Response:
        """The prompt of a chat request as text, which is not answered."""
        asked = await self._service.body(request, ChatRequest)
        chat = await Chat.make(self._service, asked, request)
        found = await chat.prompt(begins=asked.add_generation_prompt is not False)
        return JSONResponse({"prompt": found.text})

    async def messages(self, request: Request) -> Response:
        asked = await self._service.body(request, MessagesRequest)
        chat = await Chat.make(self._service, chat_of_messages(asked), request)
        return chat.response(MessageEvents(chat.conversation, self._service.model_name))

    async def count_tokens(self, request: Request) -> Response:
        asked = await self._service.body(request, MessagesRequest)
        chat = await Chat.make(self._service, chat_of_messages(asked), request)
        return JSONResponse({"input_tokens": len((await chat.prompt()).tokens)})

    async def responses(self, request: Request) -> Response:
        asked = await self._service.body(request, ResponsesRequest)
        kept, owner = self._service.kept, key_of(request)

        def find(identity: str) -> dict[str, Any]:
            return kept.item(identity, owner)

        def keep(response: dict[str, Any]) -> None:
            kept.add(response, messages_of_items(response["output"], find, messages), owner)

        given, messages = chat_of_response(asked, kept.before(asked.previous_response_id, owner), find)
        chat = await Chat.make(self._service, given, request)
        return chat.response(ResponseEvents(asked, chat.conversation, self._service.model_name, keep))

    async def input_tokens(self, request: Request) -> Response:
        asked = await self._service.body(request, ResponsesRequest)
        kept, owner = self._service.kept, key_of(request)
        before = kept.before(asked.previous_response_id, owner)
        given, _ = chat_of_response(asked, before, lambda identity: kept.item(identity, owner))
        chat = await Chat.make(self._service, given, request)
        return JSONResponse({"object": "response.input_tokens", "input_tokens": len((await chat.prompt()).tokens)})

    async def response(self, request: Request) -> Response:
        return JSONResponse(self._service.kept.get(request.path_params["id"], key_of(request)))

    async def delete_response(self, request: Request) -> Response:
        identity = request.path_params["id"]
        self._service.kept.delete(identity, key_of(request))
        return JSONResponse({"id": identity, "object": "response", "deleted": True})

    async def tokenize(self, request: Request) -> Response:
        asked = await self._service.body(request, TokenizeRequest)
        most = self._service.config.limits.text_chars
        if len(asked.content) > most:
            raise ApiError(400, f"content has more than {most:,} characters.", "content", "invalid_value")
        found = await self._service.tokenized(Tokenize(asked.content, asked.add_special, asked.parse_special))
        if not asked.with_pieces:
            return JSONResponse({"tokens": list(found.tokens)})
        pairs = zip(found.tokens, found.pieces, strict=True)
        return JSONResponse({"tokens": [{"id": token, "piece": _piece(piece)} for token, piece in pairs]})

    async def detokenize(self, request: Request) -> Response:
        asked = await self._service.body(request, DetokenizeRequest)
        found = await self._service.tokenized(Detokenize(tuple(asked.tokens)))
        return JSONResponse({"content": found.text})

    async def slots(self, request: Request) -> Response:
        view = await self._service.bridge.view(_VIEW_S)
        return JSONResponse(slots(self._service.state, view, inspect=key_of(request).inspect))

    async def metrics(self, request: Request) -> Response:
        view, service = await self._service.bridge.view(_VIEW_S), self._service
        inspect = key_of(request).inspect
        text = metrics.exposition(service.state, service.places.n_waiting, view, service.memory, inspect=inspect)
        return Response(text, media_type=metrics.CONTENT_TYPE)

    async def kv_map(self, request: Request) -> Response:
        may_inspect(request)
        return JSONResponse(await kv.cache_map(self._service.bridge))

    async def kv_score(self, request: Request) -> Response:
        """Of the requests that came with the same key, and the same name of a run: counts alone."""
        return JSONResponse(self._service.state.score(key_of(request).label).as_json())

    async def kv_events(self, request: Request) -> Response:
        may_inspect(request)
        return EventStream(kv.event_stream(self._service.bridge), self._service.config.limits.write_s)

    def _model(self) -> dict[str, Any] | None:
        """As llama-server tells it, without the path of the file, and with what Anthropic's clients read."""
        model, context = self._service.state.model, self._service.state.context
        if model is None:
            return None
        meta = {
            "n_vocab": model.n_vocab,
            "n_ctx_train": model.n_ctx_train,
            "n_ctx": context.n_ctx_seq if context is not None else 0,
            "n_params": model.n_params,
            "size": model.size_bytes,
        }
        now = int(time.time())
        return {
            "id": self._service.model_name,
            "object": "model",
            "type": "model",
            "display_name": self._service.model_name,
            "created": now,
            "created_at": datetime.fromtimestamp(now, UTC).isoformat(),
            "owned_by": "kvdesk",
            "meta": meta,
        }


def _piece(piece: bytes) -> str | list[int]:
    """As llama-server has it: bytes where they are no text."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


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
