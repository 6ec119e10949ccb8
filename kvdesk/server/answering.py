"""One request of a client: its commands, their events as they come, and what each answer is in the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from kvdesk.message import NO_STATS, FinishReason, TurnStats
from kvdesk.protocol.chat import (
    NO_MODEL,
    EngineDied,
    Generate,
    Overflowed,
    PrefillProgress,
    ReuseReason,
    TextDelta,
    TokenLogprobs,
    TurnEnded,
    TurnStarted,
)
from kvdesk.protocol.messages import CommandFailed
from kvdesk.server.bridge import AnswerEvent, HostBridge
from kvdesk.server.errors import ApiError
from kvdesk.server.state import decode_ms, prefill_ms
from kvdesk.translation import tr
from kvdesk.values import dataclass, field, replace


@dataclass(slots=True)
class Choice:
    """One answer so far."""

    index: int
    command: Generate
    texts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    stats: TurnStats = NO_STATS
    finish: str | None = None  # as the protocol calls it
    reason: FinishReason = ""  # as the engine calls it; "" if the model ended it
    stopped_by: str = ""  # the stop string that ended it
    slot: int = -1  # its sequence
    began: bool = False
    prompt: tuple[int, int] = 0, 0  # tokens of it, and those of them that the cache had
    over_full: tuple[int, int] | None = None  # its prompt did not fit: tokens that it needs, and those that fit
    reuse: ReuseReason | None = None  # why the cache had so much; None before it began, or if unknown
    may_inspect: bool = False  # its client may see texts of the cache
    only_reads: bool = False  # its prompt: the engine's first token is for nobody
    read: tuple[int, float] = 0, 0.0  # tokens of the prompt that were computed so far, and how many a second
    first_at: float = 0.0  # when its first tokens came, in seconds of `time.monotonic`; 0.0: none did
    is_cut: bool = False  # it was ended because it took as long as it may

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def so_far(self) -> TurnStats:
        """Its statistics while it is still being written."""
        (n_prompt, n_cached), (n_read, read_tok_s), n = self.prompt, self.read, len(self.tokens)
        write_s = time.monotonic() - self.first_at if n > 1 else 0.0
        return TurnStats(n_prompt, n_cached, n_read, n, 0.0, read_tok_s, (n - 1) / write_s if write_s else 0.0)

    def apply(self, event: AnswerEvent) -> None:
        """Take an event over. Raises ApiError if the answer failed."""
        match event:
            case TurnStarted():
                self.began, self.prompt = True, (event.prompt_tokens, event.reused_tokens)
                self.slot, self.reuse = event.seq_id, event.reuse
            case PrefillProgress():
                self.read = event.done, event.tok_s
            case TextDelta():
                self.first_at = self.first_at or time.monotonic()
                self.texts.append(event.text)
                self.tokens += event.tokens
                self.logprobs += event.logprobs
            case Overflowed():
                if not self.began:
                    self.over_full = event.n_tokens, event.n_ctx
            case TurnEnded():
                self.stats, self.reason, self.stopped_by = event.sampled, event.finish, event.stopped_by
                self._end(event)
            case CommandFailed() | EngineDied():
                raise ApiError(503, event.sentence)

    def _end(self, event: TurnEnded) -> None:
        note = event.note or "The answer ended early."
        match event.state:
            case "failed" if self.over_full is not None:
                raise over_full(*self.over_full, "messages" if self.command.raw is None else "prompt")
            case "failed" if not self.began:
                raise ApiError(503 if event.note == tr(NO_MODEL) else 400, note)
            case "failed":
                raise ApiError(500, note)
            case "interrupted":
                raise ApiError(503, note)
            case "stopped" if event.finish == "" and not self.began:
                raise ApiError(503, note)
        if self.only_reads:
            self.stats = replace(self.stats, generated_tokens=0)
        if self.only_reads or self.is_cut:
            self.reason = "limit"
        self.finish = "length" if self.reason in ("limit", "context full") else "stop"


def over_full(n_tokens: int, n_ctx: int, param: str) -> ApiError:
    """In llama-server's words, which litellm reads, with OpenAI's code, which LangChain reads."""
    said = f"request ({n_tokens} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it"
    more = {"type": "exceed_context_size_error", "n_prompt_tokens": n_tokens, "n_ctx": n_ctx}
    return ApiError(400, said, param, "context_length_exceeded", more=more)


class Answering:
    """The answers to one request. Async context manager: what has not ended when it is left is stopped.

    on_start    gets the event with which the first answer begins, before anybody reads it
    only_reads  the answers have no tokens
    most_s      so long an answer may take from its first text on; it ends with the next line. 0: no limit
    """

    def __init__(
        self,
        bridge: HostBridge,
        commands: Sequence[Generate],
        on_start: Callable[[TurnStarted], None],
        *,
        may_inspect: bool,
        only_reads: bool = False,
        most_s: float = 0.0,
    ) -> None:
        self._bridge, self._on_start, self._most_s = bridge, on_start, most_s
        self.choices = [
            Choice(i, command, may_inspect=may_inspect, only_reads=only_reads) for i, command in enumerate(commands)
        ]
        self._events: asyncio.Queue[tuple[Choice, AnswerEvent]] = asyncio.Queue()

    async def __aenter__(self) -> Answering:
        for choice in self.choices:
            self._bridge.ask(choice.command, lambda event, choice=choice: self._events.put_nowait((choice, event)))  # type: ignore[misc]
        return self

    async def __aexit__(self, *_: object) -> None:
        for choice in self.choices:
            self._bridge.stop(choice.command.answer)

    async def events(self) -> AsyncIterator[tuple[Choice, AnswerEvent]]:
        """Every event with its answer, which has taken it over; until all have ended. Raises ApiError."""
        left = len(self.choices)
        while left:
            choice, event = await self._events.get()
            if choice.only_reads and isinstance(event, TextDelta):
                continue
            if isinstance(event, TurnStarted) and choice.index == 0 and not choice.began:
                self._on_start(event)
            choice.apply(event)
            if self._most_s and isinstance(event, TextDelta):
                self._cut(choice, event.text)
            yield choice, event
            left -= isinstance(event, TurnEnded)

    def _cut(self, choice: Choice, text: str) -> None:
        """End it if it took too long, as llama-server does (`t_max_predict_ms`). Its end comes as that of any other."""
        took_s = time.monotonic() - choice.first_at
        if "\n" in text and took_s > self._most_s and not choice.is_cut:
            choice.is_cut = True
            self._bridge.end_early(choice.command.answer)

    async def finish(self) -> None:
        """Wait for all answers. Raises ApiError."""
        async for _ in self.events():
            pass


def progress(choice: Choice, event: TurnStarted | PrefillProgress) -> dict[str, Any]:
    """How far the prompt is read, as llama-server reports it with `return_progress`."""
    total, cached = choice.prompt
    read = event.done if isinstance(event, PrefillProgress) else 0
    ms = read / event.tok_s * 1e3 if isinstance(event, PrefillProgress) and event.tok_s else 0.0
    return {"total": total, "cache": cached, "processed": cached + read, "time_ms": round(ms)}


def usage(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens as the engine counted them. The prompt of several answers to one is one, however often it was compared."""
    first: dict[tuple[object, ...], TurnStats] = {}
    for choice in choices:
        command = choice.command
        first.setdefault((id(command.messages), command.raw), choice.stats)
    n_prompt = sum(stats.prompt_tokens for stats in first.values())
    n_cached = sum(stats.reused_tokens for stats in first.values())
    n_answer = sum(choice.stats.generated_tokens for choice in choices)
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_answer,
        "total_tokens": n_prompt + n_answer,
        "prompt_tokens_details": {"cached_tokens": n_cached},
        "completion_tokens_details": _guessed([choice.stats for choice in choices]),
    }


