"""`POST /api/generate` in Ollama's form: the answer to one text, or how a text goes on, where editors ask for it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.protocol.chat import RawPrompt, TextDelta, TurnEnded
from kvdesk.protocol.prompt import Tokenize
from kvdesk.server.answering import Choice
from kvdesk.server.chat import Chat
from kvdesk.server.errors import ApiError, unsupported
from kvdesk.server.llama_server.infill import filled
from kvdesk.server.mixed_prompts import prompts_of, tokens_of
from kvdesk.server.ollama.chat import OllamaEvents
from kvdesk.server.ollama.options import NAMES, OllamaRequest
from kvdesk.server.raw_completion import RawCompletion
from kvdesk.server.request.sampling import check_schema
from kvdesk.server.request.schemas import ChatRequest, Sampled, parsed
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES


class OllamaGenerateRequest(OllamaRequest):
    """`/api/generate`. `raw`: no chat template renders the prompt; `suffix`: what comes behind the text to be written;
    `context`: tokens of the conversation before it. Without a prompt the model is to be loaded, which it is.
    """

    prompt: str = ""
    system: str = ""
    suffix: str = ""
    raw: bool = False
    context: list[int] | None = None
    images: list[Any] | None = None


async def generate(service: Service, http: Request) -> Response:
    """Ollama's answer to one `prompt`, with `system`; with `raw` or `suffix` how the text goes on."""
    request = await service.body(http, OllamaGenerateRequest)
    if request.images:
        raise unsupported("images", "only text is supported")
    events = _GenerateEvents(service.model_name)
    if not request.prompt and not request.suffix:
        _ = service.model
        return events.loaded(request)
    if request.raw or request.suffix:
        raw = await filled(service, request.prompt, request.suffix) if request.suffix else RawPrompt(request.prompt)
        return await _completed(service, request, http, raw, events)
    system = [{"role": "system", "content": request.system}] if request.system else []
    messages = [*system, {"role": "user", "content": request.prompt}]
    chat = await Chat.make(service, parsed(ChatRequest, {**request.fields(), "messages": messages}, NAMES), http)
    events.prompt = (await chat.prompt()).tokens
    if request.context:
        bos = (await service.tokenized(Tokenize("", add_special=True))).tokens[:1]
        new = events.prompt[len(bos) :] if events.prompt[:1] == bos else events.prompt
        before, *_ = prompts_of([*request.context], "context", 1)
        events.prompt = (await tokens_of(service, (*before, new))).tokens
        return await _completed(service, request, http, RawPrompt(tokens=events.prompt), events)
    return chat.response(events, LINES)


async def _completed(
    service: Service, request: OllamaGenerateRequest, http: Request, raw: RawPrompt, events: OllamaEvents
) -> Response:
    """How a prompt goes on that no template renders. Raises ApiError."""
    sampled = parsed(Sampled, request.fields(), NAMES)
    await check_schema(sampled)
    return _Completion(service, sampled, http, raw, request.n_probs, events).response()


class _GenerateEvents(OllamaEvents):
    """The text is a field of the line. `prompt`: the tokens of a chat, which the last line has as `context`."""

    prompt: tuple[int, ...] = ()

    def _content(self, said: str, thought: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: ARG002
        return {"response": said, **({"thinking": thought} if thought else {})}

    def ending(self, choice: Choice) -> dict[str, Any]:
        context = {"context": [*self.prompt, *choice.tokens]} if self.prompt else {}
        return super().ending(choice) | context


class _Completion(RawCompletion):
    """One request whose prompt is read as it is."""

    framing, alive = LINES, OllamaEvents.alive

    def __init__(
        self, service: Service, request: Sampled, http: Request, raw: RawPrompt, n_probs: int, events: OllamaEvents
    ) -> None:
        super().__init__(service, request, http, [raw], n_probs)
        self._events = events

    def failed(self, error: ApiError) -> dict[str, Any]:
        return self._events.failed(error)

    async def _whole(self) -> dict[str, Any]:
        async with self._answering() as answering:
            await answering.finish()
        (choice,) = answering.choices
        return self._events.part(choice.text, logprobs=choice.logprobs, done=True) | self._events.ending(choice)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._answering() as answering:
            async for choice, event in answering.events():
                if isinstance(event, TextDelta) and (event.text or event.logprobs):
                    yield LINES.write(self._events.part(event.text, logprobs=event.logprobs))
                elif isinstance(event, TurnEnded):
                    yield LINES.write(self._events.closing(choice))
