"""Conversations that are added in small steps, between which others read and write: all of them are there, or none.

Until the last step their ids are in the table `adding`, which hides them. What a crash leaves there stays hidden, and
is removed in the same way (`Store.leftover`).
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

import apsw

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.adding import renamed
from kvdesk.message import ConversationId, Message
from kvdesk.store import rows
from kvdesk.values import replace

PIECE: Final = 100
"""Conversations and messages in one step: some 20 ms."""


def insert(table: str, columns: tuple[str, ...]) -> str:
    """The statement for one row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


_ADD_CONVERSATION = insert("conversation", rows.CONVERSATION_COLUMNS)
_ADD_MESSAGE = insert("message", rows.MESSAGE_COLUMNS)
_REMOVE_SOME = f"""
    DELETE FROM message WHERE number IN (SELECT number FROM message WHERE conversation = ? LIMIT {PIECE})
"""


class Addition:
    """`step` until it returns False, on the thread of the connection; `cancel` from any thread, also after an error.

    left   conversations of an addition that did not come to its end, to be removed after `cancel`
    """

    def __init__(
        self,
        connection: apsw.Connection,
        transaction: Callable[[], AbstractContextManager[None]],
        conversations: Iterable[Conversation],
        left: Iterable[ConversationId] = (),
    ) -> None:
        self._connection, self._transaction = connection, transaction
        self._values = self._in_order(conversations)
        self._names = list(left)
        self._cancelled = threading.Event()
        self._added: list[Conversation] = []
        self.n_messages = 0
        self.is_done = False
        """Whether all of them are there."""

    @property
    def added(self) -> tuple[Conversation, ...]:
        """As they are stored, without their messages: with new ids where some were taken. Once it is done."""
        return tuple(self._added) if self.is_done else ()

    def step(self) -> bool:
        """Add some more, or after `cancel` remove some; False when that was all.

        Raises StoreError, and what the conversations raise while they are taken; nothing of this step is stored then.
        """
        if self._cancelled.is_set() and not self.is_done:
            return self._remove_some()
        piece = list(islice(self._values, PIECE))
        with self._transaction():
            for value in piece:
                self._put(value)
            if not piece:
                self._connection.executemany("DELETE FROM adding WHERE conversation = ?", [(n,) for n in self._names])
        self.is_done = not piece
        return bool(piece)

    def cancel(self) -> None:
        """None of them shall be there: the next steps remove what is."""
        self._cancelled.set()

    def finish(self) -> None:
        """All steps at once. Raises StoreError, and what the conversations raise; nothing of them is there then."""
        try:
            while self.step():
                pass
        except BaseException:
            self.cancel()
            while self.step():
                pass
            raise

    def _in_order(self, conversations: Iterable[Conversation]) -> Iterator[Conversation | Message]:
        for conversation in conversations:
            stored = renamed(conversation) if self._holds_any(conversation) else conversation
            yield replace(stored, messages=())
            yield from stored.messages

    def _put(self, value: Conversation | Message) -> None:
        if isinstance(value, Message):
            self._connection.execute(_ADD_MESSAGE, rows.message_row(value))
            self.n_messages += 1
            return
        self._connection.execute(_ADD_CONVERSATION, rows.conversation_row(value))
        self._connection.execute("INSERT INTO adding VALUES (?)", (value.id,))
        self._names.append(value.id)
        self._added.append(value)

    def _remove_some(self) -> bool:
        if not self._names:
            return False
        name = (self._names[-1],)
        with self._transaction():
            self._connection.execute(_REMOVE_SOME, name)
            gone = self._connection.changes() == 0
            if gone:
                self._connection.execute("DELETE FROM conversation WHERE id = ?", name)
                self._connection.execute("DELETE FROM adding WHERE conversation = ?", name)
        if gone:
            self._names.pop()
        return True

    def _holds_any(self, conversation: Conversation) -> bool:
        """Whether the id of the conversation, or of one of its messages, is there already."""
        for table, ids in (("conversation", [conversation.id]), ("message", [m.id for m in conversation.messages])):
            for name in ids:
                if self._connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (name,)).fetchone():
                    return True
        return False
