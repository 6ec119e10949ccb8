"""The child of a template process: compiles a chat template and renders conversations with it, until it gets another.

Owns nothing that outlives it; may be killed at any moment. `template_process` starts it, and says what is
sent: one line of JSON each way. Knows nothing of llama.cpp.
"""

from __future__ import annotations

import json
import os
import queue
import signal
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kvdesk.backends.local.prompt.templates import AnswerTokens, ChatTemplate, Rendering, TemplateText
from kvdesk.errors import TemplateError
from kvdesk.library.child import limit_memory, read_parent
from kvdesk.message import ConversationId, Message, MessageId, TurnStats
from kvdesk.reasoning import ReasoningMarks

MEMORY_LIMIT = 1 << 30  # bytes of address space; Python and Jinja2 need a fifth of it
_NOBODY = ConversationId("")


def child_main(_argv: Sequence[str] = ()) -> int:
    """Answers requests until the parent ends."""
    limit_memory(MEMORY_LIMIT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the parent's
    lines = _Lines()
    read_parent(lines.take)
    template: ChatTemplate | None = None
    _say({})  # here I am
    while True:
        request = json.loads(lines.queue.get())
        try:
            if "source" in request:
                controls = frozenset(request.pop("control_tokens"))
                template = ChatTemplate(**request, control_tokens=controls)
                answer: dict[str, Any] = {"traits": asdict(template.traits)}
            else:
                assert template is not None, "nothing is rendered before a template was compiled"
                messages = [_message(*parts) for parts in request["messages"]]
                answer = encoded(template.rendering(messages, request["add_generation_prompt"], request["tools"]))
        except TemplateError as error:
            answer = {"error": str(error), "detail": error.detail[:10_000]}
        _say(answer)


def _say(answer: dict[str, Any]) -> None:
    data = memoryview(json.dumps(answer).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


def encoded(rendering: Rendering) -> dict[str, Any]:
    """A rendering as plain values. `template_process.decoded` is the way back."""
    segments: list[tuple[str, ...]] = []
    for segment in rendering.segments:
        if isinstance(segment, AnswerTokens):
            segments.append(("answer", segment.text, segment.message_id))
        else:
            segments.append(("template" if isinstance(segment, TemplateText) else "user", segment.text))
    return {
        "segments": segments,
        "system_folded": rendering.system_folded,
        "places": rendering.places,
        "exact": rendering.exact,
        "remark": rendering.remark,
    }


def _message(
    identity: str, role: Any, text: str, generated: bool, fields: str, marks: dict[str, Any] | None
) -> Message:
    tokens = (0,) if generated else ()  # only whether there are some counts for a template
    stats = None if marks is None else TurnStats(0, 0, 0, 0, 0.0, 0.0, 0.0, marks=ReasoningMarks(**marks))
    return Message(MessageId(identity), _NOBODY, None, role, text, tokens=tokens, stats=stats, fields=fields)


class _Lines:
    """Bytes to lines, handed from the thread that reads to the one that renders."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._parts: list[bytes] = []

    def take(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for line in ended:
            self.queue.put(b"".join([*self._parts, line]))
            self._parts = []
        self._parts.append(rest)
