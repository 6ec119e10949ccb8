"""The answers of `POST /v1/responses`: a response of items, and the events that bring it."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kvdesk.answer_reader import AnswerDelta
from kvdesk.message import ConversationId
from kvdesk.protocol.chat import PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.server.answering import progress, timings
from kvdesk.server.bridge import AnswerEvent
from kvdesk.server.chat import Answer, Renderer
from kvdesk.server.errors import ApiError
from kvdesk.server.logprobs import chat_logprobs
from kvdesk.server.openai.responses_request import ENCRYPTED, ResponsesRequest, sealed
from kvdesk.server.prefix_cache import prefix_cache

RESPONSE_ID: Final = "resp_"
_KINDS: Final = {"message": "output_text", "reasoning": "reasoning_text"}
"""The only part of an item that is no call, which is also the name of its events."""
_SAME: Final = (
    *("instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "previous_response_id", "store"),
    *("temperature", "top_p", "background", "reasoning"),
)
"""Fields of a request that its response has too."""


class ResponseEvents(Renderer):
    """The whole response is what its events have made; `keep` gets it where it is to be kept."""

    def __init__(
        self,
        request: ResponsesRequest,
        conversation: ConversationId,
        model: str,
        keep: Callable[[dict[str, Any]], None],
    ) -> None:
        self._request, self._keep = request, keep
        self._namespaces = request.namespaces()
        self._n_events = 0
        self._output: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []  # of tokens whose text has not come yet
        self._response = {
            "id": f"{RESPONSE_ID}{conversation}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": model,
            "output": [],
            **{name: getattr(request, name) for name in _SAME},
            "text": {"format": (request.text and request.text.format) or {"type": "text"}},
            "tool_choice": request.tool_choice or "auto",
            "tools": request.tools or [],
            "truncation": "disabled",
            "usage": None,
        }

    def events(self, answer: Answer, event: AnswerEvent, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        if isinstance(event, TurnStarted):
            yield self._event("created", response=dict(self._response))
            yield self._event("in_progress", response=dict(self._response))
        if self._request.return_progress and isinstance(event, TurnStarted | PrefillProgress):
            found = progress(answer.choice, event)
            yield self._event("in_progress", response=dict(self._response), prompt_progress=found)
        if isinstance(event, TextDelta):
            self._logprobs += chat_logprobs(event.logprobs)["content"]
        for one in self._of_delta(delta):
            if self._request.timings_per_token and one["type"].endswith(".delta"):
                one["timings"] = timings(answer.choice.so_far)
            yield one
        if isinstance(event, TurnEnded):
            yield from self._finish(answer)

    def _of_delta(self, delta: AnswerDelta) -> Iterator[dict[str, Any]]:
        for part in delta.parts():
            yield from self._add("reasoning", part.thought)
            yield from self._add("message", part.said)
            for call in part.calls:
                if call.name:
                    item = {"type": "function_call", "call_id": call.id, **self._named(call.name), "arguments": ""}
                    yield from self._begin(item)
                if call.arguments:
                    self._output[-1]["arguments"] += call.arguments
                    yield self._of_item("function_call_arguments.delta", delta=call.arguments)

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        return {**self._response, "timings": timings(answer.choice.stats)}

    def failed(self, error: ApiError) -> dict[str, Any]:
        said = {"code": error.code or "server_error", "message": error.message}
        return self._event("failed", response={**self._response, "status": "failed", "error": said})

    def _named(self, name: str) -> dict[str, str]:
        """How the client knows a function."""
        namespace, own = self._namespaces.get(name, ("", name))
        return {"name": own, **({"namespace": namespace} if namespace else {})}

    def _add(self, kind: str, text: str) -> Iterator[dict[str, Any]]:
        """More text of an item that is no call."""
        if not text:
            return
        if not self._is_open or self._output[-1]["type"] != kind:
            thought: dict[str, Any] = {"summary": [], "encrypted_content": None}
            head = {"role": "assistant"} if kind == "message" else thought
            yield from self._begin({"type": kind, **head, "content": []})
            self._output[-1]["content"].append(_part(kind))
            yield self._of_part("content_part.added", part=_part(kind))
        part, logprobs, self._logprobs = self._output[-1]["content"][0], self._logprobs, []
        part["text"] += text
        if kind == "message":
            part["logprobs"] += logprobs
        yield self._of_part(
            f"{_KINDS[kind]}.delta", delta=text, **({"logprobs": logprobs} if kind == "message" else {})
        )

    def _begin(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._end("completed")
        kind = item["type"]
        name = {"message": "msg", "reasoning": "rs"}.get(kind, "fc")
        item = {"id": f"{name}_{uuid.uuid4().hex}", "status": "in_progress", **item}
        self._output.append(item)
        empty = {**item, "content": []} if "content" in item else dict(item)
        yield self._event("output_item.added", output_index=len(self._output) - 1, item=empty)

    @property
    def _is_open(self) -> bool:
        return bool(self._output) and self._output[-1]["status"] == "in_progress"

    def _end(self, status: str) -> Iterator[dict[str, Any]]:
        """Of the last item, if it is open."""
        if not self._is_open:
            return
        item = self._output[-1]
        item["status"], kind = status, item["type"]
        if kind == "function_call":
            yield self._of_item("function_call_arguments.done", name=item["name"], arguments=item["arguments"])
        else:
            part = item["content"][0]
            text, logprobs = part["text"], {"logprobs": part["logprobs"]} if kind == "message" else {}
            yield self._of_part(f"{_KINDS[kind]}.done", text=text, **logprobs)
            yield self._of_part("content_part.done", part=dict(part))
            if kind == "reasoning" and ENCRYPTED in (self._request.include or ()):
                item["encrypted_content"] = sealed(text)
        yield self._event("output_item.done", output_index=len(self._output) - 1, item=dict(item))

    def _finish(self, answer: Answer) -> Iterator[dict[str, Any]]:
        status = "incomplete" if answer.finish == "length" else "completed"
        yield from self._end(status)
        reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
        self._response |= {"status": status, "incomplete_details": reason, "completed_at": int(time.time())}
        self._response |= {"output": self._output, "usage": _usage(answer), **prefix_cache(answer.choice)}
        if self._request.store:
            self._keep(self._response)
        yield self._event(status, response=self._response, timings=timings(answer.choice.stats))

    def _of_part(self, name: str, /, **fields: Any) -> dict[str, Any]:
        return self._of_item(name, content_index=0, **fields)

    def _of_item(self, name: str, /, **fields: Any) -> dict[str, Any]:
        item = {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1}
        return self._event(name, **item, **fields)

    def _event(self, name: str, /, **fields: Any) -> dict[str, Any]:
        number, self._n_events = self._n_events, self._n_events + 1
        return {"type": f"response.{name}", "sequence_number": number, **fields}


def _part(kind: str) -> dict[str, Any]:
    """One that has no text yet."""
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if kind == "message" else {}
    return {"type": _KINDS[kind], "text": "", **more}


def _usage(answer: Answer) -> dict[str, Any]:
    stats = answer.choice.stats
    return {
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": {"cached_tokens": stats.reused_tokens},
        "output_tokens": stats.generated_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.n_thought},
        "total_tokens": stats.prompt_tokens + stats.generated_tokens,
    }
