"""The latest prompts of each client, and what a new one has in common with the one that it most likely follows.

Bounded in clients, prompts and bytes; the oldest go first. Nothing of it is written anywhere.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Final

from kvdesk.cache.reuse.prompt_change import (
    Change,
    Overlap,
    Prompt,
    PromptChange,
    change_between,
    followed,
    overlap,
    prompt_of_json,
)
from kvdesk.loose_json import obj
from kvdesk.values import dataclass

MOST_CLIENTS: Final = 64
MOST_PROMPTS: Final = 8
"""Of one client: a conversation, those of its helpers, titles."""
MOST_BYTES: Final = 64 << 20
_MOST_NAME: Final = 500
_NOTHING: Final = PromptChange(Change.NOTHING)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A prompt beside the one that it follows. `is_first`: it follows none."""

    change: PromptChange
    overlap: Overlap
    is_first: bool


class Sessions:
    """Used by one thread alone."""

    def __init__(self) -> None:
        self._clients: OrderedDict[bytes, deque[tuple[Prompt, int]]] = OrderedDict()
        self._n_bytes = 0

    def compare(self, client: bytes, prompt: Prompt) -> Comparison:
        """The prompt beside the earlier one that has most in common with it, the latest of several."""
        found = followed((before for before, _ in reversed(self._clients.get(client, ()))), prompt)
        if found is None:
            return Comparison(_NOTHING, Overlap(0, 0, overlap(prompt, prompt).n), is_first=True)
        before, most = found
        return Comparison(change_between(before, prompt), most, is_first=False)

    def keep(self, client: bytes, prompt: Prompt, n_bytes: int) -> None:
        """Remember a prompt that its server has read."""
        kept = self._clients.setdefault(client, deque())
        self._clients.move_to_end(client)
        kept.append((prompt, n_bytes))
        self._n_bytes += n_bytes
        while len(kept) > MOST_PROMPTS:
            self._n_bytes -= kept.popleft()[1]
        while self._clients and (len(self._clients) > MOST_CLIENTS or self._n_bytes > MOST_BYTES):
            oldest = next(iter(self._clients.values()))
            self._n_bytes -= oldest.popleft()[1]
            if not oldest:
                self._clients.popitem(last=False)
            elif len(self._clients) > MOST_CLIENTS:
                self._n_bytes -= sum(n for _, n in oldest)
                self._clients.popitem(last=False)


def prompt_of(request: Mapping[str, Any]) -> Prompt | None:
    """The prompt of a request; None if it cannot be compared, such as where its server has the history."""
    return None if request.get("previous_response_id") else prompt_of_json(request)


def session_of(request: Mapping[str, Any]) -> str:
    """The name that a request gives its conversation, "" if it gives none."""
    named = obj(request.get("metadata"))
    found = request.get("prompt_cache_key") or named.get("session_id") or named.get("user_id") or request.get("user")
    return found[:_MOST_NAME] if isinstance(found, str) else ""
