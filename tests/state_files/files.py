"""Saved KV caches of tiny models, written and restored by llama.cpp itself."""

import ctypes
import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from llama_cpp.llama import LlamaState

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.model import Model
from kvdesk.codec import decode, encode
from kvdesk.experiments.raw_context import RawContext
from kvdesk.settings import ContextSettings
from kvdesk.state_files import child, reader
from kvdesk.state_files.found import Answer

TOKENS = tuple(7 * i % 100 for i in range(80))


@contextmanager
def context(model: Path, settings: ContextSettings) -> Iterator[RawContext]:
    with (
        closing(Model(model)) as loaded,
        closing(RawContext(loaded, settings.model_copy(update={"n_threads": 1, "n_threads_batch": 1}))) as made,
    ):
        yield made


def read(made: RawContext, tokens: Sequence[int] = TOKENS, seq_id: int = 0) -> None:
    """Decode the tokens, in batches."""
    for first in range(0, len(tokens), 32):
        part = tokens[first : first + 32]
        assert made.decode(part, range(first, first + len(part)), seq_id).rc == 0


def write_slot(made: RawContext, path: Path, tokens: Sequence[int] = TOKENS, seq_id: int = 0) -> Path:
    words = (ctypes.c_int32 * len(tokens))(*tokens)
    assert lib.llama_state_seq_save_file(made.ctx, str(path).encode(), seq_id, words, len(tokens)) > 0
    return path


def write_session(made: RawContext, path: Path, tokens: Sequence[int] = TOKENS) -> Path:
    words = (ctypes.c_int32 * len(tokens))(*tokens)
    assert lib.llama_state_save_file(made.ctx, str(path).encode(), words, len(tokens))
    return path


def context_state(made: RawContext) -> bytes:
    room = (ctypes.c_uint8 * lib.llama_state_get_size(made.ctx))()
    assert lib.llama_state_get_data(made.ctx, room, len(room)) == len(room)
    return bytes(room)


def takes_slot(made: RawContext, path: Path) -> bool:
    """Whether llama.cpp restores the file, of a sequence."""
    tokens, n = (ctypes.c_int32 * 4096)(), ctypes.c_size_t()
    return bool(lib.llama_state_seq_load_file(made.ctx, str(path).encode(), 0, tokens, 4096, ctypes.byref(n)))


def takes_session(made: RawContext, path: Path) -> bool:
    """Whether llama.cpp restores the file, of a context."""
    tokens, n = (ctypes.c_int32 * 4096)(), ctypes.c_size_t()
    return bool(lib.llama_state_load_file(made.ctx, str(path).encode(), tokens, 4096, ctypes.byref(n)))


def pickled(blob: Any, protocol: int, n_context: int = 256) -> bytes:
    """The pickle of a LlamaState."""
    ids = np.zeros(n_context, np.intc)
    ids[: len(TOKENS)] = TOKENS
    scores = np.zeros((len(TOKENS), 128), np.single)
    return pickle.dumps(LlamaState(ids, scores, len(TOKENS), blob, len(blob), 4294967295), protocol)


class _Here:
    """Does what a child does, in this process."""

    def __init__(self, command: Sequence[str], **_limits: object) -> None:
        self._argv = command[-2:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is no process to end."""

    def receive_value(self, *_: object, **__: object) -> Answer:
        said: list[Answer] = []
        child.child_main(SimpleNamespace(send_value=said.append), self._argv)  # type: ignore[arg-type]
        return decode(Answer, encode(said[0]))


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved states are read without a process for each: for tests of what is said of them."""
    monkeypatch.setattr(reader, "Child", _Here)
    monkeypatch.setattr(child, "limit", lambda *_: None)
    monkeypatch.setattr(os, "_exit", lambda _: None)
