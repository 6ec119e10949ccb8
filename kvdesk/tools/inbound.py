"""What comes from a server, whichever way: counted, so that none can flood, and looked at for what it asks. Imports
`mcp`: half a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import anyio
from mcp import types
from mcp.shared.message import SessionMessage

from kvdesk.translation import tr

MOST_AT_ONCE: Final = 1000
"""Messages of a server, and so many a second for good: no call has so many parts, and they would heat the processor."""
_A_SECOND: Final = 50.0

Received = SessionMessage | Exception
ToClient = anyio.streams.memory.MemoryObjectSendStream[Received]


class Inbound:
    """Of one server. heard: called with the method of each request and notification of the server.

    ended             it has ended by itself, or was ended
    sentence, detail  why, and its last words
    """

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard
        self._left, self._at = float(MOST_AT_ONCE), time.monotonic()
        self.ended = asyncio.Event()
        self.sentence = self.detail = ""

    def why(self, error: BaseException) -> str:  # noqa: ARG002 - the web has errors of its own
        """A sentence about what ended it, or a call of it; "" if the error says more."""
        return self.sentence or (tr("It has ended.") if self.ended.is_set() else "")

    def _counts(self) -> bool:
        """One more has come. False if that is one too many."""
        now = time.monotonic()
        self._left, self._at = min(MOST_AT_ONCE, self._left + _A_SECOND * (now - self._at)) - 1, now
        if self._left >= 0:
            return True
        self.sentence = tr("It sent messages without end, and was ended.")
        return False

    def _look(self, message: types.JSONRPCMessage) -> None:
        """Hear what it asks, also where that is in a result (from the protocol of 2026 on), and take the schemas of
        results out of a list of tools: `mcp` would compare with them on this loop, and a pattern can take for ever.
        """
        if isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification):
            self._heard(message.method)
        elif isinstance(message, types.JSONRPCResponse):
            asked, tools = message.result.get("inputRequests"), message.result.get("tools")
            for one in asked.values() if isinstance(asked, dict) else ():
                if isinstance(one, dict) and isinstance(method := one.get("method"), str):
                    self._heard(method)
            for one in tools if isinstance(tools, list) else ():
                if isinstance(one, dict):
                    one.pop("outputSchema", None)

    async def _end(self, to_client: ToClient) -> None:
        to_client.close()
        self.ended.set()
