"""Between window, worker and database: events of the worker go to the conversations and to the store of the session.

Owns the model that is open and the pace of events. `commands` carries out what a user asks for. Knows no widgets'
insides, no llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from kvdesk import paths
from kvdesk.app.chat.attaching import Attaching
from kvdesk.app.chat.branches import Branches
from kvdesk.app.chat.chats import Chats
from kvdesk.app.chat.deletions import Deletions
from kvdesk.app.chat.exporting import ChatExport
from kvdesk.app.chat.importing import ChatImport
from kvdesk.app.chat.search import Search
from kvdesk.app.models.servers import Servers
from kvdesk.app.report.help_desk import HelpDesk
from kvdesk.app.report.journal_saver import JournalSaver
from kvdesk.app.silence import Silence
from kvdesk.app.startup import LoadMarker
from kvdesk.app.tools import Tools
from kvdesk.app.windows.state_windows import StateWindows
from kvdesk.app.worker import Worker
from kvdesk.errors import UserError, guarded
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import CacheView, ContextReady, OperationDone, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import (
    BackendReady,
    EngineDied,
    LoadModel,
    MessagesEvicted,
    ModelLoaded,
    ModelLoading,
    TurnEnded,
)
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import Endpoint, LocalFile, ModelSource
from kvdesk.session.changed import OFTEN
from kvdesk.settings import ContextSettings, KnownServer, Settings
from kvdesk.store.server_keys import ServerKeys
from kvdesk.store.writer import StoreWriter, Unsaved
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.timers import once

if TYPE_CHECKING:
    from kvdesk.app.first_start import FirstStart
    from kvdesk.app.models.model_downloads import ModelDownloads
    from kvdesk.app.models.model_library import ModelLibrary
    from kvdesk.app.slices.controllers import SliceController

FRAME_MS = 16


class Controller(QObject):
    """Wires one window to one worker and one store. `start` shows what is stored and loads the model; `furnish` makes
    what the first frame does not show.
    """

    slices: dict[str, SliceController]
    """By the names of the window's slices."""
    models: ModelLibrary
    downloads: ModelDownloads
    first: FirstStart
    event_applied = Signal(object)
    """An event that has been applied and shown: what the guided tour waits for and reports."""

    def __init__(
        self, window: MainWindow, worker: Worker, store: StoreWriter, marker: LoadMarker, keys: ServerKeys | None = None
    ) -> None:
        super().__init__(window)
        self.window, self.worker, self.host, self.store = window, worker, worker.host, window.store
        self._database = store
        self._marker = marker
        self._settings = settings = window.store.settings
        keys = keys or ServerKeys(paths.keys_file())
        self.tools = Tools(window, keys, self.host.submit)
        self.chats = Chats(self, window.store, self.host, store, self.tools)
        self.conversations = self.chats.service
        self.tools.converse(self.conversations)
        self.deletions = Deletions(self, window.store, self.chats)
        self.branches = Branches(window, self.chats)
        self.search = Search(window, store, self.chats)
        self.exports = ChatExport(self, window.store, self.chats, store)
        self.imports = ChatImport(window, self.chats, store)
        self.states = StateWindows(window, lambda: settings.current)
        self.attaching = Attaching(window, self.conversations)
        self.saver = JournalSaver(self, window.store.notify)
        self.help = HelpDesk(window, self.chats)
        self._silence = Silence(self, window.store, self.host)
        self.servers = Servers(window, keys, settings, self.open_server)
        self._listeners: tuple[Callable[[Event], None], ...] = ()  # until it is furnished
        self._often: tuple[Callable[[Event], None], ...] = ()  # those of them that get the events of every token
        self.engine_ended = True  # False after `shut_down` where the engine hangs: only `os._exit` ends its thread
        self._wanted: ContextSettings | None = None  # of the context that is being made
        self._replaced: ContextSettings | None = None  # before it: they count again if it could not be made
        self._opening: LoadModel | None = None  # with the context of this model, which counts once it is open
        self._model: Path | None = None  # what was opened last
        self._has_context = self._watched = False
        self._closed = False
        self._unsaved = self.lost = Unsaved()  # what the disk keeps out now; what it had kept out at the end
        self._frame = once(self, FRAME_MS, self._on_frame)
        worker.events_ready.connect(self._on_events_ready)
        window.closing.connect(self.shut_down)
        self.destroyed.connect(settings.listen(self._on_settings_changed))

    # --- public -------------------------------------------------------------------------------------------------------

    def start(self, model: Path | None, server: KnownServer | None = None) -> None:
        """Show the stored conversations; the worker connects to `server`, or loads `model`, as soon as it runs."""
        self.store.show_embedded(installed=self._marker.embedded is not None)
        self.chats.start()
        self.imports.remove_leftover()
        self._send_policy()
        if server is not None:
            self.open_server(server)
        elif model is not None:
            self._load(model)

    def furnish(self) -> None:
        """Make the controllers of slices and of models, once: after the first frame, before the engine says anything. A
        file that the system opens, or the end, may come sooner.
        """
        if self._listeners:
            return
        from kvdesk.app.first_start import FirstStart
        from kvdesk.app.models.model_downloads import ModelDownloads
        from kvdesk.app.models.model_library import ModelLibrary
        from kvdesk.app.slices.controllers import controllers

        window, embedded = self.window, self._marker.embedded
        self.slices = controllers(window, self.host, embedded)
        self.models = ModelLibrary(window, self._settings, embedded)
        self.downloads = ModelDownloads(window, self._settings)
        self.downloads.finished.connect(self.models.refresh)
        self.first = FirstStart(window, self.chats, self.models, self.downloads, embedded)
        self._often = tuple(one.apply for one in self.slices.values())
        self._listeners = (
            self.help.apply,
            self._apply,
            *self._often,
            self.models.apply,
            self.first.apply,
            self.servers.apply,
            self.tools.prices.apply,
        )
        window.rooms.when_made("models", self.downloads.show_in)

    def open_server(self, server: KnownServer) -> None:
        """Ask the worker to connect to a server. The model that is open stays until it answers. Nothing once the engine
        has died.
        """
        if self.store.dead:
            return
        self.conversations.queued.wait_for_model()
        source = Endpoint(server.url, server.model, server.name)
        self.store.apply(ModelLoading(source, 0.0))
        self.host.submit(LoadModel(source, self.settings.context))

    def open_model(self, path: Path, context: ContextSettings | None = None) -> None:
        """Load another model. `context`: its own; None: as the settings say."""
        self.furnish()
        self.window.commands.lab.cancel(tr("The experiment was ended because another model was opened."))
        self._load(path, context)

    def _load(self, path: Path, context: ContextSettings | None = None) -> None:
        """Ask the worker to load a model; an unfinished load leaves a mark that the next start heeds."""
        if isinstance(self.store.loading, LocalFile):
            self.host.cancel()  # the person has changed their mind
        self._model = path
        command = LoadModel(LocalFile(path), context or self.settings.context)
        self._opening = command if context is not None else None
        self._marker.set(path)
        self.store.apply(ModelLoading(LocalFile(path), 0.0))  # at once: the back end may only just be starting
        self.conversations.queued.wait_for_model()
        self.host.submit(command)

    def shut_down(self) -> None:
        """Stop what runs, close engine and store. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.chats.keep_shown()
        self.attaching.close()
        self.furnish()
        self.conversations.queued.close()
        self._silence.close()
        for ended in (
            self.tools.close,
            *(one.close for one in self.slices.values()),
            self.deletions.finish,
            self.downloads.close,
            self.models.close,
            self.servers.close,
            self.imports.close,
            self.exports.close,
        ):
            guarded(ended)
        interrupt = partial(self.conversations.turns.interrupt, tr("kvdesk was closed."))
        try:  # `_on_frame`: what the engine said while it closed
            for step in (self._end_worker, self._on_frame, interrupt, self.saver.wait, self.help.close):
                guarded(step)
        finally:
            self.lost = self._database.close()

    def _end_worker(self) -> None:
        """A load that hangs leaves its mark, so that the next start does not repeat it."""
        self.engine_ended = self.worker.shut_down()
        if self.engine_ended:
            self._marker.clear()

    def show_unsaved(self, unsaved: Unsaved) -> None:
        """The rows that could not be written have changed."""
        self._unsaved = unsaved
        self.store.show_unsaved(unsaved.sentence)

    @property
    def settings(self) -> Settings:
        """The settings now."""
        return self._settings.current

    @property
    def selected(self) -> ConversationId | None:
        """The conversation that is shown."""
        return self.store.selected

    # --- commands -----------------------------------------------------------------------------------------------------

    def save_unsaved(self, path: Path) -> None:
        """On this thread: the file is another way out while the disk takes nothing."""
        try:
            self.exports.save_known(path, self._unsaved.conversations)
            self.store.notify(tr("A copy was saved to {file}.").format(file=path), "good", str(path))
        except UserError as error:
            self.store.notify(str(error), "danger")

    def rebuild(self, context: ContextSettings, keep: str) -> None:
        """Another context is kept only when it could be made: a setting that cannot work must not outlive a restart.
        Once the engine has died it counts from the next start.
        """
        if self._has_context and not self.store.dead:
            self._wanted, self._replaced = context, self.settings.context
            self.store.begin_rebuild()
            self.host.submit(RebuildContext(context, keep))  # type: ignore[arg-type]
            return
        self._settings.change(context=context)
        if self._model is not None and not self.store.dead:
            self.open_model(self._model)

    def open_known_model(self, path: Path) -> None:
        """With the context that it ran with last; the conversations are shown. Nothing once the engine has died."""
        if self.store.dead:
            return
        self.furnish()
        self.window.rooms.show_chats()
        model, loading = self.store.model, self.store.loading
        if model is not None and loading is None and model.source == LocalFile(path) and self._has_context:
            return  # it is open, and stays so with its cells
        known = self.models.used(path)
        is_own = self._has_context or path != self._model  # else they were changed since it could not be opened
        self.open_model(path, known.context if known is not None and is_own else None)

    def open_embedded(self) -> None:
        """Open the model that comes with kvdesk."""
        if self._marker.embedded is not None:
            self.open_known_model(self._marker.embedded)

    def watch(self, watched: bool) -> None:
        """Whether the cache is looked at."""
        self._watched = watched  # views may come all the same, for others who watch
        self.host.submit(Watch(watched))

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "cache" in changed:
            self._send_policy()

    # --- events of the worker -----------------------------------------------------------------------------------------

    def _on_events_ready(self) -> None:
        if not self._frame.isActive():
            self._frame.start()

    def _on_frame(self) -> None:
        """Once a frame: take over what has come into conversations and store, then show it, event by event.

        Each step is guarded separately, so that a widget that fails costs neither a token nor the events after it.
        """
        events = [event for event in self.worker.events.take() if self._watched or not isinstance(event, CacheView)]
        changes = [self.chats.take(event) for event in events]
        self.conversations.turns.tell_growth()
        for event, changed in zip(events, changes, strict=True):
            for change in changed:
                guarded(partial(self.chats.show, change))
            for apply in (*(self._often if type(event) in OFTEN else self._listeners), self.store.apply):
                guarded(partial(apply, event))
            self.event_applied.emit(event)
        guarded(self.conversations.queued.send_due)
        if not self._closed and any(map(_fills, events)):
            guarded(self.chats.measure)

    def _apply(self, event: Event) -> None:
        """Settings, the mark of an unfinished load, and what the window must know beside the event itself."""
        match event:
            case ContextReady():
                self._has_context = True
                wanted, self._wanted = event.back_to or self._wanted, None
                if wanted is not None:
                    self._settings.change(context=wanted)
            case ModelLoaded():
                self._marker.clear()
                if self._opening is not None and self._opening.source == event.model.source:
                    self._settings.change(context=self._opening.context)
                self._opening = None
                self._remember(event.model.source)
                if event.remark:
                    self.store.complain(event.remark)
            case CommandFailed():
                self._on_failed(event.command)
            case EngineDied():
                self._marker.clear()
            case BackendReady():  # another engine than the one that was reported before, or one that has more features
                if Feature.CACHE_POLICY in event.features:
                    self._send_policy()
                if Feature.CACHE_VIEW in event.features:
                    self.host.submit(Watch(self._watched))

    def _on_failed(self, command: Command) -> None:
        if isinstance(command, LoadModel):
            if self.store.loading in (None, command.source):  # else another one is being loaded instead
                self._marker.clear()
        elif isinstance(command, RebuildContext):
            self._wanted = None
            if self._replaced is not None:  # the context from before has been told as ready meanwhile
                self._settings.change(context=self._replaced)

    def _remember(self, source: ModelSource) -> None:
        """The next start opens this model; "" is the embedded one, wherever it is then."""
        if isinstance(source, Endpoint):
            self._has_context, self._model = False, None
            self._settings.change(server=source.url)
        else:
            embedded = str(source.path) == str(self._marker.embedded)
            self._settings.change(server="", model="" if embedded else str(source.path))

    def _send_policy(self) -> None:
        """Send the cache policy, and the folder for saved conversations."""
        self.host.submit(UsePolicy(self.settings.cache, paths.states_dir()))


def _fills(event: Event) -> bool:
    """Whether a context may be fuller or emptier after it, or cells of a conversation gone."""
    if isinstance(event, OperationDone):
        return event.changes_use
    return isinstance(event, TurnEnded | ContextReady | MessagesEvicted)
