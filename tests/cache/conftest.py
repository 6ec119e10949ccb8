"""Models for the cache tests, and nothing of Qt."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.binding import engine_log, lib
from tests.cache.models import KINDS, write_model


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny model per memory class."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: write_model(folder / f"{kind}.gguf", kind) for kind in KINDS}


@pytest.fixture(scope="module", autouse=True)
def log_given_back() -> Iterator[None]:
    """llama.cpp has one log callback a process: these tests take it, and whoever had it gets it back."""
    log = engine_log()
    yield
    lib.llama_log_set(log._callback, ctypes.c_void_p(0))
