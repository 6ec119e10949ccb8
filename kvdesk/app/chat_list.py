"""What a person does with the list of conversations: folders, pins, the archive, deletion and the way back.

Owns how long a deletion can be undone. At the close of kvdesk what is deleted is deleted for good.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer, Slot

from kvdesk.app.chats import Chats
from kvdesk.chat import ConversationId
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow

UNDO_MS: Final = 10_000
"""How long after the last deletion all of them can be undone."""


class ChatList(QObject):
    """Between the list in the window, and the arrangement and the deletions of the service."""

    def __init__(self, window: MainWindow, chats: Chats) -> None:
        super().__init__(window)
        self._window, self._chats = window, chats
        self._arrangement, self._deletions = chats.service.arrangement, chats.service.deletions
        self._ending = QTimer(self, singleShot=True, interval=UNDO_MS)
        self._ending.timeout.connect(self.finish)
        window.conversation_deleted.connect(self._on_deleted)
        self._list = self._window.conversations
        self._list.pinned.connect(self._on_pinned)
        self._list.archived.connect(self._on_archived)
        self._list.moved.connect(self._on_moved)
        self._list.folder_renamed.connect(self._arrangement.rename_folder)
        self._list.undo_clicked.connect(self.undo)
        self._show()

    @Slot()
    def undo(self) -> None:
        """Bring back the chat that was deleted last, and show it."""
        if (back := self._deletions.undo()) is not None:
            self._chats.select(back)
            self._show()

    @Slot()
    def finish(self) -> None:
        """Delete for good what was deleted."""
        self._ending.stop()
        self._deletions.finish()
        self._show()

    @Slot(str)
    def _on_deleted(self, conversation: str) -> None:
        self._deletions.begin(ConversationId(conversation))
        self._ending.start()
        self._show()

    @Slot(str, bool)
    def _on_pinned(self, conversation: str, pinned: bool) -> None:
        self._arrangement.pin(ConversationId(conversation), pinned)

    @Slot(str, bool)
    def _on_archived(self, conversation: str, archived: bool) -> None:
        """One that is shown gives way to another when it is put away."""
        self._arrangement.archive(ConversationId(conversation), archived)
        if archived and conversation == self._chats.selected:
            self._chats.select_any()

    @Slot(str, str)
    def _on_moved(self, conversation: str, folder: str) -> None:
        """Where one does not see it go, it is said."""
        self._arrangement.move(ConversationId(conversation), folder)
        known = self._chats.service.get(ConversationId(conversation))
        if known is None or not self._list.is_collapsed(folder):
            return
        title = known.title or tr("New chat")
        where = tr("“{title}” is in the folder “{folder}” now.") if folder else tr("“{title}” is in no folder now.")
        self._window.show_result(where.format(title=title, folder=folder))

    def _show(self) -> None:
        self._list.show_deleted([known.title or tr("New chat") for known in self._deletions.pending])
