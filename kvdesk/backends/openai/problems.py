"""Sentences for what goes wrong with a server."""

import httpx2

from kvdesk.errors import SILENT, UNREACHABLE, UserError
from kvdesk.loose_json import object_in
from kvdesk.translation import plural, tr

DETAIL = 2000
"""Characters of a server's message that are kept."""


class ServerError(UserError):
    """The server did not do what was requested."""


class Nonsense(ServerError):
    """The server sent something that violates its protocol."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(tr("The server sent an invalid answer."), detail[:DETAIL])


class Broken(ServerError):
    """A stream that ended too early."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(tr("The connection broke in the middle of the answer."), detail[:DETAIL])


class KeyRefused(ServerError):
    """The server requires another key, or any key, for this request."""


def refused(status: int, body: bytes, retry_after: str = "", *, has_key: bool) -> ServerError:
    """A status other than 200, with the server's message. has_key: whether a key was sent."""
    if status in (401, 403):
        if has_key:
            sentence = tr("The server refuses the key ({status}).").format(status=status)
        else:
            sentence = tr("The server needs a key ({status}). Enter it where you connect.").format(status=status)
        return KeyRefused(sentence, _detail(body))
    said = said_by(body)
    if status == 404:
        sentence = tr("The server does not have this model or address (404).")
    elif status == 429:
        sentence = tr("The server accepts no more requests at the moment (429).")
        if retry_after.isdigit():
            n = int(retry_after)
            sentence += " " + plural("It asks to wait for 1 second.", "It asks to wait for %n seconds.", n)
    elif status >= 500:
        sentence = tr("The server has failed ({status}).").format(status=status)
    else:
        sentence = tr("The server refuses the request ({status}).").format(status=status)
    if said:
        sentence += f" {said}"
    return ServerError(sentence, _detail(body))


def _detail(body: bytes) -> str:
    return body[:DETAIL].decode("utf-8", "replace")


def said_by(body: bytes) -> str:
    """The sentence of an error in the protocol's form, in one line; "" if there is none."""
    value = object_in(body)
    error = value.get("error", value.get("detail"))
    said = error.get("message") if isinstance(error, dict) else error
    return " ".join(said.split())[:300] if isinstance(said, str) else ""


def problem_of(error: Exception, patience_s: float) -> ServerError:
    """A sentence for any error of a request. patience_s: the longest accepted silence."""
    match error:
        case ServerError():
            return error
        case httpx2.ConnectTimeout():
            sentence = tr(SILENT)
        case httpx2.TimeoutException():
            sentence = tr("The server has said nothing for {n:g} seconds.").format(n=patience_s)
        case httpx2.SSEError():
            return Nonsense(str(error))
        case httpx2.ConnectError():
            sentence = tr(UNREACHABLE)
            if "CERTIFICATE" in str(error).upper():
                sentence = tr("The server's certificate is not valid, so nothing was sent.")
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            sentence = tr("This is not the address of a server.")
        case httpx2.DecodingError():
            return Nonsense(str(error))
        case httpx2.TransportError():
            return Broken(repr(error))
        case _:
            sentence = tr("Something unexpected went wrong with the connection.")
    return ServerError(sentence, repr(error)[:DETAIL])
