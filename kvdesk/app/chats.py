"""The conversations in the window: what a person asks of them, and what is shown of what has changed.

What conversations are and do is in `kvdesk.conversations.service`. Owns which one is shown. Must never know: models,
contexts and the cache.
"""

from __future__ import annotations

from functools import partial
from typing import assert_never

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.app.worker import Worker
from kvdesk.chat import ConversationId, MessageId
from kvdesk.conversations.changes import (
    AnswerEnded,
    AnswersGrew,
    BranchChanged,
    Change,
    ConversationChanged,
    ConversationDeleted,
    ConversationsAdded,
    DeletionBegan,
    DraftChanged,
    MessagesAdded,
    MessagesChanged,
    MessagesDeleted,
    QueuesChanged,
    ReadFailed,
)
from kvdesk.conversations.parameters import Parameters
from kvdesk.conversations.service import ConversationService
from kvdesk.errors import KvdeskError, guarded
from kvdesk.protocol.messages import Event
from kvdesk.session import SettingsStore
from kvdesk.settings import Overflow
from kvdesk.store.listener import StoreListener, read_tree
from kvdesk.store.writer import StoreWriter
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.palette import N_COLOURS


class Chats(QObject):
    """Makes the service; the store listens to it first, then the window."""

    _tree_read = Signal(str, object)

    def __init__(self, window: MainWindow, worker: Worker, store: StoreWriter, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._store, self._settings = window, store, settings
        self._selected: ConversationId | None = None
        self._collected: list[Change] | None = None  # what an event changed that is being applied
        self.service = ConversationService(
            worker.send, worker.stop, lambda: settings.current, self._read_tree, N_COLOURS
        )
        self._stored = StoreListener(store)
        self.service.subscribe(self._stored)
        self.service.subscribe(self._on_change)
        self._tree_read.connect(self._on_tree_read)
        window.closing.connect(self._keep_shown)
        window.message_sent.connect(self._on_message_sent)
        window.message_edited.connect(self._on_message_edited)
        window.stop_requested.connect(self._on_stop_requested)
        window.regenerate_requested.connect(self._on_regenerate_requested)
        window.continue_requested.connect(self._on_continue_requested)
        window.answer_edited.connect(self._on_answer_edited)
        window.message_pinned.connect(self._on_message_pinned)
        window.message_deleted.connect(self._on_message_deleted)
        window.message_undeleted.connect(self._on_message_undeleted)
        window.branch_requested.connect(self._on_branch_requested)
        window.draft_typed.connect(self._on_draft_typed)
        window.draft_changed.connect(self._on_draft_changed)
        window.overflow_chosen.connect(self._on_overflow_chosen)
        window.parameters_changed.connect(self._on_parameters_changed)
        window.prompt_preview_requested.connect(self._on_prompt_preview_requested)
        window.new_chat_requested.connect(self.new)
        window.conversation_selected.connect(self._on_conversation_selected)
        window.conversation_renamed.connect(self._on_conversation_renamed)
        queue = self._window.chat.queue
        queue.cancelled.connect(self._on_queued_cancelled)
        queue.taken_back.connect(self._on_queued_taken_back)
        queue.moved.connect(self._on_queued_moved)
        queue.send_clicked.connect(self._on_queue_released)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def selected(self) -> ConversationId | None:
        """The conversation that is shown."""
        return self._selected

    def start(self) -> None:
        """Show the stored conversations, the one selected that was shown last."""
        self.service.load(self._stored.load())
        shown = self.service.get(ConversationId(self._settings.current.chat))
        if shown is not None and not shown.archived:
            self.select(shown.id)
        else:
            self.select_any()

    @Slot()
    def _keep_shown(self) -> None:
        self._settings.change(chat=self._selected or "")

    def select(self, conversation: ConversationId) -> None:
        self._selected = conversation
        self._show_list()
        self.service.open(conversation)

    @Slot()
    def new(self) -> None:
        """Select an empty conversation; it is stored with its first message, or the draft of one."""
        self.select(self.service.unused() or self.service.create())

    def fork(self, conversation: ConversationId, last: MessageId | None) -> ConversationId | None:
        """Select a new conversation with copies of the messages up to `last` (None: all). None where there are none."""
        new = self.service.fork(conversation, last)
        if new is not None:
            self.select(new)
        return new

    def measure(self) -> None:
        """Ask how full the context of the shown conversation is."""
        if self._selected is not None:
            self.service.turns.measure(self._selected)

    # --- changes ------------------------------------------------------------------------------------------------------

    def take(self, event: Event) -> list[Change]:
        """Apply an event to the conversations, which the store hears at once. Returns what is still to be shown."""
        taken: list[Change] = []
        self._collected = taken
        guarded(partial(self.service.apply, event))
        self._collected = None
        return taken

    def show(self, change: Change) -> None:
        """Show what has changed."""
        match change:
            case ConversationChanged() | ConversationsAdded():
                self._show_list()
            case DeletionBegan() | ConversationDeleted():
                if change.conversation == self._selected:
                    self._selected = None
                    self.select_any()
                self._show_list()
            case MessagesAdded() | MessagesChanged() | MessagesDeleted() | AnswerEnded():
                self._show_messages(change)
            case BranchChanged():
                self._show_branch(change)
            case ReadFailed():
                detail = change.error.detail or "\n\n".join(change.unsent)
                self._window.show_error(
                    tr("{error} Nothing can be added to this chat.").format(error=change.error), detail
                )
            case QueuesChanged():
                self._window.chat.queue.show_states(change.states)
            case DraftChanged() | AnswersGrew():
                pass  # the composer has the draft, and text is shown as it comes
            case _:
                assert_never(change)

    def _on_change(self, change: Change) -> None:
        if self._collected is None:
            self.show(change)
        else:
            self._collected.append(change)

    def _show_messages(self, change: MessagesAdded | MessagesChanged | MessagesDeleted | AnswerEnded) -> None:
        match change:
            case MessagesAdded():
                for message in change.messages:
                    self._window.append_message(message)
                self._show_branches(change.messages[0].conversation)
            case MessagesChanged():
                for message in change.messages:
                    self._window.update_message(message)
            case MessagesDeleted():
                self._window.remove_messages(change.conversation, change.deleted, change.branch)
                self._show_branches(change.conversation)
                guarded(self.measure)
            case AnswerEnded():
                self._window.update_message(change.message)

    def _show_branch(self, change: BranchChanged) -> None:
        if change.conversation != self._selected:
            return
        guarded(lambda: self._window.show_messages(change.conversation, change.messages))
        if not change.is_cut:  # else the message that follows shows the rest
            guarded(lambda: self._show_branches(change.conversation))
            guarded(self.measure)

    def _show_branches(self, conversation: ConversationId) -> None:
        """Which messages have others at their place."""
        if conversation == self._selected:
            self._window.show_branches(conversation, self.service.forks(conversation))

    def _show_list(self) -> None:
        self._window.show_conversations(self.service.conversations, self._selected)

    def select_any(self) -> None:
        """The conversation used last that is not archived, or a new one."""
        known = next((known for known in self.service.conversations if not known.archived), None)
        self.select(known.id) if known is not None else self.new()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_tree(self, conversation: ConversationId, leaf: MessageId | None) -> None:
        reading = self._store.ask(lambda store: read_tree(store, conversation, leaf))
        reading.add_done_callback(lambda done: self._tree_read.emit(conversation, done))

    @Slot(str, object)
    def _on_tree_read(self, conversation: str, done: object) -> None:
        name = ConversationId(conversation)
        try:
            tree = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            self.service.tree_failed(name, error)
        else:
            self.service.tree_read(name, tree)

    # --- intents of the window ----------------------------------------------------------------------------------------

    @Slot(str, str)
    def _on_message_sent(self, conversation: str, text: str) -> None:
        self.service.send(ConversationId(conversation), text)

    @Slot(str, str, str)
    def _on_message_edited(self, conversation: str, message: str, text: str) -> None:
        self.service.turns.edit(ConversationId(conversation), MessageId(message), text)

    @Slot(str)
    def _on_stop_requested(self, conversation: str) -> None:
        self.service.stop(ConversationId(conversation))

    @Slot(str, int)
    def _on_regenerate_requested(self, conversation: str, n: int) -> None:
        self.service.turns.regenerate(ConversationId(conversation), n)

    @Slot(str, str)
    def _on_continue_requested(self, conversation: str, message: str) -> None:
        self.service.turns.continue_answer(ConversationId(conversation), MessageId(message) if message else None)

    @Slot(str, str, str, bool)
    def _on_answer_edited(self, conversation: str, message: str, text: str, go_on: bool) -> None:
        name = ConversationId(conversation)
        if self.service.turns.edit_answer(name, MessageId(message), text) is None:
            return
        if go_on:
            self.service.turns.continue_answer(name)
        else:
            self.measure()

    @Slot(str, str, bool)
    def _on_message_pinned(self, conversation: str, message: str, pinned: bool) -> None:
        self.service.turns.pin(ConversationId(conversation), MessageId(message), pinned=pinned)

    @Slot(str, str, bool)
    def _on_message_deleted(self, conversation: str, message: str, with_pair: bool) -> None:
        name, one = ConversationId(conversation), MessageId(message)
        self.service.removals.remove(name, self.service.removals.exchange_of(name, one) if with_pair else [one])

    @Slot(str)
    def _on_message_undeleted(self, conversation: str) -> None:
        message = self.service.removals.undo(ConversationId(conversation))
        if message is not None and conversation == self._selected:
            self._window.chat.view.scroll_to(message)

    @Slot(str, str)
    def _on_branch_requested(self, conversation: str, message: str) -> None:
        self.service.turns.show_branch(ConversationId(conversation), MessageId(message))

    @Slot(str, str)
    def _on_draft_typed(self, conversation: str, text: str) -> None:
        self.service.keep_draft(ConversationId(conversation), text)

    @Slot(str, str, str)
    def _on_draft_changed(self, conversation: str, text: str, replaced: str) -> None:
        self.service.turns.preview(ConversationId(conversation), text, MessageId(replaced) if replaced else None)

    @Slot(str, object)
    def _on_overflow_chosen(self, conversation: str, overflow: Overflow) -> None:
        self.service.choose_overflow(ConversationId(conversation), overflow)
        self.measure()

    @Slot(str, object)
    def _on_parameters_changed(self, conversation: str, parameters: Parameters) -> None:
        self.service.set_parameters(ConversationId(conversation), parameters)
        self.measure()

    @Slot(str, object, int)
    def _on_prompt_preview_requested(self, conversation: str, parameters: Parameters, number: int) -> None:
        self.service.preview_prompt(ConversationId(conversation), parameters, tr("Hello"), number)

    @Slot(str)
    def _on_conversation_selected(self, conversation: str) -> None:
        if self.service.get(conversation) is not None:
            self.select(ConversationId(conversation))

    @Slot(str, str)
    def _on_conversation_renamed(self, conversation: str, title: str) -> None:
        self.service.rename(ConversationId(conversation), title)

    @Slot(str, int, str)
    def _on_queued_cancelled(self, conversation: str, index: int, text: str) -> None:
        self.service.queued.cancel(ConversationId(conversation), index, text)

    @Slot(str, int, str)
    def _on_queued_taken_back(self, conversation: str, index: int, text: str) -> None:
        self.service.queued.cancel(ConversationId(conversation), index, text, edited=True)

    @Slot(str, int, str, int)
    def _on_queued_moved(self, conversation: str, index: int, text: str, to: int) -> None:
        self.service.queued.move(ConversationId(conversation), index, text, to)

    @Slot(str)
    def _on_queue_released(self, conversation: str) -> None:
        self.service.release_queue(ConversationId(conversation))
