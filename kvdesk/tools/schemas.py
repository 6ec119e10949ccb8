"""Tools as a chat template takes them: the same tools always give the same text, so the prompt never changes.

What a server says of its tools is untrusted: it is cut to size, and what is no schema of an object is dropped.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kvdesk.message import storable
from kvdesk.tools.servers import Tool
from kvdesk.values import dataclass

MOST_TOOLS: Final = 200
"""Per server."""
MOST_DESCRIPTION: Final = 4000
MOST_SCHEMA: Final = 20_000
"""Characters. A longer schema is left out, and the tool then takes any object."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_ANY: Final = '{"properties":{},"type":"object"}'


@dataclass(frozen=True, slots=True)
class Offer:
    """text: the JSON array for a template, "" without tools; tools: server and tool of each name in it."""

    text: str = ""
    tools: Mapping[str, tuple[str, str]] = {}


def taken(name: object, description: object, schema: object) -> Tool | None:
    """A tool as a server described it; None if a model could not write its name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    said = storable(description).strip() if isinstance(description, str) else ""
    if len(said) > MOST_DESCRIPTION:
        said = said[:MOST_DESCRIPTION] + "…"
    return Tool(name, said, _schema(schema))


def _schema(given: object) -> str:
    if not isinstance(given, dict) or given.get("type", "object") != "object":
        return _ANY
    if not isinstance(given.get("properties", {}), dict):
        return _ANY
    try:
        text = _dumped(given)
    except (TypeError, ValueError, RecursionError):
        return _ANY
    return text if len(text) <= MOST_SCHEMA else _ANY


def offer(servers: Iterable[tuple[str, Sequence[Tool]]]) -> Offer:
    """The tools of these servers, sorted by server and name. If two servers use the same name, the later one gets its
    server's name as a prefix.
    """
    functions: list[dict[str, Any]] = []
    names: dict[str, tuple[str, str]] = {}
    for server, tools in sorted(servers, key=lambda one: one[0]):
        for tool in sorted(tools, key=lambda one: one.name):
            name = tool.name if tool.name not in names else f"{server}_{tool.name}"[:64]
            if name in names:
                continue
            names[name] = server, tool.name
            about = {"description": tool.description} if tool.description else {}
            function = {"name": name, **about, "parameters": json.loads(tool.schema)}
            functions.append({"type": "function", "function": function})
    return Offer(json.dumps(functions, ensure_ascii=False), names) if functions else Offer()


def _dumped(value: Any) -> str:
    """With sorted keys, so the text stays the same when a server lists them in another order."""
    return storable(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
