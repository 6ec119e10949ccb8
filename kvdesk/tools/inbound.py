"""Checks what arrives from a server, over either transport: limits its rate, and notices requests for something else.
Imports `mcp`, which takes half a second.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, Final

import anyio
from mcp import types
from mcp.shared.message import SessionMessage

from kvdesk.message import storable
from kvdesk.translation import tr

MOST_AT_ONCE: Final = 1000
"""Messages of a server in a burst, and per second in the long run. No call has that many parts."""
_A_SECOND: Final = 50.0

Received = SessionMessage | Exception
ToClient = anyio.streams.memory.MemoryObjectSendStream[Received]


class Inbound:
    """The limits of one server. heard: called with the method of each request and notification that it sends.

    ended             set when the server has ended or was stopped
    sentence, detail  why, and its last words
    """

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard
        self._left, self._at = float(MOST_AT_ONCE), time.monotonic()
        self.ended = asyncio.Event()
        self.sentence = self.detail = ""

    def why(self, error: BaseException) -> str:  # noqa: ARG002 - an override uses it
        """Why the server or a call ended, as a sentence; "" if the error says more."""
        return self.sentence or (tr("It has ended.") if self.ended.is_set() else "")

    def _counts(self) -> bool:
        """Count a message. False if it is one too many."""
        now = time.monotonic()
        self._left, self._at = min(MOST_AT_ONCE, self._left + _A_SECOND * (now - self._at)) - 1, now
        if self._left >= 0:
            return True
        self.sentence = tr("It sent too many messages and was stopped.")
        return False

    def _look(self, message: types.JSONRPCMessage) -> None:
        """Report what the server asks for, also in a result (since the protocol of 2026), and repair its tools."""
        if isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification):
            self._heard(message.method)
        elif isinstance(message, types.JSONRPCResponse):
            asked, tools = message.result.get("inputRequests"), message.result.get("tools")
            for one in asked.values() if isinstance(asked, dict) else ():
                if isinstance(one, dict) and isinstance(method := one.get("method"), str):
                    self._heard(method)
            if isinstance(tools, list):
                message.result["tools"] = [_mended(one) for one in tools if _has_name(one)]

    async def _end(self, to_client: ToClient) -> None:
        to_client.close()
        self.ended.set()


def parsed(line: bytes) -> types.JSONRPCMessage | None:
    """Parse a message of a server, lone surrogates replaced; None if it is invalid. An invalid answer becomes an error
    answer to the same request, so that nobody keeps waiting.
    """
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        found = json.loads(storable(json.dumps(json.loads(line), ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    try:
        return types.jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValueError:
        pass
    if not isinstance(found, dict) or "method" in found or type(found.get("id")) not in (int, str):
        return None
    return types.JSONRPCError(
        jsonrpc="2.0", id=found["id"], error=types.ErrorData(code=types.PARSE_ERROR, message="Not JSON-RPC")
    )


def _are_schemas(properties: object) -> bool:
    return isinstance(properties, dict) and all(isinstance(one, dict | bool) for one in properties.values())


def _has_name(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _mended(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool that `mcp` accepts: one invalid tool makes it refuse all of them. Drops the schema of results, because
    `mcp` would validate against it on this loop, and a pattern in it can run forever.
    """
    schema, about = tool.get("inputSchema"), tool.get("description")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not _are_schemas(schema.get("properties", {})):
        schema = {"type": "object", "properties": {}}
    return {"name": tool["name"], "inputSchema": schema, **({"description": about} if isinstance(about, str) else {})}
