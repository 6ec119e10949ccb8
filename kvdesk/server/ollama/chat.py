"""`POST /api/chat` in Ollama's form: a request with `options`, a stream of lines of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.answer_reader import AnswerDelta
from kvdesk.loose_json import object_in
from kvdesk.protocol.chat import TurnEnded
from kvdesk.server.answering import Choice, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Chat, Renderer
from kvdesk.server.errors import ApiError, unsupported
from kvdesk.server.request.sampling import SAME
from kvdesk.server.request.schemas import MOST_MESSAGES, Body, ChatRequest, parsed
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES

_SAME: Final = SAME | {"mirostat", "seed", "stop"}
"""Options that have the same name in a chat request."""
_LIMIT: Final = "num_predict"
_NAMES: Final = {
    **{name: f"options.{name}" for name in _SAME},
    "max_tokens": f"options.{_LIMIT}",
    "response_format": "format",
    "reasoning_effort": "think",
}
"""What a client calls the fields of a chat request."""
_NS_PER_MS: Final = 1_000_000


class OllamaChatRequest(Body):
    """`/api/chat`. `format`: "json" or a JSON schema; `think`: whether, or how much; `options`: those of `_SAME`, and
    `num_predict`, the most tokens of the answer, below 0: no limit.
    """

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_MESSAGES)
    tools: list[dict[str, Any]] | None = None
    stream: bool = True
    format: str | dict[str, Any] | None = None
    think: bool | str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def unknown(self) -> list[str]:
        return [*super().unknown(), *(f"options.{name}" for name in self.options if name not in (*_SAME, _LIMIT))]


async def chat(service: Service, http: Request) -> Response:
    """Ollama's chat, with what other protocols have too: messages, tools, a format, thinking and samplers."""
    request = await service.body(http, OllamaChatRequest)
    asked = await Chat.make(service, chat_of_ollama(request), http)
    return asked.response(OllamaEvents(service.model_name), LINES)


def chat_of_ollama(request: OllamaChatRequest) -> ChatRequest:
    """Raises ApiError."""
    found: dict[str, Any] = {name: request.options.get(name) for name in _SAME}
    limit = request.options.get(_LIMIT)
    found["max_tokens"] = -1 if isinstance(limit, int | float) and limit < 0 else limit
    found |= {"stream": request.stream, "tools": request.tools}
    found["messages"] = [_message(one, f"messages.{i}") for i, one in enumerate(request.messages)]
    if isinstance(request.format, dict):
        found["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.format}}
    elif request.format:
        found["response_format"] = {"type": "json_object" if request.format == "json" else request.format}
    found["enable_thinking" if isinstance(request.think, bool) else "reasoning_effort"] = request.think
    return parsed(ChatRequest, found, _NAMES)


def _message(one: Mapping[str, Any], at: str) -> dict[str, Any]:
    if one.get("images"):
        raise unsupported(f"{at}.images", "only text is supported")
    names = {"thinking": "reasoning_content", "tool_name": "name"}
    return {names.get(name, name): value for name, value in one.items()}


class OllamaEvents(Renderer):
    alive = b""

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
    return [{"function": {"name": call.name, "arguments": object_in(call.arguments)}} for call in answer.reader.calls]


def _ending(choice: Choice) -> dict[str, Any]:
    ms = timings(choice.stats)
    read_ns, write_ns = (round(ms[name] * _NS_PER_MS) for name in ("prompt_ms", "predicted_ms"))
    return {
        "done_reason": choice.finish,
        "total_duration": read_ns + write_ns,
        "load_duration": 0,
        "prompt_eval_count": choice.stats.prompt_tokens,
        "prompt_eval_duration": read_ns,
        "eval_count": choice.stats.generated_tokens,
        "eval_duration": write_ns,
    }
