"""The back end that a model needs takes the place of the one before, and what cannot be opened costs nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kvdesk.backends.base import CLOSED, Emit
from kvdesk.backends.switch import Maker, Switch
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import Forget, UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation, DropMessages, LoadModel, ModelLoaded, TurnEnded
from kvdesk.protocol.features import OF_ENGINE, Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import Endpoint, LocalFile, ModelInfo, ModelSource
from kvdesk.settings import CachePolicy, ContextSettings
from tests.backends.heard import E, ask
from tests.backends.scripted import ScriptedBackend

FILE = LoadModel(LocalFile(Path("/models/scripted.gguf")), ContextSettings())
SERVER = LoadModel(Endpoint("http://bigbox:8080", "llama"), ContextSettings())


class Local(ScriptedBackend):
    """Has cells, or says so."""

    features = OF_ENGINE
    is_slow = False  # to open its model

    def handle(self, command: Command, at_s: float | None = None) -> None:
        if isinstance(command, UsePolicy | Watch | Forget) or (self.is_slow and isinstance(command, LoadModel)):
            self.handled.append(command)
        else:
            super().handle(command, at_s)


class Server(ScriptedBackend):
    """Loads in its own time: a test says how that ends."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self.emit = emit
        self.wake: Callable[[], None] = lambda: None
        self.dies = False
        self.closed = ""

    @property
    def busy(self) -> bool:
        return not self.closed

    @property
    def waits(self) -> bool:
        return not self._turns

    def handle(self, command: Command, at_s: float | None = None) -> None:
        if self.dies:
            raise ZeroDivisionError("injected")
        if isinstance(command, LoadModel):
            self.handled.append(command)
        else:
            super().handle(command, at_s)

    def step(self) -> None:
        if self.dies:
            raise ZeroDivisionError("injected")
        super().step()

    def loaded(self) -> None:
        self.emit(ModelLoaded(ModelInfo(SERVER.source, "llama")))

    def close(self, note: str = "") -> None:
        self.closed = note or CLOSED
        super().close(note)


class Rig:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.locals: list[Local] = []
        self.servers: list[Server] = []
        self.forgotten: list[tuple[object, ...]] = []
        self.switch = Switch(self.events.append, self._maker_of, lambda *what: self.forgotten.append(what))

    def _local(self, emit: Emit) -> Local:
        self.locals.append(Local(emit))
        return self.locals[-1]

    def _server(self, emit: Emit) -> Server:
        self.servers.append(Server(emit))
        return self.servers[-1]

    def _maker_of(self, source: ModelSource | None) -> Maker:
        if not hasattr(self, "makers"):
            self.makers = self._local, self._server
        return self.makers[isinstance(source, Endpoint)]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_nothing_is_made_before_it_is_needed_and_what_was_said_is_told_then(rig: Rig) -> None:
    policy = UsePolicy(CachePolicy(n_keep=3))
    for command in (policy, Watch(True)):
        rig.switch.handle(command)
    assert not rig.locals
    assert rig.switch.features == OF_ENGINE
    rig.switch.handle(FILE)
    assert rig.locals[0].handled == [policy, Watch(True), FILE]
    assert [type(event) for event in rig.events] == [ModelLoaded]


def test_a_file_stays_open_until_the_server_answers(rig: Rig) -> None:
    rig.switch.handle(FILE)
    command = ask("one two three")
    rig.switch.handle(command)
    rig.switch.handle(SERVER)
    rig.switch.step()
    assert rig.switch.features == OF_ENGINE
    rig.servers[0].loaded()
    assert rig.switch.features == {Feature.CHAT}
    (ended,) = rig.of(TurnEnded)
    assert (ended.answer, ended.note) == (command.answer, "Another model was opened.")
    assert [type(event) for event in rig.events[-2:]] == [TurnEnded, ModelLoaded]
    later = ask("one two three")
    rig.switch.handle(later)
    assert rig.servers[0].handled == [SERVER, later]


def test_a_server_that_is_opened_first_gets_the_commands_it_has_features_for(rig: Rig) -> None:
    """The host asks for the features, here as everywhere: it is told those of the one that gets the commands."""
    rig.switch.handle(Watch(True))
    rig.switch.handle(SERVER)
    assert rig.switch.features == {Feature.CHAT}
    assert rig.servers[0].handled == [SERVER]


@pytest.mark.parametrize("how", ["says so", "dies"])
def test_a_server_that_cannot_be_reached_costs_nothing(rig: Rig, how: str) -> None:
    rig.switch.handle(FILE)
    rig.switch.handle(SERVER)
    if how == "dies":
        rig.servers[0].dies = True
    else:
        rig.servers[0].emit(CommandFailed(SERVER, "No.", stopped=True))
    rig.switch.step()
    (failed,) = rig.of(CommandFailed)
    said = ("No.", True) if how == "says so" else ("injected", False)
    assert (failed.command, failed.sentence, failed.stopped) == (SERVER, *said)
    assert not rig.switch.busy
    command = ask("one two three")
    rig.switch.handle(command)
    while rig.switch.busy:
        rig.switch.step()
    assert rig.locals[0].handled == [FILE, command]
    assert rig.of(TurnEnded)


