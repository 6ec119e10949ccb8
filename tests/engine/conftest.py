"""One loaded embedded model for all engine tests, and one that is soon full; every test starts with an empty cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.engine import runner
from kvdesk.lab.talk import Headless
from kvdesk.messages import CloseConversation, LoadModel
from kvdesk.settings import ContextSettings

SMALL = ContextSettings(n_ctx=1024, n_seq_max=4, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1)
NARROW = SMALL.model_copy(update={"n_ctx": 256})


@pytest.fixture(scope="session")
def model_file() -> Path:
    path = paths.embedded_model()
    assert path is not None, "the embedded model belongs to the set-up"
    return path


@pytest.fixture(scope="session")
def loaded(model_file: Path) -> Iterator[Headless]:
    headless = Headless()
    headless.do(LoadModel(model_file, SMALL))
    yield headless
    headless.close()


@pytest.fixture
def headless(loaded: Headless, monkeypatch: pytest.MonkeyPatch) -> Headless:
    """The loaded engine with nothing in its cache, and a map that has been right so far. It reads prompts in whole
    batches, however slow the machine is just now.
    """
    monkeypatch.setattr(runner, "PROGRESS_MS", 1e9)
    session = loaded.engine.session
    assert session is not None
    for sequence in session.pool:
        loaded.do(CloseConversation(sequence.conversation))
    assert session.context.totals()[0] == 0
    session.context.clear()
    session.snapshots.drop([key.key for key in session.snapshots.values()])
    assert session.context.verification.state == "verified", session.context.verification.detail
    return loaded


@pytest.fixture(scope="module")
def opened(model_file: Path) -> Iterator[Headless]:
    headless = Headless()
    headless.do(LoadModel(model_file, NARROW))
    yield headless
    headless.close()


@pytest.fixture
def desk(opened: Headless) -> Headless:
    """The loaded engine with nothing in a cache that is soon full."""
    for sequence in opened.engine.session.pool:
        opened.do(CloseConversation(sequence.conversation))
    opened.engine.session.context.clear()
    opened.engine.session.snapshots.drop([key.key for key in opened.engine.session.snapshots.values()])
    return opened
