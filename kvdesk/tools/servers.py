"""Servers as values: what a person set up, what one offers, and what comes of it."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.values import dataclass

State = Literal["off", "starting", "on", "failed"]
SECRET: Final = "tools:"
"""What the names begin with under which values of variables and headers are kept as keys."""
_TOKENS: Final = "sign-in:"


class ToolServerError(Exception):
    """A sentence for a person."""


class Keys(Protocol):
    """Where secrets are kept by their names, as `kvdesk.store.server_keys` does. Either may take seconds."""

    def get(self, name: str, /) -> str:
        """ "" for what is not known."""

    def keep(self, name: str, text: str, /) -> str:
        """ "" forgets it. Returns a sentence about where it is kept, if a person should know that."""


@dataclass(frozen=True, slots=True)
class Tool:
    """As its server described it, cut to what kvdesk takes. schema: JSON text of the arguments' schema."""

    name: str
    description: str = ""
    schema: str = "{}"


@dataclass(frozen=True, slots=True)
class ServerState:
    """Of one server, for the window. sentence: what a person should know; detail: the server's last words; version: of
    the protocol, once it runs.
    """

    name: str
    state: State = "off"
    sentence: str = ""
    detail: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools that a server offers, as it said last."""

    server: str
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has a result. `number`: as it was given; text: what the model reads; ms: how long it ran."""

    number: int
    text: str
    failed: bool
    ms: int


@dataclass(frozen=True, slots=True)
class SignInAsked:
    """A server waits for the person to sign in at this address: who hears it asks, and opens it or stops the server."""

    server: str
    address: str


ToolEvent = ServerState | ToolsListed | CallEnded | SignInAsked


def bound_to(server: ToolServer) -> str:
    """What grants are bound to: the address, or a digest of the whole command, its folder and the names of its
    variables. A server of the same name with another command has none of them.
    """
    if server.url:
        return server.url
    parts = [server.command, *server.args, "", server.folder, *sorted(server.env)]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "replace")).hexdigest()


def secret_of(server: ToolServer) -> str:
    """The name under which the values of its variables or headers are kept, as one JSON object."""
    return SECRET + bound_to(server)


def tokens_of(url: str) -> str:
    """The name under which the tokens of a person who signed in at this address are kept."""
    return _TOKENS + url


def command_line(server: ToolServer) -> str:
    """All of the command, as a person reads it: what has blanks or quotes in it is quoted."""
    return " ".join(map(_quoted, (server.command, *server.args)))


def _quoted(part: str) -> str:
    return part if part and not re.search(r"[^\w@%+=:,./~-]", part) else visible(json.dumps(part, ensure_ascii=False))


def visible(text: str) -> str:
    """With the numbers of characters that nobody sees, or that turn or hide others."""
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)


def is_granted(grants: tuple[ToolGrant, ...], server: ToolServer, tool: str | None = None) -> bool:
    """Whether a person allowed it for good to start the server (None), or to call this tool of it."""
    own = [grant for grant in grants if grant.bound == bound_to(server)]
    if tool is None:
        return any(grant.what == "start" for grant in own)
    return any(grant.what == "server" or (grant.what == "tool" and grant.tool == tool) for grant in own)


def good_name(name: str, taken: Mapping[str, Any] | set[str] | frozenset[str] = frozenset()) -> str:
    """A name that a template and a file can have, and that no other server has."""
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:50] or "server"
    found, n = clean, 2
    while found in taken:
        found, n = f"{clean}-{n}", n + 1
    return found
