"""The conversations in the window: what a user asks of them, and what is shown of what has changed.

What conversations are and do is in `kvdesk.conversations.service`. Must never know: models, contexts and the cache.
"""

from functools import partial
from typing import assert_never

from PySide6.QtCore import QObject, Signal

from kvdesk.conversations import changes
from kvdesk.conversations.service import ConversationService
from kvdesk.conversations.toolbox import Toolbox
from kvdesk.errors import KvdeskError, guarded
from kvdesk.host.host import Host
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.messages import Event
from kvdesk.session import Store
from kvdesk.session.changed import MEASURED
from kvdesk.store.listener import StoreListener, read_tree
from kvdesk.store.writer import StoreWriter
from kvdesk.translation import tr
from kvdesk.viewmodel.palette import N_COLOURS


class Chats(QObject):
    """Makes the service; the store listens to it first, then the window."""

    _tree_read = Signal(str, object)

    def __init__(
        self, parent: QObject, session: Store, host: Host, store: StoreWriter, toolbox: Toolbox | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._store = session, store
        self._collected: list[changes.Change] | None = None  # what an event changed that is being applied
        self.service = ConversationService(
            host.submit, host.stop, lambda: session.settings.current, self._read_tree, N_COLOURS, toolbox
        )
        self._stored = StoreListener(store)
        self.service.subscribe(self._stored)
        self.service.subscribe(self._on_change)
        self._tree_read.connect(self._on_tree_read)

    # --- which one is shown -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Show the stored conversations, the one selected that was shown last."""
        self.service.load(self._stored.load())
        shown = self.service.get(ConversationId(self._session.settings.current.chat))
        if shown is not None and not shown.archived:
            self.select(shown.id)
        else:
            self.select_any()

    def keep_shown(self) -> None:
        """The next start shows this one."""
        self._session.settings.change(chat=self._session.selected or "")

    def select(self, conversation: ConversationId) -> None:
        self._session.show_conversations(self.service.conversations, conversation)
        self.service.open(conversation)

    def new(self) -> None:
        """Select an empty conversation; it is stored with its first message, or the draft of one."""
        self.select(self.service.unused() or self.service.create())

    def fork(self, conversation: ConversationId, last: MessageId | None) -> ConversationId | None:
        """Select a new conversation with copies of the messages up to `last` (None: all). None if there are none."""
        new = self.service.fork(conversation, last)
        if new is not None:
            self.select(new)
        return new

    def measure(self) -> None:
        """Ask how full the context of the shown conversation is."""
        if self._session.selected is not None:
            self.service.turns.measure(self._session.selected)

    # --- changes ------------------------------------------------------------------------------------------------------

    def take(self, event: Event) -> list[changes.Change]:
        """Apply an event to the conversations, which the store hears at once. Returns what is still to be shown."""
        taken: list[changes.Change] = []
        if type(event) in MEASURED:
            return taken
        self._collected = taken
        guarded(partial(self.service.apply, event))
        self._collected = None
        return taken

    def show(self, change: changes.Change) -> None:
        """Show what has changed."""
        match change:
            case changes.ConversationChanged() | changes.ConversationsAdded():
                self._show_list()
            case changes.DeletionBegan() | changes.ConversationDeleted():
                if change.conversation == self._session.selected:
                    self.select_any()
                self._show_list()
            case (
                changes.MessagesAdded() | changes.MessagesChanged() | changes.MessagesDeleted() | changes.AnswerEnded()
            ):
                self._show_messages(change)
            case changes.BranchChanged():
                self._show_branch(change)
            case changes.ReadFailed():
                detail = change.error.detail or "\n\n".join(change.unsent)
                self._session.complain(
                    tr("{error} Nothing can be added to this chat.").format(error=change.error), detail
                )
            case changes.QueuesChanged():
                self._session.show_queues(change.states)
            case changes.DraftChanged():
                self._session.keep_draft(change.conversation)
            case changes.AnswersGrew():
                pass  # text is shown as it comes
            case _:
                assert_never(change)

    def _on_change(self, change: changes.Change) -> None:
        if self._collected is None:
            self.show(change)
        else:
            self._collected.append(change)

    def _show_messages(
        self, change: changes.MessagesAdded | changes.MessagesChanged | changes.MessagesDeleted | changes.AnswerEnded
    ) -> None:
        self._session.apply(change)
        match change:
            case changes.MessagesAdded():
                self._show_forks(change.messages[0].conversation)
            case changes.MessagesDeleted():
                self._show_forks(change.conversation)
                guarded(self.measure)

    def _show_branch(self, change: changes.BranchChanged) -> None:
        if change.conversation != self._session.selected:
            return
        self._session.apply(change)
        if not change.is_cut:  # else the message that follows shows the rest
            guarded(lambda: self._show_forks(change.conversation))
            guarded(self.measure)

    def _show_forks(self, conversation: ConversationId) -> None:
        """Which messages have others at their place."""
        if conversation == self._session.selected:
            self._session.show_forks(self.service.forks(conversation))

    def _show_list(self) -> None:
        self._session.show_conversations(self.service.conversations, self._session.selected)

    def select_any(self) -> None:
        """The conversation used last that is not archived, or a new one."""
        known = next((known for known in self.service.conversations if not known.archived), None)
        self.select(known.id) if known is not None else self.new()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_tree(self, conversation: ConversationId, leaf: MessageId | None) -> None:
        reading = self._store.ask(lambda store: read_tree(store, conversation, leaf))
        reading.add_done_callback(lambda done: self._tree_read.emit(conversation, done))

    def _on_tree_read(self, conversation: str, done: object) -> None:
        name = ConversationId(conversation)
        try:
            tree = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            self.service.tree_failed(name, error)
        else:
            self.service.tree_read(name, tree)
