"""An OpenAI-compatible server as a peer: chat completions over HTTP, streamed as server-sent events."""

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.benchmarks.peers.history import History
from tests.benchmarks.peers.peer import PeerFailed, Piece

CONNECT_S, SILENT_S = 5.0, 120.0
"""After so long without a word a server is given up: longer than 2,000 tokens take on a busy laptop."""
MOST_SAID = 200
"""Characters of a server's own error that are told."""


class ServerPeer:
    """See `Peer`. url: with or without /v1; model: its name there, "" for the only one; name: "" for host and port.

    Nothing is sent before the first request. Raises PeerFailed where the address is none.
    """

    no_restart = "a server that was given by its address cannot be restarted from here"
    how = ""
    """See `Piece`: of a server that was given by its address nothing is known."""

    def __init__(self, url: str, model: str = "", name: str = "", *, silent_s: float = SILENT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise PeerFailed(f"{url} is no address of a server: it begins with http:// or https://.", gone=True)
        self.url = url.rstrip("/").removesuffix("/v1") + "/v1"
        self.name = name or parts.netloc.rpartition("@")[2]
        self.about = self.url
        self._model = model
        self._history = History()
        self._client = httpx2.Client(timeout=httpx2.Timeout(silent_s, connect=CONNECT_S))

    def check(self) -> None:
        """Whether it is there and which model it has. Raises PeerFailed: one sentence."""
        with self._told():
            response = self._client.get(f"{self.url}/models")
            self._check_status(response)
            try:
                ids = [str(model["id"]) for model in response.json()["data"]]
            except (ValueError, LookupError, TypeError) as error:
                raise PeerFailed(
                    f"{self.url}/models answers otherwise than an OpenAI-compatible server.", str(error), gone=True
                ) from error
        self._choose(ids)

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        words, n_told, n_made, n_read = "", 0, None, None
        try:
            for chunk in self._streamed(self._history.asked(chat, text), n_tokens):
                for new in _texts(chunk):
                    words += new
                    n_told += 1
                    yield Piece(new)
                n_made, n_read = _counted(chunk, n_made, n_read)
        except GeneratorExit:
            self._history.answered(chat, text, words)
            raise
        self._history.answered(chat, text, words)
        yield Piece("", (n_made or n_told) - n_told, n_read, self.how)

    def first_call_s(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], n_tokens: int
    ) -> float:
        """Seconds until the first delta of a call, which the answer has to make; it is read to its end. Raises
        PeerFailed.
        """
        asked, first = time.perf_counter(), None
        for chunk in self._streamed(messages, n_tokens, tools=tools, tool_choice="required"):
            calls = any((choice.get("delta") or {}).get("tool_calls") for choice in chunk.get("choices") or ())
            first = first or (time.perf_counter() - asked if calls else None)
        if first is None:
            raise PeerFailed(f"{self.name} called nothing.")
        return first

    def forget(self, chat: str) -> None:
        self._history.forget(chat)

    def settle(self) -> None:
        """Nothing is known of what it does unasked."""

    def restart(self) -> None:
        raise PeerFailed(self.no_restart)

    def close(self) -> None:
        self._client.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _streamed(
        self, messages: Sequence[Mapping[str, Any]], n_tokens: int, **more: object
    ) -> Generator[dict[str, Any]]:
        """The chunks of an answer; `more`: other fields of the request. Raises PeerFailed."""
        request = {
            "model": self._model,
            "messages": messages,
            "max_tokens": n_tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more,
        }
        with self._told(), self._client.stream("POST", f"{self.url}/chat/completions", json=request) as response:
            if response.status_code != httpx2.codes.OK:
                response.read()
            self._check_status(response)
            yield from self._chunks(response)

    def _choose(self, ids: list[str]) -> None:
        """The model to ask for."""
        if self._model and self._model not in ids:
            raise PeerFailed(f"{self.url} has no model {self._model}; it has {', '.join(ids) or 'none'}.", gone=True)
        if len(ids) != 1 and not self._model:
            has = f"{len(ids)} models ({', '.join(ids)}): name one with --served-model" if ids else "no model loaded"
            raise PeerFailed(f"{self.url} has {has}.", gone=True)
        self._model = self._model or ids[0]
        self.about = f"{self._model.rpartition('/')[2]} at {self.url}"

    def _check_status(self, response: httpx2.Response) -> None:
        """Raises PeerFailed for an error."""
        status = response.status_code
        if status == httpx2.codes.OK:
            return
        if status in (401, 403):
            raise PeerFailed(f"{self.url} wants a key, and none is sent.", gone=True)
        if status == httpx2.codes.NOT_FOUND:
            raise PeerFailed(f"There is no OpenAI-compatible server at {self.url} (error 404).", gone=True)
        raise PeerFailed(f"{self.name} answers with error {status}: {_error_text(response.text)}", response.text)

    def _chunks(self, response: httpx2.Response) -> Iterator[dict[str, Any]]:
        """The events of a stream, to "[DONE]" or its end."""
        for event in httpx2.EventSource(response):
            if event.data.strip() == "[DONE]":
                return
            try:
                chunk = event.json()
            except ValueError as error:
                raise PeerFailed(f"{self.name} sent what is no JSON.", event.data[:MOST_SAID]) from error
            if not isinstance(chunk, dict):
                raise PeerFailed(f"{self.name} sent JSON that is no answer.", event.data[:MOST_SAID])
            if "error" in chunk:
                raise PeerFailed(f"{self.name} answers with an error: {_error_text(event.data)}", event.data)
            yield chunk

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong on the way, in a sentence."""
        try:
            yield
        except httpx2.ConnectError as error:
            raise PeerFailed(f"Nothing answers at {self.url}.", str(error), gone=True) from error
        except httpx2.TimeoutException as error:
            seconds = CONNECT_S if isinstance(error, httpx2.ConnectTimeout) else self._client.timeout.read
            raise PeerFailed(f"{self.url} said nothing for {seconds:g} s.", str(error), gone=True) from error
        except httpx2.SSEError as error:
            raise PeerFailed(f"{self.url} does not stream its answers.", str(error), gone=True) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise PeerFailed(f"{self.url} broke off: {str(error) or type(error).__name__}.", gone=True) from error


def _texts(chunk: dict[str, Any]) -> Iterator[str]:
    """The text in a chunk, thoughts included, which are written like any other text."""
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta") or {}
        for key in ("reasoning_content", "content"):
            if text := delta.get(key):
                yield text


def _counted(chunk: dict[str, Any], n_made: int | None, n_read: int | None) -> tuple[int | None, int | None]:
    """Tokens of the answer, and those of the prompt that were computed, where the chunk tells."""
    usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}  # timings: llama-server
    n_made = usage.get("completion_tokens", n_made)
    n_cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    if n_cached is not None and "prompt_tokens" in usage:
        n_read = usage["prompt_tokens"] - n_cached
    return n_made, timings.get("prompt_n", n_read)


def _error_text(body: str) -> str:
    """The server's own words, in one line."""
    try:
        error = json.loads(body)["error"]
        said = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        said = body
    said = " ".join(said.split())[:MOST_SAID]
    return f"{said.rstrip('.')}." if said else "nothing more."
