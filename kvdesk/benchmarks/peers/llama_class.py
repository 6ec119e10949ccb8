"""llama-cpp-python's `Llama` as a peer, in this process: one chat at a time, each request with the whole chat."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from kvdesk.backends.local.llama.binding import engine_version, llama_class
from kvdesk.benchmarks.peers.history import History
from kvdesk.benchmarks.peers.peer import PeerFailed, Piece
from kvdesk.settings import ContextSettings


class LlamaPeer:
    """See `Peer`. A second request waits for the end of the first."""

    name = "Llama"
    no_restart = ""

    def __init__(self, path: Path, settings: ContextSettings) -> None:
        self.about = f"llama-cpp-python {engine_version().binding}, {path.name}"
        self._path, self._settings = path, settings
        self._history, self._one = History(), threading.Lock()
        self._llama = self._made()

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        messages, words, n_pieces, cut = self._history.asked(chat, text), "", 0, False
        with self._one:
            try:
                for chunk in self._llama.create_chat_completion(
                    messages, temperature=0.0, repeat_penalty=1.0, max_tokens=n_tokens, stream=True
                ):
                    choice = chunk["choices"][0]
                    cut = choice.get("finish_reason") == "length"
                    if new := choice["delta"].get("content"):
                        words += new
                        n_pieces += 1
                        yield Piece(new)
            except (ValueError, RuntimeError) as error:  # the prompt is too long, llama_decode failed
                raise PeerFailed(f"{self.name} answered: {str(error).rstrip('.')}.") from error
        self._history.answered(chat, text, words)
        yield Piece("", n_tokens - n_pieces if cut else 0)  # its last pieces may hold several tokens

    def forget(self, chat: str) -> None:
        self._history.forget(chat)

    def settle(self) -> None:
        """It does nothing unasked."""

    def restart(self) -> None:
        self.close()
        self._llama = self._made()

    def close(self) -> None:
        self._llama.close()

    def _made(self) -> Any:
        """With kvdesk's settings where it has them."""
        os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"
        settings = self._settings
        return llama_class()(
            model_path=str(self._path),
            n_ctx=settings.n_ctx,
            n_batch=settings.n_batch,
            n_ubatch=settings.graph_tokens,
            n_threads=settings.decode_threads,
            n_threads_batch=settings.n_threads_batch,
            flash_attn=settings.flash_attn,
            verbose=False,
        )
