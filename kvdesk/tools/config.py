"""Files in which other programs list their tool servers: `mcp.json` of Cursor and VS Code, Claude's configuration.

Reading one starts nothing. Values of variables and headers are often keys, so they are returned apart from the servers.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kvdesk.errors import UserError, explained
from kvdesk.message import storable
from kvdesk.paths import open_regular
from kvdesk.settings import ToolServer
from kvdesk.tools.servers import good_name
from kvdesk.translation import tr
from kvdesk.values import dataclass

_MOST_BYTES: Final = 1 << 20
_MOST_SERVERS: Final = 100
_LISTS: Final = ("mcpServers", "servers")
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*+"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*+"?)|,(?=\s*[}\]])', re.DOTALL)
"""A text or a comment without an end goes to the end of the file: looking for one from each place would take hours."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A server from a file. values: of its variables or headers, by name."""

    server: ToolServer
    values: Mapping[str, str]


def read(path: Path, taken: frozenset[str] = frozenset()) -> tuple[Imported, ...]:
    """The servers of a file, renamed if a name is in `taken`. Raises UserError."""
    with explained(tr("{name} cannot be read: {why}."), name=path.name), open_regular(path) as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise UserError(tr("{name} is too large for a list of servers.").format(name=path.name))
    return parsed(raw.decode("utf-8", "replace"), path.name, taken)


def parsed(text: str, name: str, taken: frozenset[str] = frozenset()) -> tuple[Imported, ...]:
    """The servers of a text. JSON with comments and trailing commas is accepted, as VS Code writes it."""
    try:
        found = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        plain = _COMMENT.sub(lambda match: match[1] or "", text.lstrip("\ufeff"))
        try:
            found = json.loads(_COMMA.sub(lambda match: match[1] or "", plain))
        except (ValueError, RecursionError) as error:
            raise UserError(tr("{name} is not a JSON file.").format(name=name), str(error)) from error
    listed = next((found[key] for key in _LISTS if isinstance(found, dict) and key in found), None)
    if not isinstance(listed, dict):
        raise UserError(tr("{name} lists no tool servers: it has no “mcpServers”.").format(name=name))
    names, servers = set(taken), []
    for given, what in list(listed.items())[:_MOST_SERVERS]:
        if isinstance(what, dict) and (one := _server(good_name(str(given), names), what)) is not None:
            names.add(one.server.name)
            servers.append(one)
    if not servers:
        raise UserError(tr("{name} lists no server that kvdesk can use.").format(name=name))
    return tuple(servers)


def _server(name: str, what: Mapping[str, Any]) -> Imported | None:
    """None if it has neither a command nor an address."""
    url = what.get("url") or what.get("serverUrl")
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        values = _texts(what.get("headers"))
        return Imported(ToolServer(name=name, url=storable(url)[:2000], headers=tuple(values)), values)
    command = what.get("command")
    if not isinstance(command, str) or not command.strip():
        return None
    args = what.get("args") if isinstance(what.get("args"), list) else []
    values = _texts(what.get("env"))
    folder = what.get("cwd") if isinstance(what.get("cwd"), str) else ""
    server = ToolServer(
        name=name,
        command=storable(command)[:2000],
        args=tuple(storable(str(one)) for one in args or ()),
        folder=storable(folder or "")[:2000],
        env=tuple(values),
    )
    return Imported(server, values)


def _texts(given: object) -> dict[str, str]:
    """Sorted by name, values as text."""
    pairs = given.items() if isinstance(given, dict) else ()
    return {storable(str(name)): storable(str(value)) for name, value in sorted(pairs, key=str) if value is not None}
