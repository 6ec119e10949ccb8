"""Chats to a file, for the window: beside its thread, since all of them may take seconds."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject

from kvdesk.app.background import Background
from kvdesk.app.chat.chats import Chats
from kvdesk.chat import Conversation
from kvdesk.errors import UserError
from kvdesk.message import ConversationId, Message
from kvdesk.session import Store as Session
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from kvdesk.translation import tr
from kvdesk.values import replace

There = tuple[Conversation, tuple[Message, ...] | None]
"""A conversation and its messages; None: they are only in the database."""


class ChatExport(QObject):
    """One file at a time."""

    def __init__(self, parent: QObject, session: Session, chats: Chats, store: StoreWriter) -> None:
        super().__init__(parent)
        self._session, self._chats, self._store = session, chats, store
        self._background = Background("export", self)
        self.wait = self._background.wait

    def save(self, path: Path, conversations: Iterable[ConversationId]) -> None:
        """Write them in the format that the ending of the file names, and say in the window what came of it."""
        from kvdesk.conversations.porting import export  # late, with its formats

        there = list(self._there(conversations))
        form = export.format_of(path) or export.MARKDOWN

        def save() -> int:
            return export.write(path, form, self._whole(there))

        def done(n: int) -> None:
            self._session.notify(export.written_sentence(n, path), "good", str(path))

        self._background.run(save, done, lambda error: self._session.notify(str(error), "danger", ""))

    def save_known(self, path: Path, conversations: Iterable[ConversationId]) -> int:
        """Write at once those whose messages are in memory; returns how many. Raises UserError."""
        from kvdesk.conversations.porting import export

        known = [replace(one, messages=its) for one, its in self._there(conversations) if its is not None]
        return export.write(path, export.format_of(path) or export.MARKDOWN, known)

    def close(self) -> None:
        """End what is being written; the file that was there stays. Before the store is closed."""
        self._background.close()

    def _there(self, conversations: Iterable[ConversationId]) -> Iterator[There]:
        service = self._chats.service
        for name in conversations:
            if (conversation := service.get(name)) is not None:
                yield conversation, service.all_messages(name)

    def _whole(self, there: list[There]) -> Iterator[Conversation]:
        for conversation, messages in there:
            if self._background.is_closing:
                raise UserError(tr("The export was ended because kvdesk was closed."))
            if messages is None:
                messages = self._store.ask(partial(Store.all_messages, conversation=conversation.id)).result()
            yield replace(conversation, messages=messages)
