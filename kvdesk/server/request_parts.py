"""What the requests of protocols beside chat completions have in common: their functions, and how a part is read."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from kvdesk.server.errors import ApiError
from kvdesk.server.schemas import ChatOptions, ResponseFormat, parsed


class FunctionsRequest(ChatOptions):
    """`tools` are functions, flat. Others run on the side of the protocol's maker, or have another form of call: they
    are ignored.

    FUNCTIONS  types of tools that are functions
    SCHEMA     the field of a tool that has the schema of its arguments
    """

    FUNCTIONS: ClassVar[tuple[str | None, ...]]
    SCHEMA: ClassVar[str]
    tools: list[dict[str, Any]] | None = Field(None, max_length=1000)

    def unknown(self) -> list[str]:
        kinds = [str(tool.get("type")) for tool in self.tools or () if not self._is_function(tool)]
        return [*super().unknown(), *(f"tools.{kind}" for kind in dict.fromkeys(kinds))]

    def chat_tools(self) -> list[dict[str, Any]] | None:
        """As chat completions have them. Raises ApiError."""
        found = []
        for i, tool in enumerate(self.tools or ()):
            if not self._is_function(tool):
                continue
            function: dict[str, Any] = {"name": string(tool, "name", f"tools.{i}")}
            if not function["name"]:
                raise wrong(f"tools.{i}.name", "must be a name")
            if isinstance(tool.get("description"), str):
                function["description"] = tool["description"]
            function["parameters"] = tool.get(self.SCHEMA) or {}
            if not isinstance(function["parameters"], dict):
                raise wrong(f"tools.{i}.{self.SCHEMA}", "must be a JSON schema")
            found.append({"type": "function", "function": function})
        return found or None

    def _is_function(self, tool: dict[str, Any]) -> bool:
        return tool.get("type") in self.FUNCTIONS


def response_format(given: dict[str, Any] | None, at: str) -> ResponseFormat | None:
    """Of the flat form, `{"type", "schema"}`. Raises ApiError."""
    if given is None:
        return None
    kind, schema = given.get("type"), given.get("schema")
    if kind in ("text", "json_object"):
        return parsed(ResponseFormat, {"type": kind})
    if kind != "json_schema" or not isinstance(schema, dict):
        raise wrong(at, "must be text, json_object, or json_schema with a schema")
    return parsed(ResponseFormat, {"type": kind, "json_schema": {"schema": schema}})


def string(value: object, name: str, at: str) -> str:
    """A text that a part has to have. Raises ApiError."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise wrong(f"{at}.{name}", "must be a string")
    return found


def wrong(at: str, said: str) -> ApiError:
    return ApiError(400, f"{at}: {said}.", at, "invalid_value")
