"""How models call tools: the families whose format is documented, told by their chat template. Knows no Qt, no engine.

- "hermes": `<tool_call>` {"name": …, "arguments": …} `</tool_call>`, any number (Nous Hermes 2 Pro; Qwen2.5, Qwen3)
- "llama3": one JSON object {"name": …, "parameters": …}, alone or behind `<|python_tag|>` (Llama 3.1 model card)
- "mistral": `[TOOL_CALLS]` and a JSON array of {"name": …, "arguments": …} (Mistral's v3 tokenizer)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

HERMES, LLAMA3, MISTRAL = "hermes", "llama3", "mistral"
_HERMES_CALL: Final = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.DOTALL)
_MISTRAL_MARK: Final = "[TOOL_CALLS]"
_PYTHON_TAG: Final = "<|python_tag|>"
OPENINGS: Final = {HERMES: ("<tool_call>",), LLAMA3: (_PYTHON_TAG, "{"), MISTRAL: (_MISTRAL_MARK, "[")}
"""With what an answer, or its part that calls, begins."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments`: JSON text, an object."""

    name: str
    arguments: str


def tool_format(template: str) -> str:
    """The family of a chat template (Jinja); "" where it calls no tools, or in no way that is known."""
    if "tools" not in template:
        return ""
    if _MISTRAL_MARK in template:
        return MISTRAL
    if "<tool_call>" in template and "arg_key" not in template and "<function=" not in template:
        return HERMES
    if '"parameters"' in template and ("python_tag" in template or "ipython" in template):
        return LLAMA3
    return ""


def parse_calls(family: str, text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """An answer as what it says, and what it calls. Text that is no whole call stays text."""
    match family:
        case "hermes":
            return _parse_hermes(text)
        case "mistral":
            head, mark, tail = text.partition(_MISTRAL_MARK)
            calls = _calls(_json(tail if mark else text), "arguments")
            is_call = bool(calls) and (mark or text.lstrip().startswith("["))
            return (head.strip() if mark else "", calls) if is_call else (text, ())
        case "llama3":
            calls = _calls(_json(text.strip().removeprefix(_PYTHON_TAG).strip()), "parameters")
            return ("", calls) if calls else (text, ())
        case _:
            return text, ()


def may_call(family: str, text: str) -> int:
    """Characters of a text that is still being written which are no beginning of a call: only those may be told."""
    if family == HERMES:
        mark = OPENINGS[HERMES][0]
        at = text.find(mark)
        lengths = range(min(len(mark), len(text)), 0, -1)
        n = at if at >= 0 else next((len(text) - n for n in lengths if text.endswith(mark[:n])), len(text))
        return len(text[:n].rstrip())
    begun = text.lstrip()
    if any(begun.startswith(mark) or mark.startswith(begun) for mark in OPENINGS.get(family, ())):
        return 0
    return len(text)


def _parse_hermes(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    calls: list[ToolCall] = []
    said, at = [], 0
    for match in _HERMES_CALL.finditer(text):
        found = _calls(_json(match[1]), "arguments")
        if found:
            said.append(text[at : match.start()])
            calls += found
            at = match.end()
    said.append(text[at:])
    return ("".join(said).strip() if calls else text), tuple(calls)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _calls(value: object, arguments: str) -> tuple[ToolCall, ...]:
    """The calls of a JSON value: an object, or an array of such; () where anything in it is none."""
    calls = []
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            return ()
        given = one.get(arguments, one.get("arguments", {}))
        if not isinstance(given, dict):
            return ()
        calls.append(ToolCall(one["name"], json.dumps(given, ensure_ascii=False)))
    return tuple(calls)
