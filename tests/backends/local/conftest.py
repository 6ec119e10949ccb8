"""Loaded engines for all tests here: each test starts with an empty cache.

`headless` and `narrow` (soon full) run the tiny model of `tests.backends.local.talking`, and in the matrix the embedded
one too. `embedded` is for the few tests whose answers must be those of trained and quantized weights in every run.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.scheduler import idle_requests
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.policies import prompt_piece
from kvdesk.policies.compaction_gain import Verdict
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings
from tests.backends.local.ids import NAMES, open_model
from tests.backends.local.tiny_models import written

SMALL = ContextSettings(n_ctx=1024, n_seq_max=4, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1)
CHATTING = ("tiny", pytest.param("embedded", marks=pytest.mark.matrix))
NARROW = SMALL.model_copy(update={"n_ctx": 256})


@pytest.fixture(autouse=True)
def _idle_chats_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the cache, however slow the machine is just now."""
    monkeypatch.setattr(idle_requests, "judge_leaving", lambda *_: Verdict(pays=False, reason=""))


def opened_with(model: Path, settings: ContextSettings) -> Iterator[HeadlessEngine]:
    """The engine with this model, closed at the end: for fixtures."""
    headless = HeadlessEngine()
    headless.do(LoadModel(LocalFile(model), settings))
    if (prompts := session_of(headless).loaded.prompts) is not None:
        prompts.begin()  # else the first test with a template of its own would start, and keep, its thread
    yield headless
    headless.close()


@pytest.fixture(scope="module", params=[*CHATTING, "mamba2", "granitehybrid"])
def engine(
    request: pytest.FixtureRequest, talking_file: Path, model_file: Path, tiny_folder: Path
) -> Iterator[HeadlessEngine]:
    """Models that chat, one for each kind of memory."""
    files = {"tiny": talking_file, "embedded": model_file}
    path = files.get(request.param) or written(tiny_folder, request.param, text=True)
    for headless in opened_with(path, SMALL):
        if request.param not in files:  # random weights end an answer anywhere
            headless.engine.session.loaded.model.vocab.ignore_eog()
        yield headless


def empty(headless: HeadlessEngine) -> None:
    """Nothing is left of earlier tests, nor of what they set."""
    headless.do(UsePolicy(CachePolicy()))
    session = headless.engine.session
    for sequence in session.runtime.cache_manager.pool:
        headless.do(CloseConversation(sequence.conversation))
    assert session.runtime.context.memory.totals()[0] == 0
    session.runtime.context.memory.clear()
    saved_states = session.runtime.cache_manager.swapper.saved_states
    saved_states.drop([key.key for key in saved_states.values()])


def emptied(loaded: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    """The loaded engine with nothing in its cache, and a map that has been right so far. It reads prompts in whole
    batches, however slow the machine is just now, and a saved state always pays: a token is said to take a second.
    """
    monkeypatch.setattr(prompt_piece, "LONGEST_GAP_MS", 1e9)
    monkeypatch.setattr(loaded, "_on_event", None)
    empty(loaded)
    session = loaded.engine.session
    monkeypatch.setattr(session.runtime.cache_manager.swapper, "_costs", lambda n_tokens, _: (1e3 * n_tokens, 1.0))
    verification = session.runtime.context.memory.verification
    assert verification.state == "verified", verification.detail
    return loaded


@pytest.fixture(scope="module")
def llama(tiny_folder: Path) -> Iterator[Model]:
    """The smallest model of plain attention."""
    with closing(Model(written(tiny_folder, "llama"))) as model:
        yield model


@pytest.fixture(scope="module", params=NAMES)
def tiny(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Model]:
    """One of each kind of memory, for conversations of token ids."""
    with closing(open_model(request.param, tiny_folder)) as model:
        yield model


@pytest.fixture(scope="session", params=CHATTING)
def loaded(request: pytest.FixtureRequest, talking_file: Path, model_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file if request.param == "tiny" else model_file, SMALL)


@pytest.fixture
def headless(loaded: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    return emptied(loaded, monkeypatch)


@pytest.fixture(scope="session")
def loaded_embedded(model_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(model_file, SMALL)


@pytest.fixture
def embedded(loaded_embedded: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    return emptied(loaded_embedded, monkeypatch)


@pytest.fixture(scope="module", params=CHATTING)
def opened(request: pytest.FixtureRequest, talking_file: Path, model_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file if request.param == "tiny" else model_file, NARROW)


@pytest.fixture
def narrow(opened: HeadlessEngine) -> HeadlessEngine:
    """The loaded engine with nothing in a cache that is soon full."""
    empty(opened)
    return opened
