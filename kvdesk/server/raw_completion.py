"""What `/v1/completions`, `/completion` and `/infill` share: answers to prompts that no chat template renders."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.message import new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, RawPrompt
from kvdesk.server.answering import Answering
from kvdesk.server.errors import ApiError
from kvdesk.server.request.sampling import only_reads, sampling_of, seeded
from kvdesk.server.request.schemas import Sampled
from kvdesk.server.service import Service
from kvdesk.server.streaming import ALIVE, EVENTS, EventStream, WholeResponse


class RawCompletion(ABC):
    """One request: each prompt is answered `request.n` times. Raises ApiError.

    n_probs, sampled_probs  as in `Generate`
    framing, alive  as in `Chat.response` and `Renderer`
    most_s          as in `Answering`
    """

    most_s = 0.0
    framing = EVENTS
    alive = ALIVE

    def __init__(
        self,
        service: Service,
        request: Sampled,
        http: Request,
        prompts: Sequence[RawPrompt],
        n_probs: int,
        *,
        sampled_probs: bool = False,
    ) -> None:
        self._service, self._http = service, http
        sampling = sampling_of(request, service.sampling, service.n_ctx, service.config.max_tokens, service.model.ends)
        client = service.client(http, reuse=request.cache_prompt, slot=request.id_slot)
        self._streams, self._only_reads = request.stream, only_reads(request)
        self._commands = [
            Generate(
                new_conversation_id(),
                new_message_id(),
                (),
                seeded(sampling, i),
                client=client,
                raw=prompt,
                n_probs=n_probs,
                sampled_probs=sampled_probs,
            )
            for prompt in prompts
            for i in range(request.n)
        ]

    def response(self) -> Response:
        """Whole, or streaming."""
        if self._streams:
            write_s = self._service.config.limits.write_s
            return EventStream(self._chunks(), write_s, failed=self.failed, alive=self.alive, framing=self.framing)
        return WholeResponse(self._whole())

    def failed(self, error: ApiError) -> dict[str, Any]:
        """The last part of a stream that fails."""
        return error.body()

    def _answering(self) -> AbstractAsyncContextManager[Answering]:
        return self._service.answering(self._commands, self._http, only_reads=self._only_reads, most_s=self.most_s)

    @abstractmethod
    async def _whole(self) -> Any:
        """The answers. Raises ApiError."""

    @abstractmethod
    def _chunks(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events. Raises ApiError."""
