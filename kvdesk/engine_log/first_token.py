"""The first token of a prompt that differs from what its slot held, asked from the server that runs: `/slots` has the
texts (with LLAMA_SERVER_SLOTS_DEBUG=1, which `kvdesk watch` sets), `/tokenize` their tokens.

Asks this computer alone, whatever address a log names, once for each request that has ended, on a thread of its own.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.engine_log.causes import HITS, Finding
from kvdesk.engine_log.record import Request
from kvdesk.protocol.servers import is_this_computer
from kvdesk.translation import tr
from kvdesk.values import dataclass

_WAIT_S: Final = 10.0
"""The server answers between two of its batches."""
_MOST_BYTES: Final = 64 << 20
_MOST_WAITING: Final = 16
"""Requests that wait to be asked about; more are passed over."""
_SHOWN: Final = 40
"""Characters of a text behind the difference."""


@dataclass(frozen=True, slots=True)
class _Ended:
    url: str
    slot: int
    task: int
    is_miss: bool


class FirstTokens:
    """`say` gets a line for each request whose first differing token was found, on the thread that asks."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._ended: queue.SimpleQueue[_Ended | None] = queue.SimpleQueue()
        self._held: dict[int, str] = {}  # by slot: what its cells are of
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def ended(self, request: Request, finding: Finding, url: str) -> None:
        """A request has ended at the server of this address, "" unknown."""
        if not url or not is_this_computer(url) or request.task < 0 or self._ended.qsize() >= _MOST_WAITING:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask_all, name="kvdesk-slots", daemon=True)
            self._thread.start()
        self._ended.put(_Ended(url.rstrip("/"), request.slot, request.task, finding.cause not in HITS))

    def close(self) -> None:
        """Answers that wait are given first, unless the server does not answer any more."""
        if self._thread is not None:
            self._is_closing = True
            self._ended.put(None)
            self._thread.join()
            self._thread, self._ended, self._is_closing = None, queue.SimpleQueue(), False

    def _ask_all(self) -> None:
        while (ended := self._ended.get()) is not None:
            try:
                if line := self._line(ended):
                    self._say(line)
            except OSError:  # it has ended, or hangs
                self._held.pop(ended.slot, None)
                if self._is_closing:
                    return
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError):  # it does not show its slots
                self._held.pop(ended.slot, None)

    def _line(self, ended: _Ended) -> str:
        """ "" where nothing differs, or the slot has another request already. Raises the errors of a bad answer."""
        (slot,) = (one for one in self._asked(f"{ended.url}/slots") if one["id"] == ended.slot)
        before = self._held.pop(ended.slot, "")
        if slot.get("id_task") != ended.task or "prompt" not in slot:
            return ""
        prompt = str(slot["prompt"])
        self._held[ended.slot] = prompt + str(slot.get("generated", ""))
        if not (ended.is_miss and before) or prompt.startswith(before):
            return ""
        held, asked = (self._tokens(ended.url, text) for text in (before, prompt))
        n = common_prefix([token for token, _ in held], [token for token, _ in asked])
        if n == min(len(held), len(asked)):
            return ""
        said = tr(
            "First differing token, by /slots and /tokenize: {n:,}. The slot held {held}, the prompt has {prompt}."
        )
        return "        " + said.format(n=n, held=_shown(held, n), prompt=_shown(asked, n))

    def _tokens(self, url: str, text: str) -> list[tuple[int, str]]:
        body = {"content": text, "add_special": False, "parse_special": True, "with_pieces": True}
        found = self._asked(f"{url}/tokenize", json.dumps(body).encode())["tokens"]
        return [(int(one["id"]), one["piece"] if isinstance(one["piece"], str) else "�") for one in found]

    def _asked(self, url: str, body: bytes | None = None) -> Any:
        """Raises OSError, ValueError. Without proxies and redirects: nothing leaves this computer."""
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_WAIT_S)
        try:
            connection.request("POST" if body else "GET", place.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                raise ValueError(answer.status)
            return json.loads(answer.read(_MOST_BYTES))
        except http.client.HTTPException as error:
            raise ValueError(str(error)) from error
        finally:
            connection.close()


def _shown(tokens: Sequence[tuple[int, str]], n: int) -> str:
    """The token and what follows it."""
    text = "".join(piece for _, piece in tokens[n : n + _SHOWN])[:_SHOWN]
    return f"{tokens[n][0]} {text!r}"
