"""`POST /api/chat` in Ollama's form: a request with `options`, a stream of lines of JSON."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.answer_reader import AnswerDelta
from kvdesk.loose_json import object_in
from kvdesk.protocol.chat import TextDelta, TokenLogprobs, TurnEnded
from kvdesk.server.answering import Choice, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Chat, Renderer
from kvdesk.server.errors import ApiError, unsupported
from kvdesk.server.logprobs import chat_logprobs
from kvdesk.server.ollama.options import NAMES, OllamaRequest
from kvdesk.server.request.schemas import MOST_MESSAGES, ChatRequest, parsed
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES

_NS_PER_MS: Final = 1_000_000
_NO_TIME: Final = (0, "0", "0s", "0m", "0h")
"""`keep_alive` of a request that unloads the model."""


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
        return events.loaded(request)
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
    """Made when the request arrives: `total_duration` counts from then."""

    alive = b""

    def __init__(self, model: str) -> None:
        self._model, self._began_ns = model, time.monotonic_ns()

    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        logprobs = event.logprobs if isinstance(event, TextDelta) else ()
        if delta.said or delta.thought or logprobs:
            yield self.part(delta.said, delta.thought, logprobs=logprobs)
        if isinstance(event, TurnEnded):
            if calls := _calls(answer):
                yield self.part(calls=calls)
            yield self.closing(answer.choice)

    def closing(self, choice: Choice) -> dict[str, Any]:
        """The line that ends a stream."""
        return self.part(done=True) | self.ending(choice)

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        reader, choice = answer.reader, answer.choice
        part = self.part(reader.said, reader.thought, _calls(answer), choice.logprobs, done=True)
        return part | self.ending(choice)

    def failed(self, error: ApiError) -> dict[str, Any]:
        return {"error": error.message}

    def loaded(self, request: OllamaRequest) -> Response:
        """The answer to a request that only loads or unloads the model. It stays open either way."""
        unloads = request.keep_alive in _NO_TIME
        return JSONResponse({**self.part(done=True), "done_reason": "unload" if unloads else "load"})

    def part(
        self,
        said: str = "",
        thought: str = "",
        calls: Sequence[Mapping[str, Any]] = (),
        logprobs: Sequence[TokenLogprobs] = (),
        *,
        done: bool = False,
    ) -> dict[str, Any]:
        """One line."""
        head = {"model": self._model, "created_at": datetime.now(UTC).isoformat()}
        line = {**head, **self._content(said, thought, calls), "done": done}
        return line | ({"logprobs": chat_logprobs(logprobs)["content"]} if logprobs else {})

    def _content(self, said: str, thought: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if thought:
            message["thinking"] = thought
        if calls:
            message["tool_calls"] = calls
        return {"message": message}

    def ending(self, choice: Choice) -> dict[str, Any]:
        """What the last line has, in tokens and nanoseconds. All time that was neither reading nor writing is that of
        loading: clients wait for it as for a model.
        """
        ms = timings(choice.stats)
        read_ns, write_ns = (round(ms[name] * _NS_PER_MS) for name in ("prompt_ms", "predicted_ms"))
        return {
            "done_reason": choice.finish,
            **durations(self._began_ns, read_ns + write_ns),
            "prompt_eval_count": choice.stats.prompt_tokens,
            "prompt_eval_duration": read_ns,
            "eval_count": choice.stats.generated_tokens,
            "eval_duration": write_ns,
        }


def durations(began_ns: int, work_ns: int) -> dict[str, int]:
    """Nanoseconds since a request began, and those of them that were not its work: at least 1, because Ollama's clients
    read 0 as missing.
    """
    load_ns = max(1, time.monotonic_ns() - began_ns - work_ns)
    return {"total_duration": load_ns + work_ns, "load_duration": load_ns}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    """Arguments as the object that they are the text of."""
    calls = []
    for i, call in enumerate(answer.reader.calls_as_json()):
        name, arguments = call["function"]["name"], object_in(call["function"]["arguments"])
        calls.append({"id": call["id"], "function": {"index": i, "name": name, "arguments": arguments}})
    return calls
