"""A socket that listens, with a sentence if it cannot."""

import os
import socket

from kvdesk.errors import UserError
from kvdesk.translation import tr


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises UserError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # elsewhere it would share a port that is taken
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        return listening
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(
            tr(
                "The server cannot listen at {host}, port {port}: {why}. Choose another port, or another address."
            ).format(host=host, port=port, why=why)
        ) from error
