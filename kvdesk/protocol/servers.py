"""Servers that a window can connect to: how they are named, and what was found when one was asked."""

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from kvdesk.errors import UserError
from kvdesk.protocol.features import Feature
from kvdesk.translation import tr
from kvdesk.values import dataclass

ServerKind = Literal["kvdesk", "llama-server", "vLLM", "SGLang", "other"]
MOST_URL = 500
"""Characters of an address."""


@dataclass(frozen=True, slots=True)
class ServerFound:
    """What a server is and shows. `models`: their names, at least one; `facts`: a sentence each; `limit`: what it could
    show and does not, and what to do; "" if there is nothing.
    """

    kind: ServerKind
    models: tuple[str, ...]
    facts: tuple[str, ...] = ()
    features: frozenset[Feature] = frozenset({Feature.CHAT, Feature.CONTINUE})
    limit: str = ""


def server_url(text: str) -> str:
    """The address of a server as it is kept: with http:// where no scheme is given, without /v1 at its end.

    Raises UserError for what is no address.
    """
    text = text.strip()
    if "://" not in text:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UserError(tr("This is not the address of a server."), str(error)) from error
    if parts.scheme not in ("http", "https"):
        raise UserError(tr("The address of a server begins with http:// or https://."))
    host = parts.hostname or ""
    if not host or any(c.isspace() or not c.isprintable() for c in text) or len(text) > MOST_URL:
        raise UserError(tr("An address has a name or a number, such as 192.168.1.5:8080."))
    if parts.username or parts.password:
        raise UserError(tr("Write the key into the field for it, not into the address."))
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}{f':{port}' if port else ''}{path}"


def is_this_computer(url: str) -> bool:
    """Whether nothing that is sent there leaves this computer."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_readable_on_the_way(url: str) -> bool:
    """Whether chats and key go over a network as they are."""
    return urlsplit(url).scheme == "http" and not is_this_computer(url)
