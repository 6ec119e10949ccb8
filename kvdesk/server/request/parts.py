"""What the requests of several protocols have in common: functions, and texts in parts."""

from typing import Any, ClassVar, Final

from pydantic import Field

from kvdesk.loose_json import obj
from kvdesk.message import storable
from kvdesk.server.errors import invalid, unsupported
from kvdesk.server.request.schemas import ChatOptions, ResponseFormat, parsed

_TEXTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are texts, and the field that has the text."""


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
                raise invalid(f"tools.{i}.name", "must be a name")
            if isinstance(tool.get("description"), str):
                function["description"] = tool["description"]
            function["parameters"] = tool.get(self.SCHEMA) or {}
            if not isinstance(function["parameters"], dict):
                raise invalid(f"tools.{i}.{self.SCHEMA}", "must be a JSON schema")
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
        raise invalid(at, "must be text, json_object, or json_schema with a schema")
    return parsed(ResponseFormat, {"type": kind, "json_schema": {"schema": schema}})


def string(value: object, name: str, at: str) -> str:
    """A text that a part has to have. Raises ApiError."""
    found = obj(value).get(name)
    if not isinstance(found, str):
        raise invalid(f"{at}.{name}", "must be a string")
    return storable(found)


def text_of(content: object, at: str, *, between: str = "\n") -> str:
    """A text, or a list of parts with `between` between their texts. Raises ApiError with the place in `at`."""
    if isinstance(content, str):
        return storable(content)
    if not isinstance(content, list):
        raise invalid(at, "must be a string, or a list of parts")
    return between.join(text_of_part(part, f"{at}.{j}") for j, part in enumerate(content))


def text_of_part(part: object, at: str) -> str:
    """Raises ApiError."""
    kind = obj(part).get("type")
    if not isinstance(kind, str) or kind not in _TEXTS:
        what = f"parts of the type {kind:.100}" if isinstance(kind, str) else "such parts"
        raise unsupported(at, f"{what} are not supported; text is")
    return string(part, _TEXTS[kind], at)
