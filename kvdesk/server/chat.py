"""A chat request of any protocol, from its fields to the events of its answers.

A protocol is three things: a schema of its request, a function from that to a `ChatRequest`, and a `Renderer` of the
answers. All else, from the prompt to the token ids that are kept, is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kvdesk.answer_reader import AnswerDelta, AnswerReader
from kvdesk.message import new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.prompt import Tokenize, Tokenized
from kvdesk.server.answering import Answering, Choice
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.request.conversation import GivenAnswer, chains, messages_of, with_tokens
from kvdesk.server.request.parts import text_of
from kvdesk.server.request.reasoning_options import options_of
from kvdesk.server.request.sampling import check_schema, only_reads, sampling_of, seeded
from kvdesk.server.request.schemas import ChatRequest
from kvdesk.server.request.tools import callable_tools, choice_of, tools_of
from kvdesk.server.service import Service, key_of
from kvdesk.server.streaming import ALIVE, EVENTS, EventStream, Framing, WholeResponse
from kvdesk.values import replace


class Answer:
    """One answer so far: what the engine reports, and its text in parts."""

    def __init__(self, choice: Choice, reader: AnswerReader) -> None:
        self.choice, self.reader = choice, reader
        self.began = False
        self.n_thought = 0
        """Tokens before the first that says or calls something."""

    def take(self, event: AnswerEvent) -> AnswerDelta:
        """What is new of the answer."""
        match event:
            case TurnStarted():
                self.began, continued = True, self.choice.command.continued
                self.reader.begin(event.marks, event.calls, continued.text if continued is not None else "")
            case TextDelta():
                delta = self.reader.add(event.text)
                if self.reader.thought and not self.reader.said and not self.reader.calls:
                    self.n_thought += len(event.tokens)
                return delta
            case TurnEnded():
                return self.reader.end()
        return AnswerDelta()

    @property
    def finish(self) -> str | None:
        """As chat completions call it."""
        return "tool_calls" if self.reader.calls and self.choice.finish == "stop" else self.choice.finish


class Renderer(ABC):
    """Writes the answers to one request in the form of its protocol.

    done   what ends a stream
    alive  what a stream sends while nothing comes
    """

    done = b""
    alive = ALIVE

    @abstractmethod
    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        """Those that follow from an event of the engine, and from what is new with it."""

    def last(self, answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """Those behind the end of all answers."""
        return iter(())

    @abstractmethod
    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """The answers in one, when all events were rendered."""

    def failed(self, error: ApiError) -> dict[str, Any]:
        """The last event of a stream that fails."""
        return error.body()


class Chat:
    """One request. `make` it."""

    def __init__(self, service: Service, request: ChatRequest, http: Request) -> None:
        """Raises ApiError if it cannot be asked."""
        self._service, self.request, self._http = service, request, http
        n_ctx = service.n_ctx
        self._sharing = service.sharing(key_of(http))
        self._tools = tools_of(request)
        if request.continue_final_message and request.add_generation_prompt:
            raise invalid("continue_final_message", "excludes add_generation_prompt")
        sampling = sampling_of(request, service.sampling, n_ctx, service.config.max_tokens, service.model.ends)
        reasoning = options_of(request, service.config.reasoning_budget)
        choice = choice_of(request)
        self._offered = callable_tools(request, choice)
        self._splits, self._is_json = request.reasoning_format != "none", bool(sampling.json_schema)
        client = service.client(http, reuse=request.cache_prompt, slot=request.id_slot)
        self.conversation = new_conversation_id()
        asked = messages_of(request.messages, self.conversation)
        if [message.role for message in asked[-2:]] == ["assistant", "assistant"]:
            raise invalid("messages", "at most one answer can be at the end")
        if len(asked) > 1 and asked[-1].role == "assistant" and not asked[-1].text and not asked[-1].fields:
            asked = asked[:-1]  # the place of this answer, which has not begun
        *_, self._chain = chains(asked, self._tools, self._sharing)
        messages = with_tokens(asked, service.answers, self._tools, self._sharing)
        continued = None
        if messages[-1].role == "assistant" and messages[-1].text and len(messages) > 1 and not messages[-1].fields:
            messages, continued = messages[:-1], messages[-1]  # what is there of the answer already
        n_probs = (request.top_logprobs or 0) if request.logprobs else -1
        predicted = text_of(request.prediction.content, "prediction.content") if request.prediction else ""
        self._commands = [
            Generate(
                self.conversation if i == 0 else new_conversation_id(),
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
                others=(predicted,) if predicted else (),
            )
            for i in range(request.n)
        ]

    @classmethod
    async def make(cls, service: Service, request: ChatRequest, http: Request) -> Chat:
        """Raises ApiError."""
        await check_schema(request)
        return cls(service, request, http)

    def response(self, renderer: Renderer, framing: Framing = EVENTS) -> Response:
        if self.request.stream:
            write_s = self._service.config.limits.write_s
            events = self._stream(renderer, framing)
            return EventStream(events, write_s, failed=renderer.failed, alive=renderer.alive, framing=framing)
        return WholeResponse(self._whole(renderer))

    async def prompt(self, *, begins: bool = True) -> Tokenized:
        """The prompt, also one that does not fit, with the answer that it continues. `begins`: an answer would begin
        behind it. Raises ApiError.
        """
        command, most = self._commands[0], self._service.config.limits.text_chars
        if not begins and command.continued is not None:
            command = replace(command, messages=(*command.messages, command.continued), continued=None)
        if sum(len(message.text) + len(message.fields) for message in command.messages) + len(command.tools) > most:
            raise invalid("messages", f"the prompt has more than {most:,} characters")
        return await self._service.tokenized(Tokenize("", prompt=command, begins=begins))

    async def _whole(self, renderer: Renderer) -> dict[str, Any]:
        async with self._answering() as answering:
            answers = [Answer(choice, self._reader()) for choice in answering.choices]
            async for choice, event in answering.events():
                for _ in self._rendered(renderer, answers[choice.index], event):
                    pass
        return renderer.whole(answers)

    async def _stream(self, renderer: Renderer, framing: Framing) -> AsyncGenerator[bytes, None]:
        async with self._answering() as answering:
            answers = [Answer(choice, self._reader()) for choice in answering.choices]
            async for choice, event in answering.events():
                for one in self._rendered(renderer, answers[choice.index], event):
                    yield framing.write(one)
        for one in renderer.last(answers):
            yield framing.write(one)
        if renderer.done:
            yield renderer.done

    def _answering(self) -> AbstractAsyncContextManager[Answering]:
        return self._service.answering(self._commands, self._http, only_reads=only_reads(self.request))

    def _rendered(self, renderer: Renderer, answer: Answer, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        if isinstance(event, TurnStarted) and answer.began:
            return iter(())  # reported again, after events were lost
        delta = answer.take(event)
        if isinstance(event, TurnEnded):
            self._remember(answer)
        return renderer.events(answer, event, delta)

    def _reader(self) -> AnswerReader:
        return AnswerReader(self._offered, splits=self._splits, is_json=self._is_json)

    def _remember(self, answer: Answer) -> None:
        """The next request will have this answer among its messages."""
        choice, reader = answer.choice, answer.reader
        if choice.command.continued is None:
            given = GivenAnswer(
                choice.text, tuple(choice.tokens), choice.stats, reader.said, reader.calls, reader.thought
            )
            self._service.answers.add(self._chain, given)
