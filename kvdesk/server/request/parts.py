"""What the requests of several protocols have in common: functions, and texts in parts."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from pydantic import Field

from kvdesk.loose_json import obj
from kvdesk.message import storable
from kvdesk.server.errors import invalid, unsupported
from kvdesk.server.request.schemas import ChatOptions, ResponseFormat, parsed

_TEXTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are texts, and the field that has the text."""
_PICTURE: Final = "[The tool returned a picture, which this model cannot see.]"
_FILE: Final = "[The tool returned a file, which this model cannot read.]"
_IN_RESULTS: Final = {
    **dict.fromkeys(("image", "image_url", "input_image"), _PICTURE),
    **dict.fromkeys(("document", "file", "input_file"), _FILE),
}
"""What the model reads in place of other parts in the result of a tool. An agent put them there, and nobody who could
choose another model. It sends them again with every later request.
"""


class FunctionsRequest(ChatOptions):
    """`tools` are functions, flat. Others run on the side of the protocol's maker, or have another form of call: they
    are ignored.

    FUNCTIONS  types of tools that are functions, or have some
    SCHEMA     the field of a tool that has the schema of its arguments
    """

    FUNCTIONS: ClassVar[tuple[str | None, ...]]
    SCHEMA: ClassVar[str]
    tools: list[dict[str, Any]] | None = Field(None, max_length=1000)

    def unknown(self) -> list[str]:
        kinds = [str(tool.get("type")) for tool in self.tools or () if tool.get("type") not in self.FUNCTIONS]
        return [*super().unknown(), *(f"tools.{kind}" for kind in dict.fromkeys(kinds))]

    def functions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each function, behind its place. Raises ApiError."""
        for i, tool in enumerate(self.tools or ()):
            if tool.get("type") in self.FUNCTIONS:
                yield f"tools.{i}", tool

    def chat_tools(self) -> list[dict[str, Any]] | None:
        """As chat completions have them. Raises ApiError."""
        found = []
        for at, tool in self.functions():
            function: dict[str, Any] = {"name": string(tool, "name", at)}
            if not function["name"]:
                raise invalid(f"{at}.name", "must be a name")
            if isinstance(tool.get("description"), str):
                function["description"] = tool["description"]
            function["parameters"] = tool.get(self.SCHEMA) or {}
            if not isinstance(function["parameters"], dict):
                raise invalid(f"{at}.{self.SCHEMA}", "must be a JSON schema")
            found.append({"type": "function", "function": function})
        return found or None


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


def text_of(content: object, at: str, *, between: str = "\n", is_result: bool = False) -> str:
    """A text, or a list of parts with `between` between their texts. `is_result`: of a tool. Raises ApiError with the
    place in `at`.
    """
    if isinstance(content, str):
        return storable(content)
    if not isinstance(content, list):
        raise invalid(at, "must be a string, or a list of parts")
    return between.join(text_of_part(part, f"{at}.{j}", is_result=is_result) for j, part in enumerate(content))


def text_of_part(part: object, at: str, *, is_result: bool = False) -> str:
    """Raises ApiError."""
    kind = obj(part).get("type")
    if is_result and isinstance(kind, str) and kind in _IN_RESULTS:
        return _IN_RESULTS[kind]
    if not isinstance(kind, str) or kind not in _TEXTS:
        what = f"parts of the type {kind:.100}" if isinstance(kind, str) else "such parts"
        raise unsupported(at, f"{what} are not supported; text is")
    return string(part, _TEXTS[kind], at)
