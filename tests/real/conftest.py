"""Real models: the GGUF files of the folder KVDESK_REAL_MODELS, one after another. `make real MODELS=DIR` sets it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.settings import ContextSettings
from tests.backends.local.conftest import SMALL, emptied, opened_with

FOLDER: Final = os.environ.get("KVDESK_REAL_MODELS", "")
MODELS: Final = sorted(Path(FOLDER).glob("*.gguf"), key=lambda path: path.stat().st_size) if FOLDER else []
"""The smallest first."""
EXACT: Final = SMALL.model_copy(update={"exact": True, "n_threads_batch": os.cpu_count() or 1})
"""A prompt read in parts gives the logits of one read at once, bit for bit, so answers are compared token by token."""


def opened_real(path: Path, settings: ContextSettings) -> Iterator[HeadlessEngine]:
    """The engine with this model, whose answers are as long as they may be: for fixtures."""
    for headless in opened_with(path, settings):
        session_of(headless).loaded.model.vocab.ignore_eog()
        yield headless


def name_of(path: Path | None) -> str:
    """For the names of tests."""
    return path.stem if path else "none"


@pytest.fixture(scope="module", params=(*MODELS,) or (None,), ids=name_of)
def real_file(request: pytest.FixtureRequest) -> Path:
    """Each model. Fails if there is none: who runs these tests has asked for them."""
    if request.param is None:
        pytest.fail(f"There is no GGUF file in the folder {FOLDER!r}: make real MODELS=DIR")
    return Path(request.param)


@pytest.fixture(scope="module")
def loaded_real(real_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_real(real_file, SMALL)


@pytest.fixture(scope="module")
def loaded_exact(real_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_real(real_file, EXACT)


@pytest.fixture
def exact(loaded_exact: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    return emptied(loaded_exact, monkeypatch)


@pytest.fixture
def embedded(loaded_real: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    """The real model in place of the embedded one, for the tests of `tests/backends/local`."""
    return emptied(loaded_real, monkeypatch)


@pytest.fixture
def engine(embedded: HeadlessEngine) -> HeadlessEngine:
    return embedded