def test_another_model_takes_the_place_of_one_that_is_still_being_opened(rig: Rig) -> None:
    rig.switch.handle(SERVER)
    rig.switch.handle(FILE)
    assert rig.servers[0].closed
    (failed,) = rig.of(CommandFailed)
    assert failed.sentence == "Another model was opened."
    assert rig.switch.features == OF_ENGINE


def test_it_waits_only_where_all_wait(rig: Rig) -> None:
    woken: list[int] = []
    rig.switch.handle(SERVER)
    rig.switch.wake = lambda: woken.append(1)
    rig.servers[0].wake()
    assert woken == [1]
    assert rig.switch.busy
    assert rig.switch.waits
    rig.switch.handle(FILE)
    rig.switch.handle(SERVER)
    rig.switch.handle(ask("one two three"))  # the file's engine computes, and the server is waited for
    assert not rig.switch.waits


def test_after_a_death_all_that_is_needed_is_asked_of_the_next_one(rig: Rig) -> None:
    policy = UsePolicy(CachePolicy(n_keep=3))
    for command in (policy, Watch(True), FILE):
        rig.switch.handle(command)
    assert rig.switch.give_up("It died.") == (policy, Watch(True), FILE)


def test_closing_closes_both(rig: Rig) -> None:
    rig.switch.handle(FILE)
    command = ask("one two three")
    rig.switch.handle(command)
    rig.switch.handle(SERVER)
    rig.switch.close()
    assert rig.servers[0].closed == CLOSED
    (ended,) = rig.of(TurnEnded)
    assert ended.note == CLOSED


CHAT, FOLDER = ConversationId("one"), Path("/home/states")
DELETED: tuple[Command, ...] = (CloseConversation(CHAT), DropMessages(CHAT, (MessageId("q"),)))
FORGOTTEN = [(FOLDER, CHAT, None), (FOLDER, CHAT, ("q",))]
STATES = UsePolicy(CachePolicy(), FOLDER)


def delete(rig: Rig) -> None:
    for command in DELETED:
        rig.switch.handle(command)


def test_saved_states_of_what_is_deleted_leave_while_a_server_is_connected(rig: Rig) -> None:
    rig.switch.handle(STATES)
    rig.switch.handle(SERVER)
    rig.servers[0].loaded()
    delete(rig)
    assert rig.servers[0].handled == [SERVER, *DELETED], "its answers end"
    assert rig.forgotten == FORGOTTEN


def test_saved_states_of_what_is_deleted_leave_before_a_model_is_opened(rig: Rig) -> None:
    rig.switch.handle(STATES)
    delete(rig)
    assert rig.forgotten == FORGOTTEN
    assert not rig.locals


def test_an_engine_that_has_the_folder_open_removes_them_itself(rig: Rig) -> None:
    rig.switch.handle(STATES)
    rig.switch.handle(FILE)
    delete(rig)
    rig.switch.handle(SERVER)
    delete(rig)
    assert rig.locals[0].handled == [STATES, FILE, *DELETED, *DELETED]
    assert rig.forgotten == []


def test_an_engine_that_opens_its_model_beside_a_server_hears_of_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have read the folder already, or read it later: two at once would write it."""
    monkeypatch.setattr(Local, "is_slow", True)
    rig.switch.handle(STATES)
    rig.switch.handle(SERVER)
    rig.servers[0].loaded()
    rig.switch.handle(FILE)
    delete(rig)
    assert rig.locals[0].handled == [STATES, FILE, *DELETED]
    assert rig.servers[0].handled == [SERVER, *DELETED]
    assert rig.forgotten == []


@pytest.mark.parametrize("beside", [None, FILE, SERVER], ids=["alone", "beside a file", "beside a server"])
def test_one_that_dies_of_a_deletion_before_it_has_a_model_costs_nothing(rig: Rig, beside: LoadModel | None) -> None:
    rig.switch.handle(STATES)
    if beside is not None:
        rig.switch.handle(beside)
    if beside is SERVER:
        rig.servers[0].loaded()
        rig.makers = rig._local, partial(rig._server)  # another connection
    rig.switch.handle(SERVER)
    rig.servers[-1].dies = True
    delete(rig)
    (failed,) = rig.of(CommandFailed)
    assert (failed.command, failed.sentence) == (SERVER, "injected")
    assert rig.forgotten == ([] if beside is FILE else FORGOTTEN)


def test_states_that_are_in_memory_alone_are_in_no_folder(rig: Rig) -> None:
    rig.switch.handle(UsePolicy(CachePolicy()))
    delete(rig)
    assert rig.forgotten == []
