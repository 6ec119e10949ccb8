"""The thread that owns the database: everybody else hands it values and goes on.

Owns the queue, the pace of writing and the only `Store` of a running kvdesk. Must never know: Qt. What is put or
deleted is written within `INTERVAL_S`; of a message that streams only its newest state is. What a failing disk keeps
out is tried again every `RETRY_S` and counted: nothing is dropped before `close`.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from kvdesk.chat import Conversation
from kvdesk.errors import StoreError, unexpected
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.store.store import Store
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass

INTERVAL_S = 0.1  # a crash loses at most this, a frame of the window and the writing itself: under 250 ms
INDEX_PAUSE_S = 0.05  # between two steps of the index: others come first
RETRY_S = 2.0  # after a failure, such as a full disk

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Delete:
    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class _DeleteMessages:
    messages: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class _Ask:
    question: Callable[[Store], Any]
    answer: Future[Any]


@dataclass(frozen=True, slots=True)
class _Close:
    pass


@dataclass(frozen=True, slots=True)
class Unsaved:
    """What the disk keeps out, and why: numbers of messages and deletions that wait, and whose. Empty: all is saved."""

    n_messages: int = 0
    n_deletions: int = 0
    why: str = ""
    conversations: frozenset[ConversationId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.n_messages or self.n_deletions or self.conversations)

    @property
    def sentence(self) -> str:
        """For a user; empty when everything is saved."""
        if not self:
            return ""
        if self.n_messages + self.n_deletions == 1:
            said = tr("{what} is not saved yet. {why} kvdesk retries automatically.")
        else:
            said = tr("{what} are not saved yet. {why} kvdesk retries automatically.")
        return said.format(what=self.what, why=self.why)

    @property
    def at_the_end(self) -> str:
        """The same as a line for a terminal, when nothing is tried any more."""
        return tr("kvdesk was closed, and {what} could not be saved. {why}\n").format(what=self.what, why=self.why)

    @property
    def what(self) -> str:
        """How much, in words."""
        messages = plural("1 message", "%n messages", self.n_messages)
        deletions = plural("1 deletion", "%n deletions", self.n_deletions)
        parts = (messages if self.n_messages else "", deletions if self.n_deletions else "")
        return tr(" and ").join(filter(None, parts)) or tr("Changes of a chat")


_Item = Conversation | Message | _Delete | _DeleteMessages | _Ask | _Close


class StoreWriter:
    """Starts its thread at once. `opened` says whether the database could be opened; without it, nothing is kept.

    Both are called on the writer's thread: `on_error` with each StoreError that nobody else gets, `on_unsaved`
    whenever what waits for the disk changes.
    """

    def __init__(
        self, path: Path, on_error: Callable[[StoreError], None], on_unsaved: Callable[[Unsaved], None] = lambda _: None
    ) -> None:
        self.opened: Future[None] = Future()
        self._path = path
        self._on_error = on_error
        self._on_unsaved = on_unsaved
        self._unsaved = Unsaved()
        self._inbox: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._pending: dict[str, Conversation | Message] = {}
        self._has_deleted = False  # since `Store.forget_deleted`
        self._deleted: set[ConversationId] = set()
        self._to_delete: set[ConversationId] = set()
        self._messages_to_delete: dict[MessageId, None] = {}
        self._closed = False
        self._last_write = 0.0
        self._last_sentence = ""
        self._retry_at = 0.0
        self._indexing = True  # until `Store.index_some` has nothing left
        self._thread = threading.Thread(target=self._run, name="kvdesk-store", daemon=True)
        self._thread.start()

    def put_conversation(self, conversation: Conversation) -> None:
        self._send(conversation)

    def put_message(self, message: Message) -> None:
        self._send(message)

    def delete_conversation(self, conversation: ConversationId) -> None:
        """What is still put for it afterwards is dropped, such as the end of an answer."""
        self._send(_Delete(conversation))

    def delete_messages(self, messages: Iterable[MessageId]) -> None:
        """Single messages; one that is put again later is stored again, at its old place."""
        self._send(_DeleteMessages(tuple(messages)))

    def ask(self, question: Callable[[Store], T]) -> Future[T]:
        """Answer a question on the writer's thread, after everything put before: `ask(Store.conversations)`."""
        answer: Future[T] = Future()
        self._send(_Ask(question, answer))
        return answer

    def flush(self) -> Future[None]:
        """Done when everything put before has been written (or its failure reported)."""
        return self.ask(lambda _: None)

    def close(self) -> Unsaved:
        """Write what is pending, close the database, end the thread. Nothing may be put afterwards.

        Returns what could not be written; it is lost.
        """
        if not self._closed:
            self._send(_Close())
            self._closed = True
        self._thread.join()
        return self._unsaved

    @property
    def unsaved(self) -> Unsaved:
        """What waits for the disk now. From any thread."""
        return self._unsaved

    def _send(self, item: _Item) -> None:
        assert not self._closed, "the store was used after it was closed"
        self._inbox.put(item)

    # --- on the writer's thread ---

    def _run(self) -> None:
        try:
            store = Store(self._path)
        except Exception as error:  # noqa: BLE001 - the thread's edge: told to whoever waits
            self.opened.set_exception(error)
            self._refuse_everything(error)
            return
        self.opened.set_result(None)
        if store.remark:
            self._report(StoreError(store.remark))
        while not isinstance(item := self._next(store), _Close):
            self._take(store, item)
        self._write(store)
        try:
            store.close()
        except StoreError as error:
            self._report(error)

    @property
    def _waits(self) -> bool:
        return bool(self._pending or self._to_delete or self._messages_to_delete)

    @property
    def _due(self) -> float:
        """When to write it (time.monotonic())."""
        return max(self._last_write + INTERVAL_S, self._retry_at)

    def _next(self, store: Store) -> _Item:
        """The next item; while it waits, what is pending is written when its time has come, and an index of an older
        version is made again.
        """
        while self._indexing and not self._waits:
            try:
                return self._inbox.get(timeout=INDEX_PAUSE_S)
            except queue.Empty:
                self._index(store)
        while self._waits:
            try:
                return self._inbox.get(timeout=max(0.0, self._due - time.monotonic()))
            except queue.Empty:
                self._write(store)
        return self._inbox.get()

    def _index(self, store: Store) -> None:
        try:
            self._indexing = store.index_some()
        except Exception:  # noqa: BLE001 - the search goes on without; tried again with the next start
            self._indexing = False
            _log.warning("the search index is not complete", exc_info=True)

    def _take(self, store: Store, item: _Item) -> None:
        match item:
            case Conversation():
                self._deleted.discard(item.id)
                self._pending[item.id] = item
            case Message():
                if item.conversation not in self._deleted:
                    self._pending[item.id] = item
            case _Delete():
                self._delete(item.conversation)
            case _DeleteMessages():
                for name in item.messages:
                    self._pending.pop(name, None)
                self._messages_to_delete.update(dict.fromkeys(item.messages))
            case _Ask():
                self._write(store)
                self._answer(store, item)
            case _Close():
                raise AssertionError
        if self._waits and time.monotonic() >= self._due:
            self._write(store)

    def _answer(self, store: Store, item: _Ask) -> None:
        if not item.answer.set_running_or_notify_cancel():
            return
        try:
            item.answer.set_result(item.question(store))
        except Exception as error:  # noqa: BLE001 - the thread's edge: told to whoever asked
            item.answer.set_exception(error)

    def _delete(self, conversation: ConversationId) -> None:
        self._deleted.add(conversation)
        self._to_delete.add(conversation)
        for key, value in list(self._pending.items()):
            if key == conversation or (isinstance(value, Message) and value.conversation == conversation):
                del self._pending[key]

    def _write(self, store: Store) -> None:
        """Write everything pending. What a failing disk keeps out stays pending; what can never go in goes."""
        if not self._waits:
            return
        self._has_deleted |= bool(self._to_delete or self._messages_to_delete)
        try:
            try:
                store.refuse_removed()
                self._write_at_once(store)
            except Exception as error:  # of one of them, and the others must go in
                if isinstance(error, StoreError) and not _breaks_rule(error):
                    raise
                self._write_one_by_one(store)
            if self._has_deleted:
                store.forget_deleted()
                self._has_deleted = False
        except StoreError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - the thread's edge: what is put afterwards must not pay for it
            self._failed(StoreError(unexpected(error), repr(error)))
        if not self._waits:
            self._saved()
        self._last_write = time.monotonic()

    def _write_at_once(self, store: Store) -> None:
        with store.transaction():
            for conversation in self._to_delete:
                store.delete_conversation(conversation)
            store.delete_messages(self._messages_to_delete)
            for value in self._pending.values():
                _put(store, value)
        self._pending.clear()
        self._to_delete.clear()
        self._messages_to_delete.clear()

    def _write_one_by_one(self, store: Store) -> None:
        """One of them breaks a rule of the database and never goes in; only that one is dropped. What raises something
        else stays pending, and messages of such a conversation. Raises the first of those errors.
        """
        stuck: set[str] = set()
        first: Exception | None = None
        for conversation in tuple(self._to_delete):
            store.delete_conversation(conversation)
            self._to_delete.discard(conversation)
        store.delete_messages(self._messages_to_delete)
        self._messages_to_delete.clear()
        for key, value in tuple(self._pending.items()):
            try:
                _put(store, value)
            except StoreError as error:
                if not _breaks_rule(error):
                    raise
                if isinstance(value, Message) and value.conversation in stuck:
                    continue
                self._report(error)
            except Exception as error:  # noqa: BLE001 - as above
                stuck.add(key)
                first = first or error
                continue
            del self._pending[key]
        if first is not None:
            raise first

    def _failed(self, error: StoreError) -> None:
        self._retry_at = time.monotonic() + RETRY_S
        self._report(error)
        messages = [value for value in self._pending.values() if isinstance(value, Message)]
        whose = {m.conversation for m in messages} | {
            c.id for c in self._pending.values() if isinstance(c, Conversation)
        }
        n_deletions = len(self._to_delete) + len(self._messages_to_delete)
        self._tell(Unsaved(len(messages), n_deletions, str(error), frozenset(whose)))

    def _saved(self) -> None:
        self._last_sentence = ""
        self._tell(Unsaved())

    def _tell(self, unsaved: Unsaved) -> None:
        if unsaved != self._unsaved:
            self._unsaved = unsaved
            self._on_unsaved(unsaved)

    def _report(self, error: StoreError) -> None:
        """Once a sentence, until writing works again."""
        if str(error) == self._last_sentence:
            return
        self._last_sentence = str(error)
        _log.warning("%s (%s)", error, error.detail)
        self._on_error(error)

    def _refuse_everything(self, error: Exception) -> None:
        while not isinstance(item := self._inbox.get(), _Close):
            if isinstance(item, _Ask) and item.answer.set_running_or_notify_cancel():
                item.answer.set_exception(error)


def _breaks_rule(error: StoreError) -> bool:
    """Of the database, so that the same fails forever."""
    return error.detail.startswith("Constraint")


def _put(store: Store, value: Conversation | Message) -> None:
    if isinstance(value, Conversation):
        store.put_conversation(value)
    else:
        store.put_message(value)
