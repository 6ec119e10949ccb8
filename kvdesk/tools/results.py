"""The text that a model reads of a call's result. Parts that are no text are mentioned, so that none goes unnoticed."""

import json
from collections.abc import Sequence
from typing import Any, Final

from kvdesk.message import storable

NOTHING: Final = "The tool gave no result."


def text_of(content: Sequence[Any], structured: object = None) -> str:
    """The parts of a result (`mcp.types.ContentBlock`) as text, or its structured value if it has no parts."""
    text = "\n".join(part for part in map(_part, content) if part)
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False, sort_keys=True, default=str)
    return storable(text) or NOTHING


def cut(text: str, most: int) -> str:
    """At most `most` characters, followed by how many are missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were left out]"


def _part(part: Any) -> str:
    match getattr(part, "type", ""):
        case "text":
            return str(part.text)
        case "resource":
            resource = part.resource
            text = getattr(resource, "text", None)
            return str(text) if text is not None else f"[{resource.uri}: data that is no text]"
        case "resource_link":
            return f"[{part.name}: {part.uri}]"
        case "image" | "audio" as kind:
            return f"[{kind}, {part.mime_type}, {_n_bytes(part.data):,} bytes: not shown to the model]"
        case kind:
            return f"[{kind or 'a part'} that kvdesk does not know]"


def _n_bytes(base64: str) -> int:
    return len(base64) * 3 // 4
