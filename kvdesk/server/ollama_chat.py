"""`POST /api/chat` in Ollama's form: a request with `options`, a stream of lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.answer_reader import AnswerDelta, arguments_of
from kvdesk.protocol.chat import TurnEnded
from kvdesk.server.answering import Choice, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Chat
from kvdesk.server.errors import ApiError
from kvdesk.server.schemas import MOST_MESSAGES, Body, ChatRequest, Whole, parsed
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES

_SAME: Final = (
    *("temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "stop", "repeat_penalty", "repeat_last_n"),
    *("presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta"),
)
"""Options that have the same name in a chat request."""
_NS_PER_MS: Final = 1_000_000


class OllamaOptions(Body):
    """What of `options` is used; `num_predict` below 0: no limit."""

    num_predict: Whole | None = None
    temperature: float | None = None
    top_k: Whole | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    seed: Whole | None = None
    stop: str | list[str] | None = None
    repeat_penalty: float | None = None
    repeat_last_n: Whole | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    mirostat: Whole | None = None
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None


class OllamaChatRequest(Body):
    """`/api/chat`. `format`: "json" or a JSON schema; `think`: whether, or how much."""

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_MESSAGES)
    tools: list[dict[str, Any]] | None = None
    stream: bool = True
    format: str | dict[str, Any] | None = None
    think: bool | str | None = None
    options: OllamaOptions = Field(default_factory=OllamaOptions)


async def chat(service: Service, http: Request) -> Response:
    """Ollama's chat, with what other protocols have too: messages, tools, a format, thinking and samplers."""
    request = await service.body(http, OllamaChatRequest)
    asked = await Chat.make(service, chat_of_ollama(request), http)
    return asked.response(OllamaEvents(service.model_name), LINES)


def chat_of_ollama(request: OllamaChatRequest) -> ChatRequest:
    """Raises ApiError."""
    options = request.options
    found: dict[str, Any] = {name: getattr(options, name) for name in _SAME}
    if options.num_predict is not None:
        found["max_tokens"] = max(-1, options.num_predict)
    found |= {"stream": request.stream, "tools": request.tools}
    found["messages"] = [_message(one, f"messages.{i}") for i, one in enumerate(request.messages)]
    if isinstance(request.format, dict):
        found["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.format}}
    elif request.format:
        found["response_format"] = {"type": "json_object" if request.format == "json" else request.format}
    found["enable_thinking" if isinstance(request.think, bool) else "reasoning_effort"] = request.think
    return parsed(ChatRequest, found)


def _message(one: Mapping[str, Any], at: str) -> dict[str, Any]:
    if one.get("images"):
        raise ApiError(400, f"{at}.images: only text is supported.", f"{at}.images", "unsupported_value")
    names = {"thinking": "reasoning_content", "tool_name": "name"}
    return {names.get(name, name): value for name, value in one.items()}


class OllamaEvents:
    """A `Renderer`."""

    done = alive = b""

    def __init__(self, model: str) -> None:
        self._model = model

    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        if delta.said or delta.thought:
            yield self._part(_message_of(delta.said, delta.thought), done=False)
        if isinstance(event, TurnEnded):
            calls = _calls(answer)
            if calls:
                yield self._part({**_message_of("", ""), "tool_calls": calls}, done=False)
            yield self._part(_message_of("", ""), done=True) | _ending(answer.choice)

    def last(self, _answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
        return iter(())

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        message = _message_of(answer.reader.said, answer.reader.thought)
        if calls := _calls(answer):
            message["tool_calls"] = calls
        return self._part(message, done=True) | _ending(answer.choice)

    def failed(self, error: ApiError) -> dict[str, Any]:
        return {"error": error.message}

    def _part(self, message: Mapping[str, Any], *, done: bool) -> dict[str, Any]:
        return {"model": self._model, "created_at": datetime.now(UTC).isoformat(), "message": message, "done": done}


def _message_of(said: str, thought: str) -> dict[str, Any]:
    return {"role": "assistant", "content": said, **({"thinking": thought} if thought else {})}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    """Arguments as the object that they are the text of."""
    return [
        {"function": {"name": call.name, "arguments": arguments_of(call.arguments)}} for call in answer.reader.calls
    ]


def _ending(choice: Choice) -> dict[str, Any]:
    told = timings(choice.stats)
    read_ns, write_ns = (round(told[name] * _NS_PER_MS) for name in ("prompt_ms", "predicted_ms"))
    return {
        "done_reason": choice.finish,
        "total_duration": read_ns + write_ns,
        "load_duration": 0,
        "prompt_eval_count": choice.stats.prompt_tokens,
        "prompt_eval_duration": read_ns,
        "eval_count": choice.stats.generated_tokens,
        "eval_duration": write_ns,
    }
