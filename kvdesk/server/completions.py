"""`POST /v1/completions`, whole and streaming: prompts that no chat template renders."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.chat import new_conversation_id, new_message_id, storable
from kvdesk.protocol.chat import Generate, RawPrompt, TextDelta, TurnEnded
from kvdesk.server.answering import Choice, timings, usage
from kvdesk.server.completion import FINGERPRINT, Service, text_logprobs
from kvdesk.server.errors import ApiError
from kvdesk.server.responses import DONE, EventStream, WholeResponse, sse
from kvdesk.server.sampling import sampling_of, seeded
from kvdesk.server.schemas import MOST_CHOICES, CompletionRequest


class Completion:
    """One request. Raises ApiError where it cannot be asked."""

    def __init__(self, service: Service, request: CompletionRequest, http: Request) -> None:
        self._service, self._request = service, request
        n_ctx = service.n_ctx
        if request.echo:
            raise ApiError(400, "The field echo is not supported.", "echo", "unsupported_parameter")
        if request.best_of not in (None, 1, request.n):
            raise ApiError(400, "best_of is not supported beside n.", "best_of", "unsupported_parameter")
        prompts = _prompts(request.prompt)
        if len(prompts) * request.n > MOST_CHOICES:
            raise ApiError(400, f"A request has {MOST_CHOICES} answers at most.", "prompt", "invalid_value")
        sampling = sampling_of(request, service.sampling, n_ctx, service.config.max_tokens)
        client = service.client(http, reuse=request.cache_prompt)
        n_probs = -1 if request.logprobs is None else request.logprobs
        self._commands = [
            Generate(
                new_conversation_id(),
                new_message_id(),
                (),
                seeded(sampling, i),
                client=client,
                raw=prompt,
                n_probs=n_probs,
            )
            for prompt in prompts
            for i in range(request.n)
        ]
        self._common = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": service.model_name,
            "system_fingerprint": FINGERPRINT,
        }

    def response(self) -> Response:
        if self._request.stream:
            return EventStream(self._chunks(), self._service.config.limits.write_s)
        return WholeResponse(self._whole())

    async def _whole(self) -> dict[str, Any]:
        async with self._service.answering(self._commands) as answering:
            await answering.finish()
        choices = [
            {
                "index": choice.index,
                "text": choice.text,
                "logprobs": text_logprobs(choice.logprobs, 0) if self._request.logprobs is not None else None,
                "finish_reason": choice.finish,
            }
            for choice in answering.choices
        ]
        whole = {**self._common, "choices": choices}
        return {**whole, "usage": usage(answering.choices), "timings": timings(answering.choices[0].stats)}

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._service.answering(self._commands) as answering:
            sent = [0 for _ in self._commands]
            async for choice, event in answering.events():
                if isinstance(event, TextDelta) and (event.text or event.logprobs):
                    yield self._chunk(choice, event.text, event, offset=sent[choice.index])
                    sent[choice.index] += len(event.text)
                elif isinstance(event, TurnEnded):
                    yield self._chunk(choice, "", None)
        if self._request.usage_in_stream:
            counted = {"usage": usage(answering.choices), "timings": timings(answering.choices[0].stats)}
            yield sse({**self._common, "choices": [], **counted})
        yield DONE

    def _chunk(self, choice: Choice, text: str, event: TextDelta | None, *, offset: int = 0) -> bytes:
        logprobs = None
        if event is not None and self._request.logprobs is not None:
            logprobs = text_logprobs(event.logprobs, offset)
        finish = choice.finish if event is None else None
        chunk: dict[str, Any] = {
            **self._common,
            "choices": [{"index": choice.index, "text": text, "logprobs": logprobs, "finish_reason": finish}],
        }
        if finish is not None:
            chunk["timings"] = timings(choice.stats)
        if self._request.usage_in_stream:
            chunk["usage"] = None
        return sse(chunk)


def _prompts(given: str | list[str] | list[int] | list[list[int]]) -> list[RawPrompt]:
    """Raises ApiError."""
    if isinstance(given, str):
        found = [RawPrompt(storable(given))]
    elif given and all(isinstance(part, int) for part in given):
        found = [RawPrompt(tokens=tuple(cast("list[int]", given)))]
    else:
        found = [
            RawPrompt(storable(part)) if isinstance(part, str) else RawPrompt(tokens=tuple(cast("list[int]", part)))
            for part in given
        ]
    if not found or not all(prompt.text or prompt.tokens for prompt in found):
        raise ApiError(400, "The prompt is empty.", "prompt", "invalid_value")
    if any(not -1 < token < 1 << 31 for prompt in found for token in prompt.tokens):
        raise ApiError(400, "prompt: a token id is a number from 0 on.", "prompt", "invalid_value")
    return found
