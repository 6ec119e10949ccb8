"""The search through all chats: asks the database, shows what it found, and goes to the message that is chosen."""

from PySide6.QtCore import QObject, Signal

from kvdesk import folding
from kvdesk.app.chat.chats import Chats
from kvdesk.conversations.changes import BranchChanged, Change
from kvdesk.errors import KvdeskError
from kvdesk.message import ConversationId, MessageId
from kvdesk.store.search import words_of
from kvdesk.store.writer import StoreWriter
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.chat.found import found_rows


class Search(QObject):
    """The texts of conversations that were never opened are only in the database, so that all is looked for there."""

    _done = Signal(str, object)

    def __init__(self, window: MainWindow, store: StoreWriter, chats: Chats) -> None:
        super().__init__(window)
        self._window, self._store, self._chats = window, store, chats
        self._wanted: tuple[ConversationId, MessageId | None] | None = None  # to be shown as soon as its chat is read
        self._done.connect(self._on_done)
        chats.service.subscribe(self._on_change)  # after the window, which shows the branch then

    def ask(self, text: str) -> None:
        """What is found is shown in the list of conversations."""
        self._wanted = None
        self._window.chat.view.mark_found(())
        if not text.strip():
            return
        searching = self._store.ask(lambda store: store.search(text))
        searching.add_done_callback(lambda done: self._done.emit(text, done))

    def _on_done(self, text: str, done: object) -> None:
        try:
            hits = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            self._window.store.complain(str(error), error.detail)
            return
        known = [hit for hit in hits if self._chats.service.get(hit.conversation) is not None]
        rows = found_rows((hit.conversation, hit.message, hit.title, hit.excerpt) for hit in known)
        self._window.conversations.show_found(text, words_of(text), rows)

    def go_to(self, conversation: ConversationId, message: MessageId | None) -> None:
        """Show a conversation at a message, or at the first of its branch with one of the words."""
        if self._chats.service.get(conversation) is None:
            self._window.store.notify(tr("This chat was deleted after it was found."))
            return
        self._wanted = (conversation, message)
        if conversation != self._window.store.selected:
            self._chats.select(conversation)  # tells its branch, now or when it has been read
        elif self._chats.service.is_read(conversation):
            self._show()

    def _on_change(self, change: Change) -> None:
        if isinstance(change, BranchChanged) and self._wanted is not None and change.conversation == self._wanted[0]:
            self._show()

    def _show(self) -> None:
        """Show the message that was chosen, on its branch."""
        wanted, self._wanted = self._wanted, None
        if wanted is None or wanted[0] != self._window.store.selected:
            return
        conversation, chosen = wanted
        message = chosen or self._first_shown(conversation)
        if message is None:
            return
        if not self._is_shown(conversation, message):
            self._chats.service.turns.show_branch(conversation, message)
        if self._is_shown(conversation, message):
            self._window.chat.view.mark_found(self._window.conversations.results.words, message)
        elif self._chats.service.answer_of(conversation) is not None:
            self._window.store.notify(
                tr("This message is on another branch. Wait until the answer has ended."), "warning"
            )
        else:
            self._window.store.notify(tr("This message was deleted after it was found."))

    def _first_shown(self, conversation: ConversationId) -> MessageId | None:
        """The first message of the branch with one of the words: who chooses a chat sees them too."""
        words = self._window.conversations.results.words
        return next((m.id for m in self._chats.service.branch(conversation) if folding.places(m.text, words)), None)

    def _is_shown(self, conversation: ConversationId, message: MessageId) -> bool:
        return any(shown.id == message for shown in self._chats.service.branch(conversation))
