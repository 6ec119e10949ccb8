"""Conversations that are deleted, and the way back. At the close of kvdesk what is deleted is deleted for good."""

from typing import Final

from PySide6.QtCore import QObject

from kvdesk.app.chat.chats import Chats
from kvdesk.message import ConversationId
from kvdesk.session import Store
from kvdesk.translation import tr
from kvdesk.ui.widgets.timers import once

UNDO_MS: Final = 10_000
"""How long after the last deletion all of them can be undone."""


class Deletions(QObject):
    """Owns how long a deletion can be undone."""

    def __init__(self, parent: QObject, session: Store, chats: Chats) -> None:
        super().__init__(parent)
        self._session, self._chats, self._deletions = session, chats, chats.service.deletions
        self._ending = once(self, UNDO_MS, self.finish)

    def begin(self, conversation: ConversationId) -> None:
        """Delete a conversation, for now."""
        self._deletions.begin(conversation)
        self._ending.start()
        self._show()

    def undo(self) -> None:
        """Bring back the chat that was deleted last, and show it."""
        if (back := self._deletions.undo()) is not None:
            self._chats.select(back)
            self._show()

    def finish(self) -> None:
        """Delete for good what was deleted."""
        self._ending.stop()
        self._deletions.finish()
        self._show()

    def _show(self) -> None:
        self._session.show_deleted(known.title or tr("New chat") for known in self._deletions.pending)
