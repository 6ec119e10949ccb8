"""`POST /api/chat` in Ollama's form: a request with `options`, a stream of lines of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.answer_reader import AnswerDelta
from kvdesk.loose_json import object_in
from kvdesk.protocol.chat import TurnEnded
from kvdesk.server.answering import Choice, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Chat, Renderer
from kvdesk.server.errors import ApiError, unsupported
from kvdesk.server.ollama.options import NAMES, OllamaRequest
from kvdesk.server.request.schemas import MOST_MESSAGES, ChatRequest, parsed
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES

_NS_PER_MS: Final = 1_000_000


class OllamaChatRequest(OllamaRequest):
    """`/api/chat`. Without messages the model is to be loaded, which it is."""

    messages: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_MESSAGES)
    tools: list[dict[str, Any]] | None = None


async def chat(service: Service, http: Request) -> Response:
    """Ollama's chat, with what other protocols have too: messages, tools, a format, thinking and samplers."""
    request = await service.body(http, OllamaChatRequest)
    events = OllamaEvents(service.model_name)
    if not request.messages:
        _ = service.model
        return events.loaded()
    asked = await Chat.make(service, chat_of_ollama(request), http)
    return asked.response(events, LINES)


def chat_of_ollama(request: OllamaChatRequest) -> ChatRequest:
    """Raises ApiError."""
    messages = [_message(one, f"messages.{i}") for i, one in enumerate(request.messages)]
    return parsed(ChatRequest, {**request.fields(), "tools": request.tools, "messages": messages}, NAMES)


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
            yield self.part(delta.said, delta.thought)
        if isinstance(event, TurnEnded):
            if calls := _calls(answer):
                yield self.part(calls=calls)
            yield self.part(done=True) | ending(answer.choice)

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        reader = answer.reader
        return self.part(reader.said, reader.thought, _calls(answer), done=True) | ending(answer.choice)

    def failed(self, error: ApiError) -> dict[str, Any]:
        return {"error": error.message}

    def loaded(self) -> Response:
        """The answer to a request that only loads the model."""
        return JSONResponse({**self.part(done=True), "done_reason": "load"})

    def part(
        self, said: str = "", thought: str = "", calls: Sequence[Mapping[str, Any]] = (), *, done: bool = False
    ) -> dict[str, Any]:
        """One line."""
        now = datetime.now(UTC).isoformat()
        return {"model": self._model, "created_at": now, **self._content(said, thought, calls), "done": done}

    def _content(self, said: str, thought: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if thought:
            message["thinking"] = thought
        if calls:
            message["tool_calls"] = calls
        return {"message": message}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    """Arguments as the object that they are the text of."""
    return [{"function": {"name": call.name, "arguments": object_in(call.arguments)}} for call in answer.reader.calls]


def ending(choice: Choice) -> dict[str, Any]:
    """What the last line has, in tokens and nanoseconds."""
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
