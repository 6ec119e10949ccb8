"""Faults put into the binding: the loop dies, memory runs out, llama.cpp hangs. The window lives, says so, goes on."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app import silence, worker
from kvdesk.backends.local.llama.binding import lib
from kvdesk.cache.compaction import Layout
from kvdesk.host import host
from kvdesk.protocol.cache import AuditCache, ContextReady, OperationDone
from kvdesk.protocol.chat import EngineDied, EngineRestarted, TurnEnded
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.operations import Compact, Operate, RemoveRange, SwapIn, SwapOut
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.store.settings_file import save_settings
from tests.app.whole import App
from tests.stress.conftest import Row, forms
from tests.stress.driven import Driven, Kept, make_home

SETTINGS = Settings(
    context=ContextSettings(n_ctx=512, n_threads=1, n_threads_batch=1),
    sampling=Sampling(temperature=0.0, max_tokens=24),
)
STUCK_MS = 500
"""A window that does nothing for so long does not live."""
ERRORS: tuple[type[Exception], ...] = (RuntimeError, MemoryError, OSError, ZeroDivisionError)
STATE_CALLS = ("llama_state_seq_get_data", "llama_state_get_data", "llama_state_set_data", "llama_state_seq_set_data")


class Faulty:
    """Stands for a function of llama.cpp: call number `at` does `fault` first. Calls before and after are real."""

    def __init__(self, real: Callable[..., Any], at: int, fault: Callable[[], object]) -> None:
        self._real, self._left, self._fault = real, at, fault
        self.happened = False

    def __call__(self, *args: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.happened = True
            self._fault()
        return self._real(*args)


def raises(error: type[Exception]) -> Callable[[], None]:
    def fault() -> None:
        raise error("injected")

    return fault


@pytest.fixture
def app(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setattr(host, "WITHIN_S", 0.0)  # however often it dies
    save_settings(SETTINGS, paths.settings_file())
    app = App(qtbot)
    yield app
    app.parts.window.close()


def n_of(app: App, kind: type[Event]) -> int:
    return sum(isinstance(event, kind) for event in app.events)


def start_answer(app: App, text: str) -> None:
    app.parts.window.commands.new_chat()
    where = app.parts.controller.selected
    assert where is not None
    app.parts.window.commands.conversations.send(where, text)


# --- the loop dies --------------------------------------------------------------------------------------------------


@forms(2, 40)
def test_died(row: Row, app: App, n: int) -> None:
    for name, numbers in row.rounds("the engine's loop dies", n):
        error, at = numbers.choice(ERRORS), numbers.randint(1, 20)
        counts = n_of(app, EngineRestarted), n_of(app, ContextReady), n_of(app, TurnEnded)
        with pytest.MonkeyPatch.context() as patch:
            faulty = Faulty(lib.llama_decode, at, raises(error))
            patch.setattr(lib, "llama_decode", faulty)
            start_answer(app, "Where do puffins live, and what do they eat in winter?")
            app.wait(lambda counts=counts: n_of(app, TurnEnded) > counts[2])  # type: ignore[misc]
        what = f"{name}, {error.__name__} in decode {at}"
        ended = app.last(TurnEnded)
        assert isinstance(ended, TurnEnded)
        assert faulty.happened, f"{what}: nothing happened"
        assert ended.state in ("interrupted", "failed"), f"{what}: {ended}"
        assert ended.note, what
        if ended.state == "interrupted":
            app.wait(lambda counts=counts: n_of(app, ContextReady) > counts[1])  # type: ignore[misc]
            assert n_of(app, EngineRestarted) == counts[0] + 1, what
            assert "being started again" in app.parts.window.chat.banner.sentence, what
        assert app.ask("Hello").state == "complete", what
    assert n_of(app, EngineDied) == 0


# --- no memory for a state ------------------------------------------------------------------------------------------


@forms(2, 20)
def test_no_memory(row: Row, app: App, n: int) -> None:
    """For saving or restoring one: the command fails with a sentence, and the map stays true."""
    for name, numbers in row.rounds("no memory for a state", n):
        call = numbers.choice(STATE_CALLS)
        app.parts.window.commands.new_chat()
        app.ask("Name a bird.")
        where = app.parts.controller.selected
        assert where is not None
        with pytest.MonkeyPatch.context() as patch:
            faulty = Faulty(getattr(lib, call), 1, raises(MemoryError))
            patch.setattr(lib, call, faulty)
            hole = RemoveRange(-1, 4, 6)  # else there would be nothing to compact
            for operation in (hole, Compact(Layout.BY_CONVERSATION), SwapOut(where), SwapIn(where)):
                n_done = n_of(app, OperationDone) + n_of(app, CommandFailed)
                app.parts.window.commands.submit(Operate(operation))
                app.wait(lambda n_done=n_done: n_of(app, OperationDone) + n_of(app, CommandFailed) > n_done)  # type: ignore[misc]
            app.parts.window.commands.submit(AuditCache())
            assert app.ask("And another.").state == "complete", f"{name}, {call}"
        assert faulty.happened, f"{name}: {call} was not called"
        assert app.used() > 0, f"{name}, {call}"  # and verified
    assert n_of(app, EngineDied) == 0


# --- llama.cpp hangs ------------------------------------------------------------------------------------------------


class Watched:
    """What the window says, and how long it did nothing, while llama.cpp hangs in the middle of an answer."""

    def __init__(self, app: App) -> None:
        self._app, self._beats, self._said = app, list[float](), set[str]()
        self.said_so = threading.Event()
        self._clock = QTimer(app.parts.window, interval=20)
        self._clock.timeout.connect(self._look)

    @property
    def longest_ms(self) -> float:
        return 1000 * max(b - a for a, b in pairwise(self._beats))

    def _look(self) -> None:
        self._beats.append(time.monotonic())
        self._said.add(text := self._app.parts.window.activity.text)
        if "has not responded" in text:
            self.said_so.set()

    def answer(self, qtbot: QtBot, hang: Callable[[], object]) -> None:
        """The window can be typed into meanwhile, and the answer goes on after `hang` returns."""
        app, n_ended = self._app, n_of(self._app, TurnEnded)
        with pytest.MonkeyPatch.context() as patch:
            faulty = Faulty(lib.llama_decode, 8, hang)
            patch.setattr(lib, "llama_decode", faulty)
            start_answer(app, "Where do puffins live, and what do they eat in winter?")
            app.wait(lambda: faulty.happened)
            self._clock.start()
            qtbot.keyClicks(app.parts.window.chat.composer.edit, "typed meanwhile")
            qtbot.waitUntil(lambda: n_of(app, TurnEnded) > n_ended, timeout=120_000)
        ended = app.last(TurnEnded)
        assert isinstance(ended, TurnEnded)
        assert ended.state == "complete", ended
        assert self.said_so.is_set()
        app.wait(lambda: "The engine is responding again." in self._said)
        self._clock.stop()
        assert app.parts.window.chat.composer.text == "typed meanwhile"
        app.parts.window.chat.composer.set_text("")
        assert app.ask("Hello").state == "complete"


def test_hung_short(app: App, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs until the window has said so, however slow this machine is. How long the window does nothing meanwhile
    is judged by the long form, since a busy machine stops it too.
    """
    monkeypatch.setattr(silence, "SILENT_S", 0.4)
    app.parts.controller._silence._clock.setInterval(50)
    watched = Watched(app)
    watched.answer(qtbot, lambda: watched.said_so.wait(60))


@pytest.mark.stress
@pytest.mark.timeout(7200)
def test_hung(row: Row, app: App, qtbot: QtBot) -> None:
    watched = Watched(app)
    watched.answer(qtbot, lambda: time.sleep(60))
    row.say(f"hang of 60 s: the window's longest pause {watched.longest_ms:.0f} ms")
    assert watched.longest_ms < STUCK_MS


@forms(1, 10)
def test_closed_while_it_hangs(row: Row, tmp_path: Path, n: int) -> None:
    home, kept = tmp_path / "home", Kept()
    make_home(home)
    for name, numbers in row.rounds("closed while the engine hangs", n):
        run = Driven(home, name, "--hang", str(numbers.randint(1, 60)))
        assert run.wait_until(lambda run=run: bool(run.told("hangs"))), f"{name}: {run.said()}"  # type: ignore[misc]
        run.live_for(numbers.uniform(0.3, 1.0))
        run.process.terminate()
        code = run.end(worker.CLOSE_S + 10)
        assert code == 0, f"{name}: exit code {code}: {run.said()}"
        assert "ended without it" in run.said(), f"{name}: {run.said()}"
        assert not (problems := kept.check(home, run)), f"{name}: {problems}"
