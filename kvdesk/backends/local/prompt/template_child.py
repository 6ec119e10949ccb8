"""The child of a template process: compiles a chat template and renders conversations with it, until it gets another.

Owns nothing that outlives it; may be killed at any moment. `template_process` starts it, and says what is
sent: one value each way. Knows nothing of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kvdesk.backends.local.prompt.templates import AnswerTokens, ChatTemplate, Rendering, TemplateText
from kvdesk.children.entry import Parent, limit
from kvdesk.errors import TemplateError
from kvdesk.message import ConversationId, Message, MessageId, TurnStats
from kvdesk.reasoning import ReasoningMarks

MEMORY_LIMIT = 1 << 30  # bytes of address space; Python and Jinja2 need a fifth of it
_NOBODY = ConversationId("")


def child_main(parent: Parent, _argv: Sequence[str]) -> int:
    """Answers requests until the parent ends."""
    limit(MEMORY_LIMIT)
    template: ChatTemplate | None = None
    parent.send_value({})  # here I am
    while True:
        request = parent.receive_value()
        try:
            if "source" in request:
                controls = frozenset(request.pop("control_tokens"))
                template = ChatTemplate(**request, control_tokens=controls)
                answer: dict[str, Any] = {"traits": asdict(template.traits)}
            else:
                assert template is not None, "nothing is rendered before a template was compiled"
                messages = [_message(*parts) for parts in request["messages"]]
                more = request["tools"], request["variables"]
                answer = encoded(template.rendering(messages, request["add_generation_prompt"], *more))
        except TemplateError as error:
            answer = {"error": str(error), "detail": error.detail[:10_000]}
        parent.send_value(answer)


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
