"""Leads each event and each list of messages to the widgets that show it, after `CacheState` has taken it over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QObject

from kvdesk.chat import Conversation, ConversationId, Message, MessageId
from kvdesk.errors import NO_TOKENIZER, SILENT, UNREACHABLE, guarded
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.cache import (
    Audited,
    CacheView,
    ContextReady,
    LoadSample,
    MemoryLedger,
    OperationDone,
    RebuildContext,
    SpeedSample,
    TokenTexts,
)
from kvdesk.protocol.chat import (
    BackendReady,
    Endpoint,
    EngineDied,
    EngineRestarted,
    LoadModel,
    LogLine,
    MessageRetention,
    ModelLoaded,
    ModelLoading,
    Overflowed,
    PrefillProgress,
    TextDelta,
    TurnEnded,
    TurnPreview,
    TurnStarted,
)
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed, Event, SubscriptionDropped
from kvdesk.protocol.operations import BatchRefused, Operate
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.viewmodel.cache_state import CacheState, Changed
from kvdesk.viewmodel.readout import totals
from kvdesk.viewmodel.series import Rate

TEXT_INTERVAL_MS: Final = 250  # numbers change at most 4 times a second
_SHARE: Final = 0.0012  # of one core that writing them may take: to paint them takes twice as much again


class EventRouter(QObject):
    """Owns no widget and changes no state itself."""

    def __init__(
        self,
        parent: QObject,
        state: CacheState,
        names: ConversationList,
        chat: ChatPane,
        inspector: Inspector,
        status: StatusBar,
        operations: OperationsController,
    ) -> None:
        super().__init__(parent)
        self._state, self._operations = state, operations
        self._list, self._chat, self._inspector, self._status = names, chat, inspector, status
        self._default_overflow = Overflow.STOP
        self._speed = Rate()
        self._writing = Throttle(
            self, TEXT_INTERVAL_MS, self._write_numbers, share=_SHARE, busy=lambda: bool(state.running)
        )
        self._ran = False  # an answer was being written when the last view came

    @property
    def selected(self) -> ConversationId | None:
        return self._state.selected

    @property
    def is_dead(self) -> bool:
        """The engine has stopped for good: no command would be answered."""
        return self._state.dead

    @property
    def why_not_continued(self) -> str:
        """Why no answer can be continued; "" where one can."""
        if self._state.dead:
            return tr("The engine has stopped. Restart kvdesk.")
        return self._state.missing(Feature.CONTINUE) or ("" if self._chat.can_chat else tr(NO_TOKENIZER))

    def is_running(self, conversation: ConversationId) -> bool:
        return conversation in self._state.running

    def show_conversations(self, conversations: Sequence[Conversation], selected: ConversationId | None) -> None:
        changed = self._state.show_conversations({one.id: one for one in conversations}, selected)
        self._list.show_conversations(conversations, self._state.selected)
        self._inspector.show_names()
        shown = self._state.selected
        self._chat.show_conversation(self._state.conversations.get(shown) if shown else None)
        if changed & Changed.SELECTED:
            self._chat.show_messages(())
            self._chat.show_branches({})
            self._chat.branch_tree.show_cached(self._state.branch_ends(self._state.selected))
        self._show_overflow()
        self._show_state()
        if self._state.view is not None:
            self._writing.request()

    def show_all(self) -> None:
        """Write everything from the state: the widgets are new. Messages come by `show_messages`."""
        state = self._state
        self._show_features()
        self._chat.show_model(state.model)
        if state.dead:
            self._show_dead()
        self._chat.overflow.show_possible(state.possible)
        self._status.show_context(state.context)
        self.show_conversations(list(state.conversations.values()), state.selected)
        self._show_running()
        self._write_numbers()

    def show_default_overflow(self, overflow: Overflow) -> None:
        """The overflow policy of conversations for which none was chosen."""
        self._default_overflow = overflow
        self._show_overflow()

    def show_messages(self, conversation: ConversationId, messages: Sequence[Message]) -> None:
        if conversation != self._state.selected:
            return
        self._chat.show_messages(messages)
        self._chat.view.show_retention(self._state.retention_of(conversation))
        self._state.take_messages(messages)
        self._show_running()
        if self._state.view is not None:
            self._writing.request()

    def append_message(self, message: Message) -> None:
        if self._state.take_messages([message]):
            self._show_running()
        if message.conversation == self._state.selected:
            self._chat.append_message(message)

    def update_message(self, message: Message) -> None:
        if self._state.take_messages([message]):
            self._show_running()
        if message.conversation == self._state.selected:
            self._chat.view.update_message(message)

    def remove_messages(
        self, conversation: ConversationId, deleted: Sequence[MessageId], messages: Sequence[Message]
    ) -> None:
        """Show the conversation without these; `messages`: all that are left."""
        if conversation == self._state.selected:
            self._chat.remove_messages(deleted, messages)

    def stop_watching(self) -> None:
        """No cache views will come: what is known of the cache from now on comes from the turns."""
        self._write_numbers()
        self._state.forget_view()
        self._chat.branch_tree.show_cached(None)

    def start_rebuild(self) -> None:
        """The wait for ContextReady or CommandFailed begins."""
        self._inspector.set_rebuilding(True)
        self._chat.show_working(True)
        self._inspector.set_can(forget=False, rebuild=False)

    def apply(self, event: Event) -> None:
        """Show one event. Events of conversations that are not shown change only lists and graphs.

        The state takes it over first, and panels are shown each by itself: one that fails costs no other.
        """
        changed = guarded(partial(self._state.apply, event)) or Changed.NOTHING
        if changed & Changed.RUNNING:
            guarded(self._show_running)
        guarded(partial(self._show, event))
        guarded(partial(self._show_changes, changed))
        guarded(partial(self._operations.apply, event))
        if isinstance(event, SubscriptionDropped):
            self._chat.banner.show_error(event.sentence, "")

    def _show_changes(self, changed: Changed) -> None:
        """Show the parts that depend on the state alone: the lists, the buttons, the meter of the context."""
        if changed & Changed.CELLS:
            self._list.show_cells(self._state.cells)
        if changed & Changed.CONTEXT:
            self._list.show_branches({})
            self._inspector.set_rebuilding(False)
        if changed & ~(Changed.VIEW | Changed.GROWTH):
            self._show_state()

    def _show(self, event: Event) -> None:
        match event:
            case TextDelta():
                if event.conversation == self._state.selected:
                    self._chat.view.append_text(event)
            case CacheView():
                self._show_cache()
            case SpeedSample():
                self._show_speed(event)
            case OperationDone():
                self._inspector.add_operation(event)
            case LoadSample() | BatchRefused() | LogLine() | MemoryLedger() | TokenTexts() | Audited() | BlockMapView():
                self._note(event)
            case TurnStarted() | PrefillProgress() | TurnEnded():
                self._apply_turn(event)
            case MessageRetention() | Overflowed() | TurnPreview():
                self._show_room(event)
            case BackendReady() | ModelLoading() | ModelLoaded() | ContextReady() | EngineRestarted():
                self._apply_engine(event)
            case CommandFailed():
                self._show_failure(event)
            case EngineDied():
                self._show_dead()
                self._inspector.set_rebuilding(False)
                self._chat.banner.show_error(event.sentence, event.detail)

    def _show_dead(self) -> None:
        self._chat.show_dead()
        self._status.set_dead()
        self._list.refuse_forget(tr("The engine has stopped."))

    def _note(
        self, event: LoadSample | BatchRefused | LogLine | MemoryLedger | TokenTexts | Audited | BlockMapView
    ) -> None:
        if isinstance(event, Audited):
            self._status.show_audit(event.at, agreed=event.state == "verified")
            return
        self._inspector.note(event)
        if isinstance(event, LoadSample):
            self._status.show_threads(event.n_threads)

    def _show_room(self, event: MessageRetention | Overflowed | TurnPreview) -> None:
        """How far messages of the shown conversation are from being evicted, and what sending a draft would do."""
        if event.conversation != self._state.selected:
            return
        match event:
            case MessageRetention():
                self._chat.view.show_retention(self._state.retention_of(event.conversation))
            case Overflowed():
                self._chat.view.show_overflow(event)
            case TurnPreview():
                self._chat.show_preview(event)

    def _apply_turn(self, event: TurnStarted | PrefillProgress | TurnEnded) -> None:
        shown = event.conversation == self._state.selected
        if isinstance(event, TurnStarted):
            self._inspector.measured.start_turn()
            if shown:
                self._chat.view.start_turn(event)
        elif isinstance(event, PrefillProgress):
            if event.done >= event.total:
                self._inspector.measured.end_prefill()
            if shown:
                self._chat.view.show_prefill(event)
        else:
            self._inspector.measured.add_turn(event.stats)
            if shown and event.state == "failed" and _is_unreachable(event.note):
                self._chat.show_unreachable(event.note)
            context = self._state.context
            if self._state.view is None and context is not None:  # without views the turn's own numbers are the newest
                self._status.show_used(event.stats.cells_used, context.n_ctx)
            else:
                self._writing.request()
            if shown:
                self._chat.view.end_turn(event)
                self._chat.composer.ask_again()

    def _show_overflow(self) -> None:
        """Show the overflow policy of the shown conversation."""
        selected = self._state.selected
        known = self._state.conversations.get(selected) if selected else None
        chosen = known.overflow if known is not None else ""
        self._chat.overflow.show_chosen(Overflow(chosen) if chosen in set(Overflow) else self._default_overflow)

    def _apply_engine(self, event: BackendReady | ModelLoading | ModelLoaded | ContextReady | EngineRestarted) -> None:
        if isinstance(event, BackendReady):
            self._show_features()
        elif isinstance(event, ModelLoading):
            self._chat.show_loading(event.source.name, event.progress)
        elif isinstance(event, ModelLoaded):
            self._chat.show_model(event.model)
            self._chat.banner.withdraw()
            self._chat.show_working(False)
            self._chat.composer.forget_preview()
            self._inspector.forget_model()
            self._show_features()
            self._speed.clear()
            self._status.show_speed(None)
        elif isinstance(event, EngineRestarted):
            self._chat.banner.show_error(event.sentence, event.detail)
        else:
            self._chat.overflow.show_possible({row.operation: row for row in event.possible})
            self._chat.show_working(False)
            self._chat.composer.forget_preview()
            self._chat.composer.ask_again()
            self._status.show_context(event.context)
        self._show_state()

    def _show_features(self) -> None:
        """What the back end has not is said in a sentence where it would be."""
        missing = self._state.missing
        self._inspector.show_features()
        self._status.show_missing(missing(Feature.CACHE_VIEW), missing(Feature.AUDIT))
        self._list.refuse_forget(missing(Feature.CACHE_OPERATIONS))

    def _show_cache(self) -> None:
        self._inspector.show_view()
        ran, self._ran = self._ran, bool(self._state.running)
        if ran and not self._ran:
            self._writing.now()  # the last view of an answer
        else:
            self._writing.request()

    def _show_speed(self, sample: SpeedSample) -> None:
        self._inspector.measured.add_speed(sample)
        if sample.kind == "decode" and sample.rc == 0:
            self._speed.add(sample.at_s, sample.n_tokens, sample.ms)
        self._writing.request()

    def _write_numbers(self) -> None:
        self._status.show_speed(self._speed.series.last if self._state.running else None)
        view = self._state.view
        if view is not None:
            numbers = totals(view.snapshot)
            self._state.count_cells()
            self._list.show_cells(self._state.cells)
            self._list.show_branches(self._state.branches())
            self._chat.branch_tree.show_cached(self._state.branch_ends(self._state.selected))
            self._status.show_used(numbers.used, numbers.capacity)
            self._status.show_verification(view.snapshot.verification, view.has_report)
            self._inspector.show_numbers()
        self._show_state()

    def _show_failure(self, event: CommandFailed) -> None:
        if isinstance(event.command, LoadModel) and isinstance(event.command.source, Endpoint):
            self._chat.show_unreachable(event.sentence, event.detail)
        else:
            self._chat.banner.show_error(event.sentence, event.detail)
        if isinstance(event.command, Operate):
            self._inspector.measured.add_refused_call()
        elif isinstance(event.command, LoadModel):
            self._chat.show_model(self._state.model)
            self._chat.show_working(False)
        elif isinstance(event.command, RebuildContext):
            self._inspector.set_rebuilding(False)
            self._chat.show_working(False)
        self._show_state()

    def _show_running(self) -> None:
        self._list.show_running(self._state.running)
        if not self._state.running:
            self._status.show_speed(None)  # each answer shows its own
        self._show_state()

    def _show_state(self) -> None:
        state, selected = self._state, self._state.selected
        busy = selected is not None and selected in state.running
        self._chat.set_running(busy)
        self._chat.view.set_why_not_continued(self.why_not_continued)
        holds = Feature.CACHE_OPERATIONS in state.features and state.cells.get(selected or ConversationId(""), 0) > 0
        can_rebuild = Feature.REBUILD in state.features and state.context is not None and not state.running
        self._inspector.set_can(forget=holds and not busy and not state.dead, rebuild=can_rebuild and not state.dead)
        use = state.use.get(selected) if selected is not None else None
        self._chat.show_use(use)


def _is_unreachable(note: str) -> bool:
    """Whether an answer failed because its server is gone."""
    return any(tr(sentence) in note for sentence in (UNREACHABLE, SILENT))
