"""`POST /v1/messages` and `POST /v1/messages/count_tokens`: Anthropic's protocol."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.server.anthropic.events import MessageEvents
from kvdesk.server.anthropic.request import MessagesRequest, chat_of_messages
from kvdesk.server.chat import Chat
from kvdesk.server.service import Service


async def create(service: Service, http: Request) -> Response:
    """Anthropic's protocol, which Claude Code speaks: blocks of text, thinking, tools and their results; whole, or
    streaming.
    """
    chat = await _chat(service, http)
    return chat.response(MessageEvents(chat.conversation, service.model_name))


async def count_tokens(service: Service, http: Request) -> Response:
    """The number of tokens in the prompt of such a request, which is not answered."""
    chat = await _chat(service, http)
    return JSONResponse({"input_tokens": len((await chat.prompt()).tokens)})


async def _chat(service: Service, http: Request) -> Chat:
    """Raises ApiError."""
    return await Chat.make(service, chat_of_messages(await service.body(http, MessagesRequest)), http)
