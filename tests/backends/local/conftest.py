"""One loaded embedded model for all engine tests, and one that is soon full; every test starts with an empty cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.policies import prompt_piece
from kvdesk.protocol.chat import CloseConversation, LoadModel, LocalFile
from kvdesk.settings import ContextSettings
from tests.backends.local.tiny_models import write

SMALL = ContextSettings(n_ctx=1024, n_seq_max=4, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1)
NARROW = SMALL.model_copy(update={"n_ctx": 256})


@pytest.fixture(scope="session")
def model_file() -> Path:
    path = paths.embedded_model()
    assert path is not None, "the embedded model belongs to the set-up"
    return path


def opened_with(model: Path, settings: ContextSettings) -> Iterator[HeadlessEngine]:
    """The engine with this model, closed at the end: for fixtures."""
    headless = HeadlessEngine()
    headless.do(LoadModel(LocalFile(model), settings))
    prompts = session_of(headless).loaded.prompts
    assert prompts is not None
    prompts.begin()  # else the first test with a template of its own would start, and keep, its thread
    yield headless
    headless.close()


@pytest.fixture(scope="module", params=["embedded", "mamba2", "granitehybrid"])
def engine(
    request: pytest.FixtureRequest, model_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadlessEngine]:
    """Models that chat, one for each kind of memory."""
    path = model_file
    if request.param != "embedded":
        path = write(tmp_path_factory.mktemp("talking") / "model.gguf", request.param, text=True)
    for headless in opened_with(path, SMALL):
        if request.param != "embedded":  # random weights end an answer anywhere
            headless.engine.session.loaded.model.vocab.ignore_eog()
        yield headless


def empty(headless: HeadlessEngine) -> None:
    """Nothing is left of earlier tests."""
    session = headless.engine.session
    assert session is not None
    for sequence in session.runtime.cache_manager.pool:
        headless.do(CloseConversation(sequence.conversation))
    assert session.runtime.context.memory.totals()[0] == 0
    session.runtime.context.memory.clear()
    saved_states = session.runtime.cache_manager.swapper.saved_states
    saved_states.drop([key.key for key in saved_states.values()])


@pytest.fixture(scope="session")
def loaded(model_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(model_file, SMALL)


@pytest.fixture
def headless(loaded: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    """The loaded engine with nothing in its cache, and a map that has been right so far. It reads prompts in whole
    batches, however slow the machine is just now.
    """
    monkeypatch.setattr(prompt_piece, "PROGRESS_MS", 1e9)
    empty(loaded)
    session = loaded.engine.session
    verification = session.runtime.context.memory.verification
    assert verification.state == "verified", verification.detail
    return loaded


@pytest.fixture(scope="module")
def opened(model_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(model_file, NARROW)


@pytest.fixture
def narrow(opened: HeadlessEngine) -> HeadlessEngine:
    """The loaded engine with nothing in a cache that is soon full."""
    empty(opened)
    return opened
