"""What servers of tools offered last: so that a chat's prompt is the same before its servers run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvdesk import paths
from kvdesk.tools import schemas
from kvdesk.tools.servers import Tool
from kvdesk.whole_file import write_whole

_MOST_BYTES: Final = 16 << 20


def read(path: Path) -> dict[str, tuple[Tool, ...]]:
    """By what grants are bound to (`bound_to`). What is damaged is none: the server is asked again."""
    try:
        with paths.open_regular(path) as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    listed = found.items() if isinstance(found, dict) else ()
    return {bound: _tools(tools) for bound, tools in listed if isinstance(tools, list)}


def _tools(found: list[object]) -> tuple[Tool, ...]:
    """Read as if the server had said it now."""
    taken = (
        schemas.taken(one.get("name"), one.get("description"), one.get("schema"))
        for one in found
        if isinstance(one, dict)
    )
    return tuple(tool for tool in taken if tool is not None)


def write(path: Path, lists: Mapping[str, tuple[Tool, ...]]) -> None:
    """Raises OSError."""
    values = {
        bound: [{"name": t.name, "description": t.description, "schema": json.loads(t.schema)} for t in tools]
        for bound, tools in lists.items()
    }
    write_whole(path, json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
