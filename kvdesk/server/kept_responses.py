"""Responses that are kept in memory, so that later ones follow them and their clients can ask for them again."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from kvdesk.protocol.cache import LedgerRow
from kvdesk.server.config import Key
from kvdesk.server.errors import ApiError
from kvdesk.values import dataclass

MOST_RESPONSE_BYTES: Final = 16_000_000
"""Of all that are kept, estimated. The oldest go first."""


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """`messages`: those of the chat up to its end, without instructions; `owner`: the key whose clients may read it;
    `items`: those of its input.
    """

    response: dict[str, Any]
    messages: tuple[dict[str, Any], ...]
    owner: Key
    n_bytes: int
    items: tuple[dict[str, Any], ...]


class KeptResponses:
    """Those of all clients."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, KeptResponse] = OrderedDict()
        self._items: dict[str, tuple[str, dict[str, Any]]] = {}  # of all of them, with the response of each
        self.n_bytes = 0

    @property
    def ledger(self) -> LedgerRow:
        return LedgerRow("kept responses", 0, self.n_bytes, MOST_RESPONSE_BYTES)

    def add(
        self, response: dict[str, Any], messages: Sequence[dict[str, Any]], owner: Key, items: Sequence[dict[str, Any]]
    ) -> None:
        n_bytes = sum(len(json.dumps(part)) for part in (response, messages, items))
        self._kept[response["id"]] = KeptResponse(response, tuple(messages), owner, n_bytes, tuple(items))
        self._items |= {item["id"]: (response["id"], item) for item in response["output"]}
        self.n_bytes += n_bytes
        while self.n_bytes > MOST_RESPONSE_BYTES:
            self._remove(next(iter(self._kept)))

    def find(self, identity: str, owner: Key) -> KeptResponse | None:
        kept = self._kept.get(identity)
        return kept if kept is not None and kept.owner == owner else None

    def get(self, identity: str, owner: Key) -> dict[str, Any]:
        """Raises ApiError."""
        if (kept := self.find(identity, owner)) is None:
            raise ApiError(404, f"There is no response {identity[:100]} here, or none any more.", "response_id")
        return kept.response

    def items(self, identity: str, owner: Key) -> Sequence[dict[str, Any]]:
        """Of the input that a response answered. Raises ApiError."""
        self.get(identity, owner)
        return self._kept[identity].items

    def delete(self, identity: str, owner: Key) -> None:
        """Raises ApiError."""
        self.get(identity, owner)
        self._remove(identity)

    def before(self, identity: str | None, owner: Key) -> tuple[dict[str, Any], ...]:
        """The messages that a response follows. Raises ApiError."""
        if identity is None:
            return ()
        if (kept := self.find(identity, owner)) is None:
            said = f"The response {identity[:100]} is not kept here, or not any more; send the whole input."
            raise ApiError(400, said, "previous_response_id", "previous_response_not_found")
        return kept.messages

    def item(self, identity: str, owner: Key) -> dict[str, Any]:
        """What an item of an input refers to. Raises ApiError."""
        response, item = self._items.get(identity, ("", {}))
        if self.find(response, owner) is None:
            raise ApiError(404, f"There is no item {identity[:100]} here, or none any more.", "input", "item_not_found")
        return item

    def _remove(self, identity: str) -> None:
        gone = self._kept.pop(identity)
        self.n_bytes -= gone.n_bytes
        for item in gone.response["output"]:
            del self._items[item["id"]]
