"""Between window, worker and store: owns the conversations as they are now. Knows no widgets' insides, no llama.cpp.

Intents of the window become commands to the worker and rows in the store; events of the worker become changes of
messages and what the window shows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from kvdesk import paths
from kvdesk.app.startup import LoadMarker
from kvdesk.chat import (
    Conversation,
    ConversationId,
    Message,
    MessageId,
    Role,
    history,
    new_conversation_id,
    new_message_id,
)
from kvdesk.errors import KvdeskError
from kvdesk.messages import (
    AuditCache,
    CloseConversation,
    CommandFailed,
    ContextReady,
    EngineDied,
    Event,
    Forget,
    Generate,
    LoadModel,
    ModelLoaded,
    RebuildContext,
    SaveReport,
    TextDelta,
    TurnEnded,
    Watch,
)
from kvdesk.settings import Settings
from kvdesk.store.settings_file import save_settings
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from kvdesk.ui.main_window import MainWindow
from kvdesk.ui.palette import N_COLOURS
from kvdesk.worker.worker import Worker

FRAME_MS = 16
TITLE_LENGTH = 48


@dataclass(slots=True)
class _Running:
    """An answer that is being generated."""

    message: Message
    replaces: Message | None = None  # the answer that was shown before, when this is a second one to the same question
    parts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def now(self) -> Message:
        return replace(self.message, text="".join(self.parts), tokens=tuple(self.tokens))


class Controller(QObject):
    """Wires one window to one worker and one store. `start` shows what is stored and loads the model."""

    event_applied = Signal(object)
    """An event that has been applied and shown: what the guided tour waits for and reports."""
    _messages_read = Signal(str, object)
    _search_done = Signal(str, object)

    def __init__(
        self, window: MainWindow, worker: Worker, store: StoreWriter, settings: Settings, marker: LoadMarker
    ) -> None:
        super().__init__(window)
        self._window = window
        self._worker = worker
        self._store = store
        self._marker = marker
        self.settings = settings
        self._conversations: dict[ConversationId, Conversation] = {}
        self._messages: dict[ConversationId, list[Message]] = {}
        self._running: dict[MessageId, _Running] = {}
        self._unsent: dict[ConversationId, str] = {}  # sent before the conversation was read
        self._wanted: Settings | None = None  # settings whose context is being made
        self._model: Path | None = None  # what was opened last
        self._has_context = False
        self._selected: ConversationId | None = None
        self._closed = False
        self._frame = QTimer(self, singleShot=True, interval=FRAME_MS)
        self._frame.timeout.connect(self._on_frame)
        self._messages_read.connect(self._on_messages_read)
        self._search_done.connect(self._on_search_done)
        worker.events_ready.connect(self._on_events_ready)
        window.message_sent.connect(self._on_message_sent)
        window.stop_requested.connect(self._on_stop_requested)
        window.new_chat_requested.connect(self._on_new_chat_requested)
        window.conversation_selected.connect(self._on_conversation_selected)
        window.conversation_renamed.connect(self._on_conversation_renamed)
        window.conversation_deleted.connect(self._on_conversation_deleted)
        window.search_requested.connect(self._on_search_requested)
        window.forget_requested.connect(self._on_forget_requested)
        window.rebuild_requested.connect(self._on_rebuild_requested)
        window.audit_requested.connect(self._on_audit_requested)
        window.report_requested.connect(self._on_report_requested)
        window.model_open_requested.connect(self._on_model_open_requested)
        window.regenerate_requested.connect(self._on_regenerate_requested)
        window.settings_changed.connect(self._on_settings_changed)
        window.inspector_watched.connect(self._on_inspector_watched)
        window.closing.connect(self.shut_down)

    # --- public -------------------------------------------------------------------------------------------------------

    def start(self, model: Path | None) -> None:
        """Show the stored conversations, start the worker and load `model`."""
        self._window.set_settings(self.settings)
        self._conversations = {c.id: c for c in self._store.ask(Store.conversations).result()}
        if self._conversations:
            self._select(next(iter(self._conversations)))
        else:
            self._new_chat()
        self._worker.start()
        if model is not None:
            self.open_model(model)

    def open_model(self, path: Path) -> None:
        """Ask the worker to load a model; an unfinished load leaves a mark that the next start heeds."""
        self._model = path
        self._marker.set(path)
        self._worker.send(LoadModel(path, self.settings.context))

    def send_message(self, conversation: ConversationId, text: str) -> MessageId | None:
        """Add the person's message and ask for an answer. Returns the answer's id; None while one is running."""
        if not text.strip() or self._answer_of(conversation) is not None:
            return None
        if conversation not in self._messages:
            self._unsent[conversation] = text
            return None
        now = self._conversations[conversation]
        if not self._messages.get(conversation) and not now.title:
            now = replace(now, title=_title(text))
        self._conversations[conversation] = now
        self._add(conversation, "user", text)
        return self._ask(conversation)

    @Slot()
    def shut_down(self) -> None:
        """Stop what runs, close engine and store. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._worker.shut_down()
        self._on_frame()  # what the engine said while it closed
        for running in self._running.values():
            self._store.put_message(replace(running.now(), state="interrupted", note="kvdesk was closed."))
        self._store.close()

    @property
    def selected(self) -> ConversationId | None:
        """The conversation that is shown."""
        return self._selected

    # --- intents of the window ----------------------------------------------------------------------------------------

    @Slot(str, str)
    def _on_message_sent(self, conversation: str, text: str) -> None:
        self.send_message(ConversationId(conversation), text)

    @Slot(str)
    def _on_stop_requested(self, conversation: str) -> None:
        answer = self._answer_of(ConversationId(conversation))
        if answer is not None:
            self._worker.stop(answer)

    @Slot()
    def _on_new_chat_requested(self) -> None:
        self._new_chat()

    @Slot(str)
    def _on_conversation_selected(self, conversation: str) -> None:
        if conversation in self._conversations:
            self._select(ConversationId(conversation))

    @Slot(str, str)
    def _on_conversation_renamed(self, conversation: str, title: str) -> None:
        known = self._conversations.get(ConversationId(conversation))
        if known is not None and title.strip():
            self._keep(replace(known, title=title.strip()))
            self._show_list()

    @Slot(str)
    def _on_conversation_deleted(self, conversation: str) -> None:
        gone = ConversationId(conversation)
        answer = self._answer_of(gone)
        if answer is not None:
            self._worker.stop(answer)
            del self._running[answer]
        self._worker.send(CloseConversation(gone))
        self._store.delete_conversation(gone)
        self._conversations.pop(gone, None)
        self._messages.pop(gone, None)
        if self._selected == gone:
            self._selected = None
            self._select(next(iter(self._conversations))) if self._conversations else self._new_chat()
        self._show_list()

    @Slot(str)
    def _on_search_requested(self, text: str) -> None:
        """Look through all stored texts; those of conversations that were never opened are only in the database."""
        if text.strip():
            searching = self._store.ask(lambda store: store.search(text))
            searching.add_done_callback(lambda done: self._search_done.emit(text, done))

    @Slot(str, object)
    def _on_search_done(self, text: str, done: object) -> None:
        try:
            hits = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            self._window.show_error(str(error), error.detail)
            return
        self._window.show_found(text, [hit.conversation for hit in hits])

    @Slot(str)
    def _on_forget_requested(self, conversation: str) -> None:
        self._worker.send(Forget(ConversationId(conversation)))

    @Slot()
    def _on_rebuild_requested(self) -> None:
        self._worker.send(RebuildContext(self.settings.context))

    @Slot()
    def _on_audit_requested(self) -> None:
        self._worker.send(AuditCache())

    @Slot(str)
    def _on_report_requested(self, path: str) -> None:
        self._worker.send(SaveReport(Path(path)))

    @Slot(str)
    def _on_model_open_requested(self, path: str) -> None:
        self.open_model(Path(path))

    @Slot(str)
    def _on_regenerate_requested(self, conversation: str) -> None:
        """A new answer beside the last one: both stay stored, as branches of the same question."""
        where = ConversationId(conversation)
        messages = self._messages.get(where, [])
        if self._answer_of(where) is None and messages and messages[-1].role == "assistant":
            shown = messages.pop()
            self._window.show_messages(where, tuple(messages))
            self._ask(where, replaces=shown)

    @Slot(object)
    def _on_settings_changed(self, settings: Settings) -> None:
        """Another context is kept only when it could be made: a setting that cannot work must not outlive a restart."""
        if settings.context != self.settings.context and self._has_context:
            self._wanted = settings
            self._worker.send(RebuildContext(settings.context))
            return
        self._use_settings(settings)
        if not self._has_context and self._model is not None:
            self.open_model(self._model)

    @Slot(bool)
    def _on_inspector_watched(self, watched: bool) -> None:
        self._worker.send(Watch(watched))

    # --- events of the worker -----------------------------------------------------------------------------------------

    @Slot()
    def _on_events_ready(self) -> None:
        if not self._frame.isActive():
            self._frame.start()

    @Slot()
    def _on_frame(self) -> None:
        """Once a frame: apply what has come, text of one answer joined."""
        touched: dict[MessageId, _Running] = {}  # answers that got longer
        for event in self._worker.take_events():
            if isinstance(event, TextDelta) and event.answer in self._running:
                running = touched[event.answer] = self._running[event.answer]
                running.parts.append(event.text)
                running.tokens += event.tokens
            self._apply(event)
            self._window.apply_event(event)
            self.event_applied.emit(event)
        for answer in touched.keys() & self._running.keys():
            self._store.put_message(self._running[answer].now())  # the writer keeps only the newest, 5 times a second

    def _apply(self, event: Event) -> None:
        match event:
            case TurnEnded():
                self._end_turn(event)
            case ContextReady():
                self._has_context = True
                if self._wanted is not None:
                    self._use_settings(self._wanted)
                    self._wanted = None
            case ModelLoaded():
                self._marker.clear()
                embedded = str(event.model.path) == str(self._marker.embedded)
                self.settings = replace_model(self.settings, "" if embedded else str(event.model.path))
                self._save_settings()
                if event.remark:
                    self._window.show_error(event.remark, "")
            case CommandFailed():
                if isinstance(event.command, LoadModel):
                    self._marker.clear()
                elif isinstance(event.command, RebuildContext) and self._wanted is not None:
                    self._wanted = None
                    self._window.set_settings(self.settings)
            case EngineDied():
                self._marker.clear()
                for running in list(self._running.values()):
                    self._store_message(replace(running.now(), state="interrupted", note=event.sentence))
                self._running.clear()

    def _end_turn(self, event: TurnEnded) -> None:
        running = self._running.pop(event.answer, None)
        if running is None:
            return  # its conversation was deleted meanwhile
        if running.replaces is not None and not running.parts:
            self._take_back(running.message, running.replaces)
        else:
            self._store_message(replace(running.now(), state=event.state, stats=event.stats, note=event.note))
        self._keep(replace(self._conversations[event.conversation], updated_ms=_now_ms()))
        self._show_list()

    def _take_back(self, empty: Message, shown: Message) -> None:
        """A second answer that never said anything gives way to the first."""
        self._store.put_message(replace(empty, state="stopped"))
        messages = self._messages[empty.conversation]
        messages[-1] = shown
        self._keep(replace(self._conversations[empty.conversation], leaf=shown.id))
        if self._selected == empty.conversation:
            self._window.show_messages(empty.conversation, tuple(messages))

    # --- conversations ------------------------------------------------------------------------------------------------

    def _new_chat(self) -> None:
        """Select an empty conversation; it is stored with its first message."""
        for conversation in self._conversations.values():
            if conversation.leaf is None:
                self._select(conversation.id)
                return
        colours = [c.colour for c in self._conversations.values()]
        colour = min(range(N_COLOURS), key=lambda index: (colours.count(index), index))
        now = _now_ms()
        new = Conversation(
            new_conversation_id(), "", colour, None, self.settings.system_prompt, created_ms=now, updated_ms=now
        )
        self._conversations = {new.id: new, **self._conversations}
        self._messages[new.id] = []
        self._select(new.id)

    def _select(self, conversation: ConversationId) -> None:
        self._selected = conversation
        self._show_list()
        if conversation in self._messages:
            self._window.show_messages(conversation, tuple(self._current(conversation)))
            return
        reading = self._store.ask(lambda store: store.messages(conversation))
        reading.add_done_callback(lambda done: self._messages_read.emit(conversation, done))

    @Slot(str, object)
    def _on_messages_read(self, conversation: str, done: object) -> None:
        where = ConversationId(conversation)
        try:
            messages = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            unsent = self._unsent.pop(where, "")
            self._window.show_error(f"{error} Nothing can be added to this chat.", error.detail or unsent)
            return
        self._messages.setdefault(where, list(messages))
        if self._selected == where:
            self._window.show_messages(where, tuple(self._current(where)))
        if text := self._unsent.pop(where, ""):
            self.send_message(where, text)

    def _current(self, conversation: ConversationId) -> list[Message]:
        """The messages, with the text that has come so far of those that are running."""
        return [self._running[m.id].now() if m.id in self._running else m for m in self._messages.get(conversation, [])]

    def _ask(self, conversation: ConversationId, replaces: Message | None = None) -> MessageId:
        """Ask for an answer to the conversation as it is."""
        answer = self._add(conversation, "assistant", "", streaming=True)
        self._running[answer.id] = _Running(answer, replaces)
        asked = self._messages[conversation][:-1]
        prompt = self._conversations[conversation].system_prompt
        system = (Message(new_message_id(), conversation, None, "system", prompt),) if prompt.strip() else ()
        self._worker.send(Generate(conversation, answer.id, system + history(asked), self.settings.sampling))
        return answer.id

    def _add(self, conversation: ConversationId, role: Role, text: str, *, streaming: bool = False) -> Message:
        messages = self._messages.setdefault(conversation, [])
        parent = messages[-1].id if messages else None
        state = "streaming" if streaming else "complete"
        message = Message(new_message_id(), conversation, parent, role, text, state, created_ms=_now_ms())  # type: ignore[arg-type]
        messages.append(message)
        self._keep(replace(self._conversations[conversation], leaf=message.id, updated_ms=_now_ms()))
        self._store.put_message(message)
        self._window.append_message(message)
        self._show_list()
        return message

    def _store_message(self, message: Message) -> None:
        """Put the final state of a message where it belongs: memory, database, window."""
        messages = self._messages.get(message.conversation, [])
        for i, known in enumerate(messages):
            if known.id == message.id:
                messages[i] = message
        self._store.put_message(message)
        self._window.update_message(message)

    def _keep(self, conversation: Conversation) -> None:
        """Remember a changed conversation; most recently used first."""
        rest = {k: v for k, v in self._conversations.items() if k != conversation.id}
        self._conversations = {conversation.id: conversation, **rest}
        if conversation.leaf is not None:
            self._store.put_conversation(conversation)

    def _answer_of(self, conversation: ConversationId) -> MessageId | None:
        """The answer that is running in the conversation."""
        return next((r.message.id for r in self._running.values() if r.message.conversation == conversation), None)

    def _show_list(self) -> None:
        self._window.show_conversations(tuple(self._conversations.values()), self._selected)

    def _use_settings(self, settings: Settings) -> None:
        self.settings = settings
        self._save_settings()
        self._window.set_settings(settings)

    def _save_settings(self) -> None:
        try:
            save_settings(self.settings, paths.settings_file())
        except KvdeskError as error:
            self._window.show_error(str(error), error.detail)


def replace_model(settings: Settings, model: str) -> Settings:
    """The settings with another model to open at start; empty is the embedded one."""
    return settings.model_copy(update={"model": model})


def _title(text: str) -> str:
    """A title from the first message: its first line, shortened at a word."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
