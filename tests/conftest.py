"""What every test can count on: no display, no data of the person who runs it, no threads left behind."""

import gc
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

# Before anything imports Qt or the engine.
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["KVDESK_LANGUAGE"] = "en"  # whatever the system speaks
os.environ["GGML_NO_BACKTRACE"] = "1"  # an aborting child must not wait for a debugger
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never that of who runs the tests
if "PYTEST_XDIST_WORKER" in os.environ:  # side by side: threads that spin for another lose tenfold on a taken core
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import hypothesis
import psutil
import pytest

from kvdesk import paths
from kvdesk.backends.local.llama import self_check
from kvdesk.library import preflight
from tests.backends.local.talking import trust, write_talking
from tests.tiers import mark_tiers

# Settings made by tests have one thread, since tests run side by side.
psutil.cpu_count = lambda logical=True: 1  # noqa: ARG005 - the name is psutil's

BUDGET_S, TRIAL = self_check.BUDGET_S, preflight._try

hypothesis.settings.register_profile(
    "ci", max_examples=20, deadline=None, derandomize=True, database=None, print_blob=False
)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

IN_MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 * 2**30


def pytest_configure(config: pytest.Config) -> None:
    """Tests that run side by side write into memory if there is room: else each database waits for the disk."""
    if config.getoption("numprocesses", None) and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tiers(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Next to nothing of what is made here is garbage, and a quarter of the time would go into looking for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported stays: collections between tests need not look at it."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What may wait until a release is a warning: tests give it by `record_property("waits", sentence)`."""
    told = [
        text
        for report in terminalreporter.getreports("passed")
        for key, text in report.user_properties
        if key == "waits"
    ]
    if told:
        terminalreporter.section("warning: translations wait, a release needs them", yellow=True)
        for sentence in told:
            terminalreporter.write_line(str(sentence), yellow=True)


@pytest.fixture(scope="session", autouse=True)
def kvdesk_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Database, settings and logs of the whole session go to a temporary folder, in child processes too."""
    home = tmp_path_factory.mktemp("kvdesk-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KVDESK_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The embedded model."""
    path = paths.embedded_model()
    assert path is not None, "the embedded model belongs to the set-up"
    return path


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `tests.backends.local.tiny_models.written` keeps the models it writes: once in a session."""
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="session")
def talking_file(model_file: Path, tiny_folder: Path, kvdesk_home: Path) -> Path:  # noqa: ARG001 - where trust is kept
    """A tiny model with the embedded one's tokenizer (`tests.backends.local.talking`), which children trust too."""
    path = write_talking(tiny_folder / "talking.gguf", model_file)
    trust(path)
    return path


@pytest.fixture(scope="session", autouse=True)
def models_are_trusted() -> Iterator[None]:
    """A model is opened without a trial in a child, and a context proves one step on its twin instead of 0.25 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "BUDGET_S", 0.0)
        patch.setattr(preflight, "_try", lambda *_: (preflight.Verdict(ok=True), True))
        yield


@pytest.fixture
def models_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the trial and of the proof: both are made as in the application."""
    monkeypatch.setattr(self_check, "BUDGET_S", BUDGET_S)
    monkeypatch.setattr(preflight, "_try", TRIAL)


@pytest.fixture(scope="module", autouse=True)
def old_is_frozen() -> None:
    """What the modules before left is looked at once, and by no collection of this module."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_stray_threads() -> Iterator[None]:
    """A test that starts a thread also ends it. Threads that higher-scoped fixtures own were there before."""
    before = set(threading.enumerate())
    yield
    stray = _new_threads(before)
    if stray:
        gc.collect()  # an owner that is garbage may end its thread when it goes
    for thread in stray:
        thread.join(timeout=5)  # a thread that has been told to end may need a moment
    alive = [thread.name for thread in _new_threads(before)]
    assert not alive, f"threads left running: {alive}"


_LASTING = ("kvdesk-children", "kvdesk --formulas", "kvdesk --llama-class")


def _new_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Python threads that run now and did not then; a QThread that once ran Python code leaves only a placeholder, and
    `_LASTING` stay as long as the process.
    """
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before and not isinstance(thread, threading._DummyThread) and thread.name not in _LASTING
    ]
