"""What a server is started with: address, keys, origins, limits. Values only."""

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kvdesk.values import replace

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8080
"""That of llama-server, so that programs which are set up for it need no change."""
KEY_BYTES: Final = 24
_MOST_RUN: Final = 32  # characters of the name of a run


@dataclass(frozen=True, slots=True)
class Key:
    """A key that clients send. `name`: as it is shown; `inspect`: it may see what others asked (text, ids, titles);
    `run`: the name that a client gave its run, see `ServerConfig.key_of`.
    """

    value: str = field(repr=False)
    name: str = ""
    inspect: bool = False
    run: str = ""

    @property
    def label(self) -> str:
        """By which requests of different keys and runs are distinguished."""
        return " ".join(part for part in (self.name, self.run) if part)


NOBODY: Final = Key("")
"""Of a client without a key, if none is needed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much clients may ask for. Seconds and bytes; `waiting` requests beside those that run.

    rate, burst  requests a second of one client, and how many at once
    write_s      so long a client may take nothing of its answer
    connections  requests at once, and half of the connections
    """

    body_bytes: int = 8 << 20
    text_chars: int = 1 << 20  # of one text to tokenize
    waiting: int = 64
    connections: int = 256
    rate: float = 50.0
    burst: int = 200
    header_s: float = 10.0
    body_s: float = 30.0
    write_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where a server listens and who may ask it.

    port           0: any that is free
    keys           with none, everybody on this computer may ask; other addresses need one (`check`)
    origins        of pages that a browser may ask from, such as http://localhost:3000; "*" is all
    names          host names that clients may know this computer by, beside addresses and localhost
    share_prefixes False: requests with different keys, and the chats, share no cells
    alias          name of the model in answers; "": that of its file
    max_tokens     most tokens of an answer whose request does not specify them; 0: as many as the context holds
    reasoning_budget  most tokens of reasoning if the request does not specify them; -1: no limit
    client_share   of the cells, and of the memory for saved states, that idle requests of one program may keep
    slot_folder    where `POST /slots/N` saves states of sequences, and restores them from; None: nowhere
    embedding      file of the model that makes embeddings, with this `pooling`; None: the one that
                   chats
    reranking      file of the model that ranks documents; None: the one that makes embeddings
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    keys: tuple[Key, ...] = ()
    origins: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    share_prefixes: bool = True
    alias: str = ""
    max_tokens: int = 0
    reasoning_budget: int = -1
    client_share: float = 1.0
    slot_folder: Path | None = None
    embedding: Path | None = None
    pooling: str = ""
    reranking: Path | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this computer can reach it."""
        return is_loopback(self.host)

    def key_of(self, sent: str) -> Key | None:
        """The key that was sent; None if there is no such key. Takes as long for a wrong one as for a right one.
        `KEY~RUN` is KEY, with a name for the requests that are scored together; where no key is needed, any KEY.
        """
        value, mark, run = sent.rpartition("~")
        if not (mark and len(run) <= _MOST_RUN and run.isascii() and run.isalnum()):
            value, run = sent, ""
        found = None if self.keys else replace(NOBODY, run=run)
        for key in self.keys:
            if _same(key.value, value):
                found = replace(key, run=run)
            if _same(key.value, sent):
                found = key
        return found


def _same(key: str, sent: str) -> bool:
    return hmac.compare_digest(key.encode(), sent.encode("utf-8", "replace"))


def new_key() -> str:
    """A random key."""
    return f"sk-kvdesk-{secrets.token_urlsafe(KEY_BYTES)}"


def is_loopback(host: str) -> bool:
    """Whether an address, or the name of one, is this computer's own for itself."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_allowed(header: str, names: Iterable[str]) -> bool:
    """Whether a request that names this host may be answered. A page in a browser can give its own name this computer's
    address (DNS rebinding): only addresses, localhost and names that were allowed are right.
    """
    host = header.strip().lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    host = host.rstrip(".")
    if host == "localhost" or host in {name.lower() for name in names}:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
