"""The first token of a prompt that differs from what its slot held, asked from the server that runs: `/slots` has the
texts (with LLAMA_SERVER_SLOTS_DEBUG=1, which `kvdesk watch` sets), else `/apply-template` renders the messages that the
log shows (at level 5); `/tokenize` has their tokens.

Asks this computer alone, whatever address a log names, once for each request that has ended, on its own thread.
"""

import http.client
import json
import queue
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.reuse.prompt_change import change_between, followed, prompt_of_text
from kvdesk.engine_log.findings import HITS, Finding
from kvdesk.engine_log.record import Request
from kvdesk.errors import UserError
from kvdesk.protocol.servers import is_this_computer, server_url
from kvdesk.translation import tr
from kvdesk.values import dataclass

_WAIT_S: Final = 10.0
"""The server answers between two of its batches."""
_MOST_BYTES: Final = 64 << 20
_MOST_WAITING: Final = 16
"""Requests that wait to be asked about; more are ignored."""
_SLOTS: Final = "/slots"
_TEMPLATE: Final = "/apply-template"
_SHOWN: Final = 40
"""Characters of a text after the difference."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """`is_elsewhere`: its slot was the oldest, so that it may follow a prompt of another."""

    url: str
    slot: int
    task: int
    body: str
    is_miss: bool
    is_elsewhere: bool

    @property
    def place(self) -> tuple[str, int]:
        """Server and slot."""
        return self.url, self.slot


@dataclass(frozen=True, slots=True)
class _Text:
    """A prompt with its answer, as far as it is known. `by`: what showed it; only texts of the same are compared."""

    by: str
    prompt: str
    answer: str = ""


class FirstTokens:
    """`say` gets a line for each request whose first differing token was found, on the thread that asks."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._ended: queue.SimpleQueue[_Ended | None] = queue.SimpleQueue()
        self._held: dict[tuple[str, int], _Text] = {}  # by server and slot: what its cells are of
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._told = ("", -1, -1)

    def has_said(self, request: Request) -> bool:
        """Whether a line was said about it, the last of all."""
        return self._told == (_reached(request.server.url), request.slot, request.task)

    def ended(self, request: Request, finding: Finding, url: str) -> None:
        """A request has ended at the server of this address, "" unknown."""
        if not (url := _reached(url)) or request.task < 0 or self._ended.qsize() >= _MOST_WAITING:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask_all, name="kvdesk-slots", daemon=True)
            self._thread.start()
        is_miss, is_elsewhere = finding.cause not in HITS, request.how == "age"
        self._ended.put(_Ended(url, request.slot, request.task, request.body, is_miss, is_elsewhere))

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
                    self._told = (ended.url, ended.slot, ended.task)
                    self._say(line)
            except OSError:  # it has ended, or hangs
                self._held.pop(ended.place, None)
                if self._is_closing:
                    return
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError):  # it does not show its slots
                self._held.pop(ended.place, None)

    def _line(self, ended: _Ended) -> str:
        """ "" if nothing differs, or the prompt is not shown. Raises the errors of a bad answer."""
        own = self._held.pop(ended.place, None)
        asked = self._by_slots(ended) or self._by_template(ended)
        if asked is None:
            return ""
        others = [text for (url, _), text in self._held.items() if url == ended.url]
        known = [own, *others] if ended.is_elsewhere else []
        self._held[ended.place] = asked
        found = _followed([one for one in known if one and one.by == asked.by], asked)
        if found is None and not ended.is_miss:
            return ""
        before, change = found or (own, "")
        if before is None or before.by != asked.by:
            return ""
        held = before.prompt + before.answer
        if asked.prompt.startswith(held):
            return ""
        has_begin = asked.by == _SLOTS  # a template's text is without the tokens that a tokenizer adds
        old, new = (self._tokens(ended.url, text, has_begin) for text in (held, asked.prompt))
        n = common_prefix([token for token, _ in old], [token for token, _ in new])
        if n == min(len(old), len(new)):
            return ""
        said = tr(
            "First token that differs, by {by} and /tokenize: {n:,}. The slot has {held}, the prompt has {prompt}."
        )
        if before is not own:
            said = tr(
                "First token that differs from another slot, by {by} and /tokenize: {n:,}. That slot has {held}, the "
                "prompt has {prompt}."
            )
        said = said.format(by=asked.by, n=n, held=_shown(old, n), prompt=_shown(new, n))
        return "        " + (said if before is own else f"{change} {said}".lstrip())

    def _by_slots(self, ended: _Ended) -> _Text | None:
        """None if the server does not show its prompts, or the slot has another request already."""
        try:
            (slot,) = (one for one in self._asked(f"{ended.url}{_SLOTS}") if one["id"] == ended.slot)
        except (ValueError, TypeError, KeyError):
            return None
        if slot.get("id_task") != ended.task or "prompt" not in slot:
            return None
        return _Text(_SLOTS, str(slot["prompt"]), str(slot.get("generated", "")))

    def _by_template(self, ended: _Ended) -> _Text | None:
        """None for a request without messages, or whose body is not in the log."""
        if not ended.body:
            return None
        return _Text(_TEMPLATE, str(self._asked(f"{ended.url}{_TEMPLATE}", ended.body.encode())["prompt"]))

    def _tokens(self, url: str, text: str, has_begin: bool) -> list[tuple[int, str]]:
        body = {"content": text, "add_special": not has_begin, "parse_special": True, "with_pieces": True}
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


def _reached(url: str) -> str:
    """Where this computer reaches a server that listens there; "" if it is another one, or no address."""
    try:
        url = server_url(url)
        place = urlsplit(url)
    except (UserError, ValueError):
        return ""
    if place.hostname in ("0.0.0.0", "::"):
        url = place._replace(netloc=f"{'127.0.0.1' if '.' in place.netloc else '[::1]'}:{place.port or 80}").geturl()
    return url if is_this_computer(url) else ""


def _followed(earlier: Sequence[_Text], asked: _Text) -> tuple[_Text, str] | None:
    """The text of any slot that the prompt most likely follows, and what was changed."""
    prompts = [prompt_of_text(one.prompt + one.answer) for one in earlier]
    new = prompt_of_text(asked.prompt)
    if (found := followed(prompts, new)) is None:
        return None
    at = next(i for i, prompt in enumerate(prompts) if prompt is found[0])
    return earlier[at], change_between(found[0], new).sentence


def _shown(tokens: Sequence[tuple[int, str]], n: int) -> str:
    """The token and what follows it."""
    text = "".join(piece for _, piece in tokens[n : n + _SHOWN])[:_SHOWN]
    return f"{tokens[n][0]} {text!r}"