def _guessed(answers: Sequence[TurnStats]) -> dict[str, int]:
    """Guessed tokens, whether they came from a prediction of the client or not. The rejected ones are in no other count
    here.
    """
    accepted = sum(stats.accepted_tokens for stats in answers)
    rejected = sum(stats.drafted_tokens for stats in answers) - accepted
    return {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}


def timings(stats: TurnStats) -> dict[str, Any]:
    """As llama-server reports them (`result_timings`): milliseconds and tokens per second, as the engine counted."""
    read_ms, write_ms = prefill_ms(stats), decode_ms(stats)
    drafts = {"draft_n": stats.drafted_tokens, "draft_n_accepted": stats.accepted_tokens}
    return {
        "cache_n": stats.reused_tokens,
        "prompt_n": stats.prefilled_tokens,
        "prompt_ms": read_ms,
        "prompt_per_token_ms": read_ms / stats.prefilled_tokens if stats.prefilled_tokens else 0.0,
        "prompt_per_second": stats.prefill_tok_s,
        "predicted_n": stats.generated_tokens,
        "predicted_ms": write_ms,
        "predicted_per_token_ms": 1e3 / stats.decode_tok_s if stats.decode_tok_s else 0.0,
        "predicted_per_second": stats.decode_tok_s,
        **(drafts if stats.drafted_tokens else {}),
    }
