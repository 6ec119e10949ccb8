"""What tool servers offered last: so that a chat's prompt is the same before its servers run again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvdesk import paths
from kvdesk.codec import CodecError, decode, encode
from kvdesk.tools.servers import Tool
from kvdesk.whole_file import write_whole

_MOST_BYTES: Final = 16 << 20


def read(path: Path) -> dict[str, tuple[Tool, ...]]:
    """By what grants are bound to (`bound_to`). What is damaged is none: the server is asked again."""
    try:
        found: dict[str, tuple[Tool, ...]] = decode(dict[str, tuple[Tool, ...]], paths.read_regular(path, _MOST_BYTES))
        for tools in found.values():
            for tool in tools:
                json.loads(tool.schema)
    except (OSError, CodecError, ValueError, RecursionError):
        return {}
    return found


def write(path: Path, lists: Mapping[str, tuple[Tool, ...]]) -> None:
    """Raises OSError."""
    write_whole(path, encode(lists))
