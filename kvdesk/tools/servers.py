"""Tool servers as values: what a person configured, what a server offers, and its state."""

import hashlib
import json
import re
import shlex
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.values import dataclass

State = Literal["off", "starting", "on", "failed"]
SECRET: Final = "tools:"
"""Prefix of the names under which values of variables and headers are stored as keys."""
_TOKENS: Final = "sign-in:"


class ToolServerError(Exception):
    """A sentence for a person."""


class Keys(Protocol):
    """Stores secrets by name, as `kvdesk.store.server_keys` does. Either call may take seconds."""

    def get(self, name: str, /) -> str:
        """ "" if unknown."""

    def keep(self, name: str, text: str, /) -> str:
        """ "" deletes it. Returns a sentence about where it is stored, if the person should know."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server described it, cut to size. schema: JSON text of the arguments' schema."""

    name: str
    description: str = ""
    schema: str = "{}"


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of one server, for the window. sentence: what the person should know; detail: the server's last words;
    version: of the protocol, while it runs; signed_in: its requests carry a token.
    """

    name: str
    state: State = "off"
    sentence: str = ""
    detail: str = ""
    version: str = ""
    signed_in: bool = False


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools that a server currently offers."""

    server: str
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has a result. `number`: the caller's; text: what the model reads; ms: how long it ran."""

    number: int
    text: str
    failed: bool
    ms: int


@dataclass(frozen=True, slots=True)
class SignInAsked:
    """A server waits for a person to sign in at this address. The receiver asks, then opens it or ends the server."""

    server: str
    address: str


ToolEvent = ServerState | ToolsListed | CallEnded | SignInAsked


def bound_to(server: ToolServer) -> str:
    """What grants are bound to: the address, or a digest of the command with its arguments, folder and variable names.
    A server of the same name with another command has no grants.
    """
    if server.url:
        return server.url
    parts = [server.command, *server.args, "", server.folder, *sorted(server.env)]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "replace")).hexdigest()


def secret_of(server: ToolServer) -> str:
    """The name under which the values of its variables or headers are stored, as one JSON object."""
    return SECRET + bound_to(server)


def tokens_of(url: str) -> str:
    """The name under which the tokens for signing in at this address are stored."""
    return _TOKENS + url


def words_of(line: str, platform: str = sys.platform) -> list[str]:
    """The words of a command as a person types it. On Windows a backslash is one, and only " quotes. Raises ValueError
    if a quotation has no end.
    """
    words = shlex.shlex(line, posix=True)
    words.whitespace_split, words.commenters = True, ""
    if platform == "win32":
        words.escape, words.quotes = "", '"'
    return list(words)


def command_line(server: ToolServer) -> str:
    """The complete command for a person to read; words with blanks or quotes are quoted."""
    return " ".join(map(_quoted, (server.command, *server.args)))


def _quoted(part: str) -> str:
    return part if part and not re.search(r"[^\w@%+=:,./~-]", part) else visible(json.dumps(part, ensure_ascii=False))


def visible(text: str) -> str:
    """Invisible characters, and those that change the direction of text, are replaced by their numbers."""
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)


def is_granted(grants: tuple[ToolGrant, ...], server: ToolServer, tool: str | None = None) -> bool:
    """Whether the person always allows starting the server (None) or calling this tool of it."""
    own = [grant for grant in grants if grant.bound == bound_to(server)]
    if tool is None:
        return any(grant.what == "start" for grant in own)
    return any(grant.what == "server" or (grant.what == "tool" and grant.tool == tool) for grant in own)


def good_name(name: str, taken: Mapping[str, Any] | set[str] | frozenset[str] = frozenset()) -> str:
    """A name that is valid in a template and a file, and that no other server has."""
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:50] or "server"
    found, n = clean, 2
    while found in taken:
        found, n = f"{clean}-{n}", n + 1
    return found
