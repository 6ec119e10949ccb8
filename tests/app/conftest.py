"""A window and a controller on a scripted worker, with a real store in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from kvdesk.app.controller import Controller
from kvdesk.app.startup import LoadMarker
from kvdesk.chat import MessageId
from kvdesk.protocol.chat import Generate
from kvdesk.protocol.messages import Command, Event
from kvdesk.settings import Settings
from kvdesk.store.writer import StoreWriter
from kvdesk.ui.shell.main_window import MainWindow
from tests.garbage import garbage_between_tests  # noqa: F401 - a fixture


class ScriptedWorker(QObject):
    """Takes commands and gives the events a test puts in: the worker's whole face, without an engine."""

    events_ready = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[Command] = []
        self.stopped: list[MessageId] = []
        self.cancelled = 0
        self.running = self.ends = True
        self.silent_s = 0.0
        self._events: list[Event] = []

    def send(self, command: Command) -> None:
        self.commands.append(command)

    def stop(self, answer: MessageId) -> None:
        self.stopped.append(answer)

    def cancel(self) -> None:
        self.cancelled += 1

    def take_events(self) -> list[Event]:
        taken, self._events = self._events, []
        return taken

    def shut_down(self) -> bool:
        self.running = False
        return self.ends

    def give(self, *events: Event) -> None:
        self._events += events
        self.events_ready.emit()

    @property
    def asked(self) -> list[Generate]:
        return [c for c in self.commands if isinstance(c, Generate)]


class _UnsavedRelay(QObject):
    """Brings what the store's thread says to the window's."""

    changed = Signal(object)


@dataclass
class Rig:
    """Everything a controller test touches."""

    worker: ScriptedWorker
    window: MainWindow
    controller: Controller
    store: StoreWriter
    marker: LoadMarker
    errors: list[str] = field(default_factory=list)


@pytest.fixture
def make_rig(qtbot: QtBot, tmp_path: Path, qapp: object) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(model: Path | None = None, settings: Settings | None = None) -> Rig:
        errors: list[str] = []
        unsaved = _UnsavedRelay()
        store = StoreWriter(tmp_path / "chats.sqlite3", lambda error: errors.append(str(error)), unsaved.changed.emit)
        store.opened.result()
        window = MainWindow(qapp)  # type: ignore[arg-type]
        qtbot.addWidget(window)
        worker = ScriptedWorker()
        marker = LoadMarker(tmp_path / "loading.txt", None)
        controller = Controller(window, worker, store, settings or Settings(), marker)  # type: ignore[arg-type]
        unsaved.changed.connect(controller.show_unsaved)
        unsaved.setParent(controller)
        controller.start(model)
        made.append(Rig(worker, window, controller, store, marker, errors))
        return made[-1]

    yield make
    for rig in made:
        rig.controller.shut_down()


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()
