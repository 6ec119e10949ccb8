"""What `/v1/completions`, `/completion` and `/infill` share: answers to prompts that no chat template renders."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.message import new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, RawPrompt
from kvdesk.server.request.sampling import sampling_of, seeded
from kvdesk.server.request.schemas import Sampled
from kvdesk.server.service import Service
from kvdesk.server.streaming import EventStream, WholeResponse


class RawCompletion(ABC):
    """One request: each prompt is answered `request.n` times. `n_probs`: as in `Generate`. Raises ApiError."""

    def __init__(
        self, service: Service, request: Sampled, http: Request, prompts: Sequence[RawPrompt], n_probs: int
    ) -> None:
        self._service, self._http = service, http
        sampling = sampling_of(request, service.sampling, service.n_ctx, service.config.max_tokens)
        client = service.client(http, reuse=request.cache_prompt)
        self._streams = request.stream
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

    def response(self) -> Response:
        """Whole, or streaming."""
        if self._streams:
            return EventStream(self._chunks(), self._service.config.limits.write_s)
        return WholeResponse(self._whole())

    @abstractmethod
    async def _whole(self) -> Any:
        """The answers. Raises ApiError."""

    @abstractmethod
    def _chunks(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events. Raises ApiError."""
