"""The branches of the shown conversation: as a tree, and several answers to one question side by side."""

from PySide6.QtCore import QObject

from kvdesk.app.chat.chats import Chats
from kvdesk.conversations.changes import AnswerEnded, AnswersGrew, Change, DraftChanged, QueuesChanged
from kvdesk.message import ConversationId, MessageId
from kvdesk.ui.shell.main_window import MainWindow


class Branches(QObject):
    """Fills the panels when they are opened, and for as long as they are."""

    def __init__(self, window: MainWindow, chats: Chats) -> None:
        super().__init__(window)
        self._window, self._service = window, chats.service
        self._chat = chat = self._window.chat
        self._tree, self._alternatives = chat.branch_tree, chat.alternatives
        self._tree.opened.connect(self._show_tree)
        self._service.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        match change:
            case AnswersGrew():
                if self._chat.is_comparing:
                    self._alternatives.update_answers(change.messages)
            case AnswerEnded() if self._chat.is_comparing:
                self._alternatives.update_answers((change.message,))
            case DraftChanged() | QueuesChanged():
                pass
            case _ if self._tree.isVisible():
                self._show_tree()

    def _show_tree(self) -> None:
        selected = self._window.store.selected
        known = self._service.get(selected) if selected is not None else None
        rows = self._service.branch_rows(known.id) if known is not None else ()
        if known is None or len(rows) < 2:
            self._tree.close_tree()
            return
        shown = frozenset(message.id for message in self._service.branch(known.id))
        self._tree.show_rows(rows, shown, known.colour)

    def compare(self, conversation: ConversationId, message: MessageId) -> None:
        """Put the answers at the place of this one side by side."""
        answers = self._service.alternatives(conversation, message)
        branch = self._service.branch(conversation)
        question = next((one.text for one in branch if answers and one.id == answers[0].parent), "")
        if len(answers) > 1:
            self._chat.compare(question, answers, message)
