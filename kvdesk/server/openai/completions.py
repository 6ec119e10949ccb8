"""`POST /v1/completions`, whole and streaming: prompts that no chat template renders."""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.protocol.chat import RawPrompt, TextDelta, TurnEnded, TurnStarted
from kvdesk.server.answering import Choice, timings
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.llama_server.infill import filled
from kvdesk.server.logprobs import text_logprobs
from kvdesk.server.mixed_prompts import Part, prompts_of, tokens_of
from kvdesk.server.prefix_cache import counted, prefix_cache
from kvdesk.server.raw_completion import RawCompletion
from kvdesk.server.request.sampling import check_schema
from kvdesk.server.request.schemas import MOST_ANSWERS, CompletionRequest
from kvdesk.server.service import FINGERPRINT, Service
from kvdesk.server.streaming import DONE, sse


async def completions(service: Service, http: Request) -> Response:
    """OpenAI's completions of a text: whole, or streaming as server-sent events."""
    request = await service.body(http, CompletionRequest)
    await check_schema(request)
    if request.echo and request.logprobs is not None:
        raise ApiError(400, "echo is not supported beside logprobs.", "echo", "unsupported_parameter")
    if request.best_of not in (None, 1, request.n):
        raise ApiError(400, "best_of is not supported beside n.", "best_of", "unsupported_parameter")
    prompts = prompts_of(request.prompt, "prompt", MOST_ANSWERS // request.n)
    raw = [await _raw(service, parts, request.suffix) for parts in prompts]
    echoed = [await _text(service, parts) for parts in prompts] if request.echo else None
    return Completion(service, request, http, raw, echoed).response()


class Completion(RawCompletion):
    """One request. `echoed`: the prompts' texts, if answers begin with them. Raises ApiError if it cannot be asked."""

    def __init__(
        self,
        service: Service,
        request: CompletionRequest,
        http: Request,
        prompts: Sequence[RawPrompt],
        echoed: Sequence[str] | None,
    ) -> None:
        self._request = request
        self._echoed = ["" for _ in prompts] if echoed is None else echoed
        super().__init__(service, request, http, prompts, -1 if request.logprobs is None else request.logprobs)
        self._common = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": service.model_name,
            "system_fingerprint": FINGERPRINT,
        }

    async def _whole(self) -> dict[str, Any]:
        async with self._answering() as answering:
            await answering.finish()
        choices = [
            {
                "index": choice.index,
                "text": self._echo(choice) + choice.text,
                "logprobs": text_logprobs(choice.logprobs, 0) if self._request.logprobs is not None else None,
                "finish_reason": choice.finish,
            }
            for choice in answering.choices
        ]
        return {**self._common, "choices": choices, **counted(answering.choices)}

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._answering() as answering:
            sent = [0 for _ in self._commands]
            async for choice, event in answering.events():
                if isinstance(event, TurnStarted) and (echo := self._echo(choice)):
                    yield self._chunk(choice, echo, None)
                if isinstance(event, TextDelta) and (event.text or event.logprobs):
                    yield self._chunk(choice, event.text, event, offset=sent[choice.index])
                    sent[choice.index] += len(event.text)
                elif isinstance(event, TurnEnded):
                    yield self._chunk(choice, "", None)
        if self._request.usage_in_stream:
            yield sse({**self._common, "choices": [], **counted(answering.choices)})
        yield DONE

    def _echo(self, choice: Choice) -> str:
        return self._echoed[choice.index // self._request.n]

    def _chunk(self, choice: Choice, text: str, event: TextDelta | None, *, offset: int = 0) -> bytes:
        logprobs = None
        if event is not None and self._request.logprobs is not None:
            logprobs = text_logprobs(event.logprobs, offset)
        finish = choice.finish if event is None else None  # none yet, of what is echoed
        chunk: dict[str, Any] = {
            **self._common,
            "choices": [{"index": choice.index, "text": text, "logprobs": logprobs, "finish_reason": finish}],
        }
        if finish is not None:
            chunk |= {"timings": timings(choice.stats), **prefix_cache(choice)}
        elif self._request.timings_per_token:
            chunk["timings"] = timings(choice.so_far)
        if self._request.usage_in_stream:
            chunk["usage"] = None
        return sse(chunk)


async def _text(service: Service, parts: Sequence[Part]) -> str:
    """Of a prompt, as it was given. Raises ApiError."""
    match parts:
        case (str(text),):
            return text
    return (await tokens_of(service, parts)).text


async def _raw(service: Service, parts: Sequence[Part], suffix: str) -> RawPrompt:
    """A plain text is left to the engine. `suffix`: what comes behind the answer. Raises ApiError."""
    match parts:
        case (str(text),) if suffix:
            return await filled(service, text, suffix)
        case (str(text),) if text:
            return RawPrompt(text)
    if suffix:
        raise invalid("suffix", "needs a prompt that is a text")
    return RawPrompt(tokens=(await tokens_of(service, parts)).tokens)
