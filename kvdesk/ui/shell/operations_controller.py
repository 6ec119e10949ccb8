"""The controller of operations by hand: from the form and menus to commands, and from events to their display.

Knows no worker: every command leaves by the signal `command`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMenu, QWidget

from kvdesk.chat import ConversationId, MessageId
from kvdesk.protocol.cache import (
    Audited,
    CacheView,
    ContextPreview,
    ContextReady,
    OperationDone,
    PreviewContext,
    RecordingTaken,
    Refilled,
    SpeedSample,
    TakeRecording,
    Verified,
    VerifyConversation,
)
from kvdesk.protocol.chat import ModelLoaded, Working
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import BatchRefused, CompactionPreview, HandOperation, Operate, Undo
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.viewmodel.cache_state import CacheState
from kvdesk.viewmodel.effect_text import took
from kvdesk.viewmodel.operation_specs import (
    FORK,
    OPERATIONS,
    REMOVE,
    Chosen,
    OperationSpec,
    Request,
    alternative,
    call_of,
    refusal,
)

if TYPE_CHECKING:
    from kvdesk.ui.cache.instruments import Instruments


class OperationsController(QObject):
    """Turns what a person does into commands and shows what came of them."""

    command = Signal(object)  # a command of kvdesk.protocol
    fork_requested = Signal(str, str, int, int)  # conversation, its last message ("" for all), p0, p1
    rebuild_clicked = Signal()

    def __init__(self, parent: QWidget, state: CacheState, inspector: Inspector, strip: ActivityStrip) -> None:
        super().__init__(parent)
        self._state, self._inspector, self._strip = state, inspector, strip
        inspector.cache.when_made(self._connect)
        inspector.undo_clicked.connect(self._on_undo_clicked)
        inspector.recording_wanted.connect(lambda: self.command.emit(TakeRecording()))

    @Slot(object)
    def _connect(self, made: Instruments) -> None:
        made.operations.pressed.connect(self._request)
        made.question.asked.connect(lambda settings: self.command.emit(PreviewContext(settings)))
        made.compaction.asked.connect(self.command)
        made.compaction.operated.connect(self._operate)
        made.effect.undo_clicked.connect(self._on_undo_clicked)

    def apply(self, event: Event) -> None:
        """Show what concerns operations by hand."""
        self._tell_timeline(event)
        made = self._inspector.cache.made_instruments
        match event:
            case OperationDone():
                self._show_operation(event)
            case CacheView():
                self._show_state()
            case SpeedSample() if made is not None:
                made.effect.add_speed(event)
            case ContextReady() if made is not None:
                made.question.forget()
                made.effect.forget()
                made.compaction.forget()
            case Audited():
                tone = {"verified": "good", "mirrored": "", "mismatch": "danger"}[event.state]
                self._strip.show_result(tr("Audit at {at}: {result}").format(at=event.at, result=event.sentence), tone)
            case ContextPreview():
                self._inspector.cache.instruments.question.show_preview(event)
            case CompactionPreview() | RecordingTaken() | Working() | Verified() | Refilled() | BatchRefused():
                self._show_answer(event)
            case _:
                pass

    def _tell_timeline(self, event: Event) -> None:
        """One that is not made yet reads everything when it is."""
        if (timeline := self._inspector.made_timeline) is None:
            return
        match event:
            case SpeedSample() | CacheView() | OperationDone():
                timeline.note_change()
            case ContextReady():
                timeline.reset()
            case ModelLoaded():
                timeline.forget_past()
            case _:
                pass

    def ask_rebuild(self, settings: ContextSettings) -> bool:
        """Where cells would be lost, say what a new context costs first. False: there is nothing to ask."""
        held = self._state.held()
        n_cells = self._state.n_cells
        if held or n_cells:
            self._inspector.cache.instruments.question.ask(settings, n_cells or sum(n for _, n in held), held)
            self._inspector.cache.reveal(self._inspector.cache.instruments.question)
        return bool(held or n_cells)

    def refusal(self, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> str:
        """Why an operation cannot be done to a conversation's cells, empty where it can."""
        if self._state.view is None and not self._state.dead and self._state.context is not None:
            return tr("Open the inspector (Ctrl+I) to operate on the cache by hand.")
        return refusal(spec, Chosen(self._state.target_of(conversation), p0, p1), self._state)

    def request(self, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> None:
        """Do something to a conversation's cells, or say why not."""
        if why := self.refusal(spec, conversation, p0, p1):
            self._strip.show_result(why)
        else:
            self._request(spec, Chosen(self._state.target_of(conversation), p0, p1))

    def fill_menu(self, menu: QMenu, conversation: ConversationId) -> None:
        """Add the operations on the cells of a conversation."""
        target = self._state.target_of(conversation)
        for spec in OPERATIONS:
            if spec.menu and alternative(spec, target) is spec:
                self._add_action(menu, tr(spec.menu), spec, conversation)

    def fill_message_menu(self, menu: QMenu, conversation: ConversationId, message: MessageId) -> None:
        """Add the operations on the cells of a message, as a submenu."""
        menu = menu.addMenu(tr("Cache"))
        menu.setToolTipsVisible(True)
        span = self._state.span_of(conversation, message)
        if span is None:
            nothing = menu.addAction(tr("Cells of this message"))
            nothing.setEnabled(False)
            unknown = tr("Its place in the cache is known after the next answer in this chat.")
            nothing.setToolTip(self._state.missing(Feature.CACHE_OPERATIONS) or unknown)
            return
        self._add_action(menu, tr("Fork the chat after it"), FORK, conversation, -1, span.p1)
        self._add_action(menu, tr("Remove its cells"), REMOVE, conversation, span.p0, span.p1)
        self._add_action(menu, tr("Remove its cells and all after it"), REMOVE, conversation, span.p0, -1)
        choose = menu.addAction(tr("Choose its cells for an operation"))
        choose.triggered.connect(lambda: self.choose_range(conversation, span.p0, span.p1))

    def choose_range(self, conversation: ConversationId, p0: int, p1: int) -> None:
        """Fill positions of a conversation in to the form and unfold it."""
        target = self._state.target_of(conversation)
        if target is None:
            return
        panel = self._inspector.cache.instruments.operations
        panel.show_state(self._state)
        panel.set_range(target.seq_id, p0, p1)
        panel.set_open(True)
        self._inspector.reveal_all()
        self._inspector.show_tab("Cache")

    @Slot()
    def open_compaction(self) -> None:
        """Show what a compaction would do."""
        self._inspector.reveal_all()
        self._inspector.show_tab("Cache")
        self._inspector.cache.instruments.compaction.ask(self._state)
        self._inspector.cache.reveal(self._inspector.cache.instruments.compaction)

    @Slot(object, object)
    def _request(self, spec: OperationSpec, chosen: Chosen) -> None:
        match spec.request:
            case Request.OPERATION:
                if (operation := spec.build(chosen, self._state)) is not None:
                    self._operate(operation)
            case Request.FORK:
                self._fork(chosen.conversation, chosen.p0, chosen.p1)
            case Request.VERIFICATION:
                self.command.emit(VerifyConversation(chosen.conversation))
            case Request.COMPACTION:
                self.open_compaction()
            case Request.REBUILD:
                self.rebuild_clicked.emit()
            case _:
                assert_never(spec.request)

    @Slot(object)
    def _operate(self, operation: HandOperation) -> None:
        self.command.emit(Operate(operation))

    @Slot(int)
    def _on_undo_clicked(self, operation: int) -> None:
        self._operate(Undo(operation))

    def _fork(self, conversation: ConversationId, p0: int, p1: int) -> None:
        """A fork of the first positions has the messages that end there; without their places known, all of them."""
        last = ""
        spans = self._state.spans.get(conversation)
        if p1 >= 0 and spans is not None:
            last = next((str(span.message) for span in reversed(spans.spans) if span.p1 <= p1), "")
        self.fork_requested.emit(conversation, last, p0, p1)

    def _add_action(
        self, menu: QMenu, text: str, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1
    ) -> None:
        why = self.refusal(spec, conversation, p0, p1)
        call = call_of(spec, Chosen(self._state.target_of(conversation), p0, p1), self._state)
        action = menu.addAction(text)
        action.setToolTip(why or f"{tr(spec.tip)}\n{call}".rstrip())
        action.setEnabled(not why)
        action.triggered.connect(lambda: self.request(spec, conversation, p0, p1))

    def _show_operation(self, done: OperationDone) -> None:
        self._show_state()
        if done.note and done.effect is None:  # else it stands with the effect
            title = self._state.title(done.conversation, -1)
            said = tr("“{title}” {what}") if done.emptied else tr("A branch of “{title}” {what}")
            self._strip.show_result(said.format(title=title, what=done.note), "warning")
        if done.effect is None:
            return
        leases = self._state.history.leases_at(done.operation)
        texts = self._inspector.texts
        self._inspector.cache.instruments.effect.show_effect(done, lambda seq: self._state.title_in(leases, seq), texts)
        self._inspector.cache.reveal(self._inspector.cache.instruments.effect)

    def _show_answer(
        self, event: CompactionPreview | RecordingTaken | Working | Verified | Refilled | BatchRefused
    ) -> None:
        """Show the answer to a command, or its progress."""
        match event:
            case CompactionPreview():
                self._inspector.cache.instruments.compaction.show_preview(event)
            case RecordingTaken():
                if event.is_over:
                    self._inspector.timeline.keep_past(event.recording, self._state.history)
                else:
                    self._inspector.timeline.show_recording(event.recording)
            case Working():
                self._strip.show_working(event)
            case Verified():
                self._show_verified(event)
            case Refilled():
                self._show_refilled(event)
            case BatchRefused():
                self._inspector.cache.instruments.operations.show_refused(event)
                self._strip.show_result(event.sentence, "warning")

    def _show_verified(self, event: Verified) -> None:
        title = self._state.title(event.conversation, -1)
        tone = "good" if event.logits.verdict.same else "warning"
        said = tr("“{title}” is {verdict} ({n} tokens computed again in {time}).")
        self._strip.show_result(
            said.format(title=title, verdict=event.logits, n=f"{event.n_tokens:,}", time=took(event.ms)), tone
        )

    def _show_refilled(self, event: Refilled) -> None:
        """A rebuild is no operation with cells before and after; what it cost is said in the same place."""
        said = [tr("The context was made anew; that cannot be undone.")]
        if event.n_read:
            tok_s = event.n_read / event.ms * 1e3 if event.ms else 0.0
            said.append(
                tr("{n} tokens were read again in {took} ({tok_s} tok/s).").format(
                    n=f"{event.n_read:,}", took=took(event.ms), tok_s=f"{tok_s:,.0f}"
                )
            )
        if event.n_carried:
            said.append(tr("{n} tokens came with their state, without reading.").format(n=f"{event.n_carried:,}"))
        said.append(
            tr("Conversations in the new cache: {n}.").format(n=event.n_conversations)
            if not event.n_left
            else tr("Conversations in the new cache: {n}; without room: {left}.").format(
                n=event.n_conversations, left=event.n_left
            )
        )
        self._inspector.cache.instruments.effect.show_sentences(tr("rebuild of the context"), *said)
        self._inspector.cache.reveal(self._inspector.cache.instruments.effect)

    def _show_state(self) -> None:
        if (made := self._inspector.cache.made_instruments) is not None:
            made.compaction.show_state()
