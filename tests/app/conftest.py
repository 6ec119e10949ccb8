"""A window and a controller on a scripted worker, with a real store in a folder of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.commands import AppCommands
from kvdesk.app.controller import Controller
from kvdesk.app.startup import LoadMarker
from kvdesk.backends.base import Emit
from kvdesk.host.host import Host
from kvdesk.message import MessageId
from kvdesk.protocol.chat import Generate, ModelLoaded
from kvdesk.protocol.features import OF_ENGINE, Feature
from kvdesk.protocol.messages import Command, Event, feature_of
from kvdesk.session import Store
from kvdesk.settings import Settings
from kvdesk.store.settings_file import save_changes
from kvdesk.store.writer import StoreWriter
from kvdesk.ui.shell.main_window import MainWindow
from tests.app.whole import close_unasked
from tests.backends.scripted import ScriptedBackend
from tests.garbage import garbage_between_tests, unstyled  # noqa: F401 - fixtures
from tests.ui.pauses import short_pauses  # noqa: F401 - the fixture
from tests.ui.samples import MODEL

LOCAL, CHAT_ONLY = OF_ENGINE, frozenset({Feature.CHAT})
over_both = pytest.mark.parametrize(
    "features",
    [pytest.param(LOCAL, id="local"), pytest.param(CHAT_ONLY, id="chat only", marks=pytest.mark.matrix)],
    indirect=True,
)
"""Runs a test over a back end that has everything, and in the matrix over one that has no cells."""


class ByHand(ScriptedBackend):
    """Says nothing by itself: a test gives its events. With `Feature.CHAT` alone it takes commands of chat alone."""

    def __init__(self, emit: Emit, features: frozenset[Feature]) -> None:
        super().__init__(emit)
        self.emit, self.features = emit, features
        self.stopped: list[MessageId] = []
        self.cancelled = 0

    def handle(self, command: Command, at_s: float | None = None) -> None:  # noqa: ARG002 - as any back end
        assert feature_of(command) in self.features
        self.handled.append(command)

    def request_stop(self, answer: MessageId) -> None:
        self.stopped.append(answer)

    def request_cancel(self) -> None:
        self.cancelled += 1


class _SteppingHost(Host):
    """Carries out each command at once, on the thread that submits it."""

    silent_s = 0.0

    def submit(self, command: Command, age_s: float = 0.0) -> None:
        super().submit(command, age_s)
        self.run_until_idle()


class ScriptedWorker(QObject):
    """The worker's whole face: a host, on the window's thread, with a back end that a test speaks for."""

    events_ready = Signal()

    def __init__(self, features: frozenset[Feature] = LOCAL) -> None:
        super().__init__()
        self.host = _SteppingHost(lambda emit: self._made(emit, features))
        self.events = self.host.subscribe(self.events_ready.emit)
        self.running = self.ends = True

    def _made(self, emit: Emit, features: frozenset[Feature]) -> ByHand:
        self._backend = ByHand(emit, features)
        return self._backend

    def shut_down(self) -> bool:
        self.running = False
        return self.ends

    def give(self, *events: Event) -> None:
        for event in events:
            self._backend.emit(event)

    @property
    def commands(self) -> list[Command]:
        """Those that reached the back end."""
        return self._backend.handled

    @property
    def stopped(self) -> list[MessageId]:
        return self._backend.stopped

    @property
    def cancelled(self) -> int:
        return self._backend.cancelled

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


@pytest.fixture(autouse=True)
def no_sheet(unstyled: None) -> None:  # noqa: F811 - the fixture
    """No test here looks at sizes or colours."""


@pytest.fixture
def features(request: pytest.FixtureRequest) -> frozenset[Feature]:
    """What the back end has: everything, but in tests `over_both`."""
    return getattr(request, "param", LOCAL)


@pytest.fixture
def make_rig(qtbot: QtBot, tmp_path: Path, qapp: object, features: frozenset[Feature]) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(
        model: Path | None = None,
        settings: Settings | None = None,
        embedded: Path | None = None,
        *,
        furnished: bool = True,
    ) -> Rig:
        errors: list[str] = []
        unsaved = _UnsavedRelay()
        store = StoreWriter(tmp_path / "chats.sqlite3", lambda error: errors.append(str(error)), unsaved.changed.emit)
        store.opened.result()
        session = Store(
            settings or Settings(),
            lambda before, now: save_changes(before, now, paths.settings_file()),
            lambda error: session.complain(str(error), error.detail),
        )
        commands = AppCommands()
        window = MainWindow(qapp, session, commands)  # type: ignore[arg-type]
        qtbot.addWidget(window, before_close_func=close_unasked)
        worker = ScriptedWorker(features)
        marker = LoadMarker(tmp_path / "loading.txt", embedded)
        controller = Controller(window, worker, store, marker)  # type: ignore[arg-type]
        commands.begin(controller)
        unsaved.changed.connect(controller.show_unsaved)
        unsaved.setParent(controller)
        controller.start(model)
        if furnished:
            controller.furnish()
        made.append(Rig(worker, window, controller, store, marker, errors))
        return made[-1]

    yield make
    for rig in made:
        rig.controller.shut_down()


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()


@pytest.fixture
def ready(rig: Rig, qtbot: QtBot) -> Rig:
    """A model is open, and the window shown."""
    rig.worker.give(ModelLoaded(MODEL))
    rig.window.show()
    qtbot.waitUntil(lambda: not rig.window.chat.composer.blocked)
    return rig
