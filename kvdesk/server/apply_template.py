"""`POST /apply-template`: the prompt of a chat request as text, which is not answered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.chat import new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate
from kvdesk.protocol.prompt import Tokenize
from kvdesk.server.completion import Service
from kvdesk.server.conversation import messages_of
from kvdesk.server.reasoning_options import options_of
from kvdesk.server.schemas import ChatRequest
from kvdesk.server.tools import tools_of


class TemplateRequest(ChatRequest):
    """`/apply-template`, with the fields of a chat request. An answer at the end is continued."""

    add_generation_prompt: bool = True


async def apply_template(service: Service, http: Request) -> Response:
    """The endpoint."""
    request = await service.body(http, TemplateRequest)
    conversation = new_conversation_id()
    messages, continued = messages_of(request.messages, conversation), None
    if request.add_generation_prompt and len(messages) > 1 and messages[-1].role == "assistant" and messages[-1].text:
        messages, continued = messages[:-1], messages[-1]
    asked = Generate(
        conversation,
        new_message_id(),
        messages,
        service.sampling,
        continued=continued,
        tools=tools_of(request),
        variables=options_of(request, service.config.reasoning_budget).variables,
    )
    found = await service.bridge.tokenized(Tokenize("", prompt=asked, begins=request.add_generation_prompt))
    return JSONResponse({"prompt": found.text})
