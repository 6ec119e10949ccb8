"""The answers of `POST /v1/messages`: a message of blocks, and the events that bring it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kvdesk.answer_reader import AnswerDelta
from kvdesk.loose_json import object_in
from kvdesk.message import ConversationId
from kvdesk.protocol.chat import TurnEnded, TurnStarted
from kvdesk.server.answering import Choice
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Renderer
from kvdesk.server.errors import ApiError
from kvdesk.server.prefix_cache import prefix_cache
from kvdesk.server.streaming import sse

MESSAGE_ID: Final = "msg_"
SIGNATURE: Final = "kvdesk"
"""Of reasoning. It proves nothing; clients leave out reasoning whose signature is empty."""
_PING: Final = {"type": "ping"}
_FIELDS: Final = {"text": "text_delta", "thinking": "thinking_delta"}
"""The delta of each type of block, which is also the name of its text."""


class MessageEvents(Renderer):
    """The whole message is what its events have made."""

    alive = sse(_PING)

    def __init__(self, conversation: ConversationId, model: str) -> None:
        self._head = {"id": f"{MESSAGE_ID}{conversation}", "type": "message", "role": "assistant", "model": model}
        self._content: list[dict[str, Any]] = []
        self._arguments = ""  # of the last block, as far as they are written
        self._is_open = False  # the last block is

    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        if isinstance(event, TurnStarted):
            n_prompt, n_cached = answer.choice.prompt
            ended = {"stop_reason": None, "stop_sequence": None}
            message: dict[str, Any] = {**self._head, "content": [], **ended, "usage": _usage(n_prompt, n_cached, 0)}
            yield {"type": "message_start", "message": {**message, **prefix_cache(answer.choice)}}
            yield _PING
        for part in delta.parts():
            yield from self._add("thinking", part.thought)
            yield from self._add("text", part.said)
            for call in part.calls:
                if call.name:
                    yield from self._begin({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
                if call.arguments:
                    self._arguments += call.arguments
                    yield self._delta({"type": "input_json_delta", "partial_json": call.arguments})
        if isinstance(event, TurnEnded):
            yield from self._end()
            yield {"type": "message_delta", "delta": _ending(answer), **_counted(answer.choice)}
            yield {"type": "message_stop"}

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        return {**self._head, "content": self._content, **_ending(answer), **_counted(answer.choice)}

    def failed(self, error: ApiError) -> dict[str, Any]:
        return error.anthropic_body()

    def _add(self, kind: str, text: str) -> Iterator[dict[str, Any]]:
        if not text:
            return
        if not self._is_open or self._content[-1]["type"] != kind:
            yield from self._begin({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
        self._content[-1][kind] += text
        yield self._delta({"type": _FIELDS[kind], kind: text})

    def _begin(self, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._end()
        self._content.append(block)
        self._arguments, self._is_open = "", True
        yield {"type": "content_block_start", "index": len(self._content) - 1, "content_block": dict(block)}

    def _end(self) -> Iterator[dict[str, Any]]:
        """Of the last block, if it is open."""
        if not self._is_open:
            return
        block, self._is_open = self._content[-1], False
        if block["type"] == "thinking":
            block["signature"] = SIGNATURE
            yield self._delta({"type": "signature_delta", "signature": SIGNATURE})
        elif block["type"] == "tool_use":
            block["input"] = object_in(self._arguments)
        yield {"type": "content_block_stop", "index": len(self._content) - 1}

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": len(self._content) - 1, "delta": delta}


def _ending(answer: Answer) -> dict[str, Any]:
    reason = {"length": "max_tokens", "tool_calls": "tool_use"}.get(answer.finish or "", "end_turn")
    stop = answer.choice.stopped_by or None
    if reason == "end_turn" and stop is not None:
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": stop}


def _usage(n_prompt: int, n_cached: int, n_answer: int) -> dict[str, Any]:
    """As llama-server counts: newly read tokens are `input_tokens`, although the cache keeps all of them."""
    return {
        "input_tokens": n_prompt - n_cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": n_cached,
        "output_tokens": n_answer,
    }


def _counted(choice: Choice) -> dict[str, Any]:
    stats = choice.stats
    usage = _usage(stats.prompt_tokens, stats.reused_tokens, stats.generated_tokens)
    return {"usage": usage, **prefix_cache(choice)}
