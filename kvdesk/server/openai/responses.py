"""`/v1/responses`: OpenAI's protocol of items, with responses that are kept."""

import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.server.chat import Chat
from kvdesk.server.openai.chat_completions import token_count
from kvdesk.server.openai.responses_events import ResponseEvents
from kvdesk.server.openai.responses_request import ResponsesRequest, chat_of_response, messages_of_items
from kvdesk.server.service import Service, key_of


async def create(service: Service, http: Request) -> Response:
    """OpenAI's protocol of items, which Codex speaks: text, reasoning, function calls and their outputs. The response
    is kept unless `store` is false.
    """
    asked, chat, messages = await _chat(service, http)
    kept, owner = service.kept, key_of(http)

    def keep(response: dict[str, Any]) -> None:
        following = messages_of_items(response["output"], lambda identity: kept.item(identity, owner), messages)
        kept.add(response, following, owner, [_listed(item) for item in asked.items()])

    return chat.response(ResponseEvents(asked, chat.conversation, service.model_name, keep))


async def input_tokens(service: Service, http: Request) -> Response:
    """The number of tokens in the prompt of such a request, which is not answered."""
    _, chat, _ = await _chat(service, http)
    return token_count(len((await chat.prompt()).tokens))


async def get(service: Service, http: Request) -> Response:
    """A kept response, for the key that asked for it."""
    return JSONResponse(service.kept.get(http.path_params["id"], key_of(http)))


async def input_items(service: Service, http: Request) -> Response:
    """The items of the input that a kept response answered."""
    items = service.kept.items(http.path_params["id"], key_of(http))
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]}
    return JSONResponse({"object": "list", "data": items, "has_more": False, **ends})


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    """An item with what clients of the list read: an id, and a text in parts."""
    found = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", **item}
    if isinstance(text := found.get("content"), str):
        kind = "output_text" if found.get("role") == "assistant" else "input_text"
        found["content"] = [{"type": kind, "text": text}]
    return found


async def delete(service: Service, http: Request) -> Response:
    """Forgets a kept response."""
    identity = http.path_params["id"]
    service.kept.delete(identity, key_of(http))
    return JSONResponse({"id": identity, "object": "response", "deleted": True})


async def _chat(service: Service, http: Request) -> tuple[ResponsesRequest, Chat, list[dict[str, Any]]]:
    """The request, its chat, and the messages of that without instructions. Raises ApiError."""
    asked = await service.body(http, ResponsesRequest)
    kept, owner = service.kept, key_of(http)
    before = kept.before(asked.previous_response_id, owner)
    given, messages = chat_of_response(asked, before, lambda identity: kept.item(identity, owner))
    return asked, await Chat.make(service, given, http), messages
