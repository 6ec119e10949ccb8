"""What every test can count on: no display, no data of the person who runs it, no threads left behind."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

# Before anything imports Qt or the engine.
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["KVDESK_LANGUAGE"] = "en"  # whatever the system speaks
os.environ["GGML_NO_BACKTRACE"] = "1"  # an aborting child must not wait for a debugger
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never that of who runs the tests

import hypothesis
import psutil
import pytest

# Settings made by tests have one thread: tests run side by side, and threads of llama.cpp that wait for each other
# lose tenfold where a core is taken.
psutil.cpu_count = lambda logical=True: 1  # noqa: ARG005 - the name is psutil's

hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=False)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


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
