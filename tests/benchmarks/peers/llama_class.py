"""llama-cpp-python's `Llama` as a peer, in a process of its own: one chat at a time, each request with all of it."""

import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.children.process import Child, ChildStopped
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.history import History
from tests.benchmarks.peers.llama_child import CHILD
from tests.benchmarks.peers.peer import PeerFailed, Piece, wrote_with


class LlamaPeer:
    """See `Peer`. A second request waits for the end of the first. Raises PeerFailed."""

    name = "Llama"
    no_restart = ""

    def __init__(self, path: Path, settings: ContextSettings) -> None:
        self.about = f"llama-cpp-python {engine_version().binding}, {path.name}"
        self._how = f"{wrote_with(settings.decode_threads)}, with this chat alone in its cache"
        self._command = [sys.executable, "-m", CHILD, str(path), settings.model_dump_json()]
        self._history, self._one = History(), threading.Lock()
        self._child = self._started()

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        messages, words, n_pieces = self._history.asked(chat, text), "", 0
        with self._one:
            self._send(messages=messages, n_tokens=n_tokens)
            line: dict[str, Any] = {}
            try:
                while "end" not in line:
                    line = self._heard()
                    if new := line.get("text"):
                        words += new
                        n_pieces += 1
                        yield Piece(new)
            except GeneratorExit:
                self._send(stop=True)
                while "end" not in (line := self._heard()):
                    words += line.get("text", "")
                self._history.answered(chat, text, words)
                raise
        self._history.answered(chat, text, words)
        cut = line["end"] == "length"
        n_more = n_tokens - n_pieces if cut else 0  # its last pieces may hold several tokens
        yield Piece("", n_more, how=self._how)

    def forget(self, chat: str) -> None:
        self._history.forget(chat)

    def settle(self) -> None:
        """It does nothing unasked."""

    def restart(self) -> None:
        self.close()
        self._child = self._started()

    def close(self) -> None:
        self._child.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _started(self) -> Child:
        try:
            self._child = Child(self._command)
        except OSError as error:
            raise PeerFailed(f"{self.name} cannot be started: {error.strerror or error}.", gone=True) from error
        self._heard()
        return self._child

    def _send(self, **request: object) -> None:
        self._child.send_value(request)

    def _heard(self) -> dict[str, Any]:
        """The next thing it says. Raises PeerFailed where that is why it failed."""
        try:
            said: dict[str, Any] = self._child.receive_value()
        except ChildStopped as error:
            raise PeerFailed(f"The process of {self.name} has ended.", gone=True) from error
        if "failed" in said:
            raise PeerFailed(f"{self.name} answered: {said['failed']}.")
        return said
