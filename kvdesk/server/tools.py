"""Tools of a request: what the template gets, and the calls in an answer as the protocol has them."""

from __future__ import annotations

import json
import secrets
import string
from typing import Any, Final

from kvdesk.server.errors import ApiError
from kvdesk.server.schemas import ChatRequest
from kvdesk.tool_calls import MISTRAL, ToolCall, may_call, parse_calls

_LETTERS: Final = string.ascii_letters + string.digits


def tools_of(request: ChatRequest, tool_format: str) -> str:
    """The JSON array for the template, "" where nothing may be called. Raises ApiError."""
    if not request.tools or request.tool_choice == "none":
        return ""
    if request.tool_choice not in (None, "auto"):
        raise ApiError(
            400,
            "tool_choice: only none and auto are supported: a model here calls a tool where it wants to.",
            "tool_choice",
            "unsupported_value",
        )
    for i, tool in enumerate(request.tools):
        function = tool.get("function")
        if (
            tool.get("type") != "function"
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            raise ApiError(400, f"tools.{i}: it is a function with a name.", f"tools.{i}", "invalid_value")
    if not tool_format:
        raise ApiError(
            400,
            "The model that is open calls no tools, or in a format that kvdesk does not know: its chat template is of "
            "no known family (Hermes and Qwen, Llama 3.1, Mistral).",
            "tools",
            "tools_not_supported",
        )
    return json.dumps(request.tools, ensure_ascii=False)


class Calls:
    """The calls in one answer as its text comes. Without a format all is text."""

    def __init__(self, tool_format: str) -> None:
        self._format = tool_format
        self._text = ""
        self._n_told = 0
        self._json: list[dict[str, Any]] | None = None
        self.found: tuple[ToolCall, ...] = ()

    def add(self, text: str) -> str:
        """The part of the answer's text that can be told now: none that may belong to a call."""
        if not self._format:
            return text
        self._text += text
        n = max(self._n_told, may_call(self._format, self._text))
        told, self._n_told = self._text[self._n_told : n], n
        return told

    def end(self) -> str:
        """What is left of the text, where it was no call."""
        if not self._format:
            return ""
        content, self.found = parse_calls(self._format, self._text)
        if not self.found:
            return self._text[self._n_told :]
        told = self._text[: self._n_told].strip()
        return content[len(told) :] if content.startswith(told) else ""

    def as_json(self) -> list[dict[str, Any]]:
        """Each with an id, the same whenever it is asked."""
        if self._json is None:
            self._json = [
                {
                    "id": _identity(self._format),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.found
            ]
        return self._json


def _identity(tool_format: str) -> str:
    """Mistral's templates take nothing but nine letters and digits."""
    if tool_format == MISTRAL:
        return "".join(secrets.choice(_LETTERS) for _ in range(9))
    return f"call_{secrets.token_hex(12)}"
