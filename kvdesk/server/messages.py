"""`POST /v1/messages` and `POST /v1/messages/count_tokens`: Anthropic's protocol."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.server.chat import Chat
from kvdesk.server.messages_events import MessageEvents
from kvdesk.server.messages_request import MessagesRequest, chat_of_messages
from kvdesk.server.service import Service


async def create(service: Service, http: Request) -> Response:
    """A message that answers."""
    chat = await _chat(service, http)
    return chat.response(MessageEvents(chat.conversation, service.model_name))


async def count_tokens(service: Service, http: Request) -> Response:
    """Tokens of the prompt, which is not answered."""
    chat = await _chat(service, http)
    return JSONResponse({"input_tokens": len((await chat.prompt()).tokens)})


async def _chat(service: Service, http: Request) -> Chat:
    """Raises ApiError."""
    return await Chat.make(service, chat_of_messages(await service.body(http, MessagesRequest)), http)
