"""Tools of a request: what the template gets, and what of them may be called."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.loose_json import obj
from kvdesk.protocol.chat import ToolChoice
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.request.schemas import ChatRequest

_MODES: Final = {"auto": False, "required": True, "any": True}
"""Whether the answer must call. `any` is what some clients say for required."""


def tools_of(request: ChatRequest) -> str:
    """The JSON array for the template, "" without tools. Raises ApiError."""
    if not request.tools:
        return ""
    for i, tool in enumerate(request.tools):
        function = tool.get("function")
        if (
            tool.get("type") != "function"
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
            or not function["name"]
        ):
            raise invalid(f"tools.{i}", "must be a function with a name")
        if not isinstance(function.get("parameters") or {}, dict):
            raise invalid(f"tools.{i}.function.parameters", "must be a JSON schema")
    return json.dumps(request.tools, ensure_ascii=False)


def choice_of(request: ChatRequest) -> ToolChoice | None:
    """What may be called; None: nothing. Raises ApiError."""
    given = request.tool_choice if request.tool_choice is not None else "auto"
    offered = {tool["function"]["name"] for tool in request.tools or ()}
    names: tuple[str, ...] = ()
    if isinstance(given, dict):
        given, names = _named(given)
        if unknown := next((name for name in names if name not in offered), None):
            raise _wrong(f"{unknown[:100]} is none of the tools")
    if given == "none":
        return None
    if given not in _MODES:
        raise _wrong("must be none, auto, required, or an object that names a function or allowed tools")
    must = _MODES[given]
    if must and not offered:
        raise _wrong("there are no tools to call")
    if not offered:
        return None
    return ToolChoice(must, names, request.parallel_tool_calls)


def _named(given: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Mode and names of `{"type": "function", "function": {"name"}}` or `{"type": "allowed_tools", ...}`."""
    if given.get("type") == "allowed_tools":
        allowed = given.get("allowed_tools", given)
        if isinstance(allowed, dict) and isinstance(tools := allowed.get("tools"), list):
            return str(allowed.get("mode", "auto")), tuple(_name_of(tool) for tool in tools)
        raise _wrong("allowed_tools has a list of tools")
    return "required", (_name_of(given),)


def _name_of(tool: object) -> str:
    name = obj(obj(tool).get("function", tool)).get("name")
    if not isinstance(name, str):
        raise _wrong("a tool is a function with a name")
    return name


def _wrong(said: str) -> ApiError:
    return invalid("tool_choice", said)


def callable_tools(request: ChatRequest, choice: ToolChoice | None) -> Sequence[Mapping[str, Any]]:
    """The tools that may be called."""
    if choice is None:
        return ()
    return [tool for tool in request.tools or () if not choice.names or tool["function"]["name"] in choice.names]
