"""`POST /v1/chat/completions`, whole and streaming."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.chat import new_conversation_id, new_message_id
from kvdesk.protocol.cache import ANSWER_ID
from kvdesk.protocol.chat import Generate, PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.server.answer_reader import AnswerDelta, AnswerReader, delta_as_json
from kvdesk.server.answering import Choice, progress, timings, usage
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.completion import FINGERPRINT, Service, chat_logprobs, key_of
from kvdesk.server.conversation import GivenAnswer, chains, messages_of, with_tokens
from kvdesk.server.errors import ApiError
from kvdesk.server.reasoning_options import options_of
from kvdesk.server.responses import DONE, EventStream, WholeResponse, sse
from kvdesk.server.sampling import sampling_of, seeded
from kvdesk.server.schemas import ChatRequest
from kvdesk.server.tools import callable_tools, choice_of, tools_of


class ChatCompletion:
    """One request. Raises ApiError where it cannot be asked."""

    def __init__(self, service: Service, request: ChatRequest, http: Request) -> None:
        self._service, self._request = service, request
        n_ctx = service.n_ctx
        self._sharing = service.sharing(key_of(http))
        self._tools = tools_of(request)
        if request.functions is not None:
            raise ApiError(400, "The field functions is not supported; tools is.", "functions", "unsupported_parameter")
        if request.modalities and request.modalities != ["text"]:
            raise ApiError(400, "modalities: only text is supported.", "modalities", "unsupported_value")
        if request.top_logprobs is not None and not request.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs.", "top_logprobs", "invalid_value")
        if request.continue_final_message and request.add_generation_prompt:
            said = "continue_final_message and add_generation_prompt exclude each other"
            raise ApiError(400, f"{said}.", "continue_final_message", "invalid_value")
        sampling = sampling_of(request, service.sampling, n_ctx, service.config.max_tokens)
        reasoning = options_of(request, service.config.reasoning_budget)
        choice = choice_of(request, has_schema=bool(sampling.json_schema))
        self._offered = callable_tools(request, choice)
        self._splits = request.reasoning_format != "none"
        client = service.client(http, reuse=request.cache_prompt)
        conversation = new_conversation_id()
        asked = messages_of(request.messages, conversation)
        if [message.role for message in asked[-2:]] == ["assistant", "assistant"]:
            raise ApiError(400, "messages: at most one answer can be at the end.", "messages", "invalid_value")
        *_, self._chain = chains(asked, self._tools, self._sharing)
        messages = with_tokens(asked, service.answers, self._tools, self._sharing)
        continued = None
        if messages[-1].role == "assistant" and messages[-1].text and len(messages) > 1 and not messages[-1].fields:
            messages, continued = messages[:-1], messages[-1]  # what is there of the answer already
        n_probs = (request.top_logprobs or 0) if request.logprobs else -1
        self._commands = [
            Generate(
                conversation if i == 0 else new_conversation_id(),
                new_message_id(),
                messages,
                seeded(sampling, i),
                continued=continued,
                client=client,
                tools=self._tools,
                choice=choice,
                variables=reasoning.variables,
                reasoning_budget=reasoning.budget,
                n_probs=n_probs,
            )
            for i in range(request.n)
        ]
        self._common = {
            "id": f"{ANSWER_ID}{conversation}",  # its cells are leased under this name
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
            readers = [self._reader() for _ in self._commands]
            async for choice, event in answering.events():
                self._read(readers[choice.index], choice, event)
        choices = []
        for choice, reader in zip(answering.choices, readers, strict=True):
            self._remember(choice, reader)
            message: dict[str, Any] = {"role": "assistant", "content": reader.said or (None if reader.calls else "")}
            if reader.thought:
                message["reasoning_content"] = reader.thought
            if reader.calls:
                message["tool_calls"] = reader.calls_as_json()
            choices.append(
                {
                    "index": choice.index,
                    "message": message,
                    "logprobs": chat_logprobs(choice.logprobs) if self._request.logprobs else None,
                    "finish_reason": self._finish(choice, reader),
                }
            )
        whole = {"object": "chat.completion", **self._common, "choices": choices}
        return {**whole, "usage": usage(answering.choices), "timings": timings(answering.choices[0].stats)}

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._service.answering(self._commands) as answering:
            readers = [self._reader() for _ in self._commands]
            async for choice, event in answering.events():
                reader = readers[choice.index]
                delta = delta_as_json(self._read(reader, choice, event))
                match event:
                    case TurnStarted():
                        yield self._chunk(choice, {"role": "assistant", "content": None})
                    case TextDelta():
                        if delta or event.logprobs:
                            yield self._chunk(choice, delta, event=event)
                    case TurnEnded():
                        if delta:
                            yield self._chunk(choice, delta)
                        self._remember(choice, reader)
                        yield self._chunk(choice, {}, finish=self._finish(choice, reader))
                if self._request.return_progress and isinstance(event, TurnStarted | PrefillProgress):
                    yield self._chunk(choice, {}, more={"prompt_progress": progress(choice, event)})
        if self._request.usage_in_stream:
            counted = {"usage": usage(answering.choices), "timings": timings(answering.choices[0].stats)}
            yield sse({"object": "chat.completion.chunk", **self._common, "choices": [], **counted})
        yield DONE

    def _reader(self) -> AnswerReader:
        return AnswerReader(self._offered, splits=self._splits)

    @staticmethod
    def _read(reader: AnswerReader, choice: Choice, event: AnswerEvent) -> AnswerDelta:
        """What is new of the answer."""
        match event:
            case TurnStarted():
                continued = choice.command.continued
                reader.begin(event.marks, event.calls, continued.text if continued is not None else "")
            case TextDelta():
                return reader.add(event.text)
            case TurnEnded():
                return reader.end()
        return AnswerDelta()

    def _chunk(
        self,
        choice: Choice,
        delta: dict[str, Any],
        *,
        event: TextDelta | None = None,
        finish: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> bytes:
        one: dict[str, Any] = {"index": choice.index, "delta": delta, "finish_reason": finish}
        if self._request.logprobs:
            one["logprobs"] = chat_logprobs(event.logprobs) if event is not None else None
        chunk = {"object": "chat.completion.chunk", **self._common, "choices": [one], **(more or {})}
        if finish is not None:
            chunk["timings"] = timings(choice.stats)
        if self._request.usage_in_stream:
            chunk["usage"] = None
        return sse(chunk)

    @staticmethod
    def _finish(choice: Choice, reader: AnswerReader) -> str | None:
        return "tool_calls" if reader.calls and choice.finish == "stop" else choice.finish

    def _remember(self, choice: Choice, reader: AnswerReader) -> None:
        """The next request will have this answer among its messages."""
        if choice.command.continued is None:
            given = GivenAnswer(
                choice.text, tuple(choice.tokens), choice.stats, reader.said, reader.calls, reader.thought
            )
            self._service.answers.add(self._chain, given)
