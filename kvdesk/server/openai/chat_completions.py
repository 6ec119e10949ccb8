"""`POST /v1/chat/completions`, and `POST /apply-template`, the prompt of the same request."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.answer_reader import AnswerDelta, delta_as_json
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import ANSWER_ID
from kvdesk.protocol.chat import PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.server.answering import progress, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Chat, Renderer
from kvdesk.server.errors import ApiError, invalid, unsupported
from kvdesk.server.logprobs import chat_logprobs
from kvdesk.server.prefix_cache import counted, prefix_cache
from kvdesk.server.request.schemas import ChatRequest
from kvdesk.server.service import FINGERPRINT, Service
from kvdesk.server.streaming import DONE


async def chat_completions(service: Service, http: Request) -> Response:
    """OpenAI's chat completions: whole, or streaming as server-sent events."""
    request = await service.body(http, ChatRequest)
    _check(request)
    chat = await Chat.make(service, request, http)
    return chat.response(ChatCompletion(request, chat.conversation, service.model_name))


async def apply_template(service: Service, http: Request) -> Response:
    """As llama-server has it: the prompt of a chat request as text, without the token that llama.cpp adds at its
    beginning.
    """
    request = await service.body(http, ChatRequest)
    chat = await Chat.make(service, request, http)
    found = await chat.prompt(begins=request.add_generation_prompt is not False)
    return JSONResponse({"prompt": found.text})


async def input_tokens(service: Service, http: Request) -> Response:
    """The number of tokens in the prompt of such a request, which is not answered."""
    chat = await Chat.make(service, await service.body(http, ChatRequest), http)
    return token_count(len((await chat.prompt()).tokens))


def token_count(n_tokens: int) -> Response:
    """As OpenAI's responses count the tokens of a prompt, and llama-server those of a chat too."""
    return JSONResponse({"object": "response.input_tokens", "input_tokens": n_tokens})


def _check(request: ChatRequest) -> None:
    """Raises ApiError for what only this protocol refuses."""
    if request.functions is not None:
        raise ApiError(400, "The field functions is not supported; tools is.", "functions", "unsupported_parameter")
    if request.modalities and request.modalities != ["text"]:
        raise unsupported("modalities", "only text is supported")
    if request.top_logprobs is not None and not request.logprobs:
        raise invalid("top_logprobs", "needs logprobs")


class ChatCompletion(Renderer):
    done = DONE

    def __init__(self, request: ChatRequest, conversation: ConversationId, model: str) -> None:
        self._request = request
        self._common = {
            "id": f"{ANSWER_ID}{conversation}",  # its cells are leased under this name
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": FINGERPRINT,
        }

    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        new = delta_as_json(delta)
        match event:
            case TurnStarted():
                yield self._chunk(answer, {"role": "assistant", "content": None})
            case TextDelta():
                if new or event.logprobs:
                    yield self._chunk(answer, new, event=event)
            case TurnEnded():
                if new:
                    yield self._chunk(answer, new)
                yield self._chunk(answer, {}, finish=answer.finish)
        if self._request.return_progress and isinstance(event, TurnStarted | PrefillProgress):
            yield self._chunk(answer, {}, more={"prompt_progress": progress(answer.choice, event)})

    def last(self, answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
        if self._request.usage_in_stream:
            yield {"object": "chat.completion.chunk", **self._common, "choices": [], **self._counted(answers)}

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        choices = [self._choice(answer) for answer in answers]
        return {"object": "chat.completion", **self._common, "choices": choices, **self._counted(answers)}

    @staticmethod
    def _counted(answers: Sequence[Answer]) -> dict[str, Any]:
        found = counted([answer.choice for answer in answers])
        found["usage"]["completion_tokens_details"]["reasoning_tokens"] = sum(answer.n_thought for answer in answers)
        return found

    def _choice(self, answer: Answer) -> dict[str, Any]:
        choice, reader = answer.choice, answer.reader
        message: dict[str, Any] = {"role": "assistant", "content": reader.said or (None if reader.calls else "")}
        if reader.thought:
            message["reasoning_content"] = reader.thought
        if reader.calls:
            message["tool_calls"] = reader.calls_as_json()
        logprobs = chat_logprobs(choice.logprobs) if self._request.logprobs else None
        return {"index": choice.index, "message": message, "logprobs": logprobs, "finish_reason": answer.finish}

    def _chunk(
        self,
        answer: Answer,
        delta: dict[str, Any],
        *,
        event: TextDelta | None = None,
        finish: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        one: dict[str, Any] = {"index": answer.choice.index, "delta": delta, "finish_reason": finish}
        if self._request.logprobs:
            one["logprobs"] = chat_logprobs(event.logprobs) if event is not None else None
        chunk = {"object": "chat.completion.chunk", **self._common, "choices": [one], **(more or {})}
        if finish is not None:
            chunk |= {"timings": timings(answer.choice.stats), **prefix_cache(answer.choice)}
        elif self._request.timings_per_token and "role" not in delta:  # there is nothing to tell at the beginning
            chunk["timings"] = timings(answer.choice.so_far)
        if self._request.usage_in_stream:
            chunk["usage"] = None
        return chunk
