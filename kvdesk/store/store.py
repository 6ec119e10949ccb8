"""Conversations and messages in one SQLite file, by one connection.

Owns the connection and the sentences said when it fails. Not for several threads: see `writer`. Must never know: Qt,
the engine, who asks.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from urllib.parse import quote

import apsw

from kvdesk.chat import Conversation
from kvdesk.errors import StoreError, StoreInUseError, explained
from kvdesk.message import ConversationId, Message, MessageId, system_message
from kvdesk.paths import open_regular
from kvdesk.store import rows, schema, search
from kvdesk.store.addition import Addition, insert
from kvdesk.store.salvage import finish_salvage, salvage
from kvdesk.store.search import SearchHit
from kvdesk.translation import marked, tr

MAGIC = b"SQLite format 3\0"
BUSY_MS = 2000  # another kvdesk may be about to end
_SOME_UNINDEXED = "SELECT number FROM unindexed ORDER BY number DESC LIMIT 50"
_INDEX_ONE = "INSERT INTO message_index (rowid, text) SELECT number, text FROM searchable_message WHERE number = ?"
INTERRUPTED_NOTE = marked("kvdesk ended before this answer was complete.")

_CONVERSATION = rows.selected(rows.CONVERSATION_COLUMNS)
_MESSAGE = rows.selected(rows.MESSAGE_COLUMNS)


def _upsert(table: str, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
    return f"{insert(table, columns)} ON CONFLICT (id) DO UPDATE SET {changes}"


_PUT_CONVERSATION = _upsert("conversation", rows.CONVERSATION_COLUMNS)
_PUT_MESSAGE = _upsert("message", rows.MESSAGE_COLUMNS)
_PUT_MESSAGE_AT = _upsert("message", ("number", *rows.MESSAGE_COLUMNS))


class Store:
    """The database. Every method may raise StoreError with one plain sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers: dict[MessageId, int] = {}  # of messages that were deleted, and may be put again
        with _plain_errors(path):
            self.remark = finish_salvage(path)  # what the user should know about the file, a sentence
            _look_first(path)
            self._connection = apsw.Connection(str(path))
            try:
                try:
                    self._open()
                except apsw.CorruptError:
                    if not self._is_older:
                        raise
                    self.remark = salvage(self._connection, path)
                    self._connection = apsw.Connection(str(path))
                    self._open()
            except BaseException:
                self._connection.close()
                raise

    # --- reading ---

    def conversations(self) -> tuple[Conversation, ...]:
        """All of them, without their messages, the one changed last first."""
        shown = "id NOT IN (SELECT conversation FROM adding)"
        sql = f"SELECT {_CONVERSATION} FROM conversation WHERE {shown} ORDER BY updated_ms DESC, number DESC"
        with self._reading():
            return tuple(rows.conversation_of(row) for row in self._connection.execute(sql))

    def all_messages(self, conversation: ConversationId) -> tuple[Message, ...]:
        """Every branch, in the order the messages were made."""
        with self._reading():
            return tuple(self._all(conversation))

    def has(self, conversation: ConversationId, messages: Iterable[MessageId]) -> bool:
        """Whether the conversation is there, with all these messages. Its system prompt counts as one."""
        wanted: list[tuple[str, str]] = [("conversation", conversation)]
        wanted += [("message", name) for name in messages if name != system_message(conversation)]
        with self._reading():
            found = (self._connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (name,)) for table, name in wanted)
            return all(row.fetchone() is not None for row in found)

    def search(self, text: str) -> tuple[SearchHit, ...]:
        """Titles, then messages, that hold every word of `text`; newest first."""
        words = search.words_of(text)
        if not words:
            return ()
        hits: list[SearchHit] = []
        with self._reading():
            for identity, title in self._connection.execute(*search.title_query(words)):
                name = rows.text_of(title)
                hits.append(SearchHit(ConversationId(str(identity)), None, name, name))
            for conversation, message, title, body, packed in self._connection.execute(*search.message_query(words)):
                texts = [rows.text_of(body), *(rows.attached_texts(packed) if packed else ())]
                around = search.excerpt(search.first_with(texts, words), words)
                name = rows.text_of(title)
                hits.append(SearchHit(ConversationId(str(conversation)), MessageId(str(message)), name, around))
        return tuple(hits)

    # --- writing ---

    def index_some(self) -> bool:
        """Add some messages of an older version to the search index, the newest first; False when that was all. The
        search finds those that wait too, only slower.
        """
        with self.transaction():
            some = self._connection.execute(_SOME_UNINDEXED).fetchall()
            self._connection.executemany(_INDEX_ONE, some)
            self._connection.executemany("DELETE FROM unindexed WHERE number = ?", some)
        return bool(some)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several writes as one: all of them or none."""
        with _plain_errors(self._path), self._connection:
            yield

    def refuse_removed(self) -> None:
        """Raises StoreError if the file is not in its place: SQLite would go on writing to one without a name."""
        with suppress(PermissionError):  # of its folder: it is still there
            if not self._path.exists():
                raise StoreError(
                    tr("The database {file} was removed while kvdesk has it open.").format(file=self._path)
                )

    def put_conversation(self, conversation: Conversation) -> None:
        """Insert or replace, without its messages."""
        with _plain_errors(self._path):
            self._connection.execute(_PUT_CONVERSATION, rows.conversation_row(conversation))

    def put_message(self, message: Message) -> None:
        """Insert or replace. Its conversation must be there."""
        with _plain_errors(self._path):
            row, number = rows.message_row(message), self._numbers.get(message.id)
            taken = "SELECT 1 FROM message WHERE number = ? OR id = ?"
            if number is None or self._connection.execute(taken, (number, message.id)).fetchone():
                self._connection.execute(_PUT_MESSAGE, row)
            else:
                self._connection.execute(_PUT_MESSAGE_AT, (number, *row))

    def begin_addition(self, conversations: Iterable[Conversation]) -> Addition:
        """New conversations with their messages, to be added step by step: all of them or none."""
        return Addition(self._connection, self.transaction, conversations)

    def add(self, conversations: Iterable[Conversation]) -> tuple[Conversation, ...]:
        """The same at once. Returns them as they are stored: with new ids where some were taken."""
        addition = self.begin_addition(conversations)
        addition.finish()
        return addition.added

    def leftover(self) -> Addition | None:
        """What is hidden because its addition did not come to its end, cancelled: steps remove it."""
        with self._reading():
            left = [
                ConversationId(str(name)) for (name,) in self._connection.execute("SELECT conversation FROM adding")
            ]
        if not left:
            return None
        addition = Addition(self._connection, self.transaction, (), left)
        addition.cancel()
        return addition

    def delete_conversation(self, conversation: ConversationId) -> None:
        """With all its messages; nothing happens when it is not there. `forget_deleted` wipes what is left of it."""
        with _plain_errors(self._path):
            self._connection.execute("DELETE FROM conversation WHERE id = ?", (conversation,))

    def delete_messages(self, messages: Iterable[MessageId]) -> None:
        """Single messages; nothing happens for one that is not there. Put again, they are at their old place."""
        with _plain_errors(self._path):
            for message in messages:
                sql = "DELETE FROM message WHERE id = ? RETURNING number"
                for (number,) in self._connection.execute(sql, (message,)):
                    self._numbers[message] = number

    def forget_deleted(self) -> None:
        """Nothing of what was deleted stays on the disk: pages were zeroed (`secure_delete`), the write-ahead log that
        still holds them is emptied, and backups from before go.
        """
        with _plain_errors(self._path):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            schema.remove_backups(self._path)

    def close(self) -> None:
        with _plain_errors(self._path):
            self._connection.close()

    # --- inside ---

    def _open(self) -> None:
        connection = self._connection
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("locking_mode", "exclusive")  # one kvdesk at a time; the lock goes with the process
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        schema.refuse_foreign(connection, self._path)
        schema.migrate(connection, self._path)
        note = "CASE note WHEN '' THEN ? ELSE note END"
        connection.execute(
            f"UPDATE message SET state = 'interrupted', note = {note} WHERE state = 'streaming'",
            (tr(INTERRUPTED_NOTE),),
        )

    @property
    def _is_older(self) -> bool:
        """Whether it could not be brought to this version."""
        return 0 < schema.pragma(self._connection, "user_version") < schema.VERSION

    def _all(self, conversation: ConversationId) -> Iterator[Message]:
        sql = f"SELECT {_MESSAGE} FROM message WHERE conversation = ? ORDER BY number"
        return (rows.message_of(row) for row in self._connection.execute(sql, (conversation,)))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _plain_errors(self._path):
            yield


def _look_first(path: Path) -> None:
    """Read-only: refuse what is not ours before anything could change a byte of it."""
    try:
        with open_regular(path) as file:
            begin = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(
            tr("The database {file} cannot be read ({why}).").format(file=path.name, why=error.strerror), str(error)
        ) from error
    if not begin:
        return
    if begin != MAGIC:
        raise StoreError(tr("{file} is not a database; kvdesk leaves it as it is.").format(file=path.name))
    # Without a journal nothing but the file counts, and opened as immutable no file appears beside it. Beside a
    # journal none appears if the lock is exclusive: its index (-shm) is in memory then. On a full disk it has no room,
    # and SQLite says "disk I/O error". An exclusive lock needs a file that may be written.
    has_journal = path.with_name(path.name + "-wal").exists()
    locks = has_journal and os.access(path, os.W_OK)
    flags = (apsw.SQLITE_OPEN_READWRITE if locks else apsw.SQLITE_OPEN_READONLY) | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri_of(path.absolute()) + ("" if has_journal else "?immutable=1"), flags=flags)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if locks:
            connection.pragma("locking_mode", "exclusive")
        schema.refuse_foreign(connection, path)
    finally:
        with suppress(apsw.Error):
            connection.close()


def uri_of(path: PurePath) -> str:
    """An absolute path as SQLite reads it (uri.html): without a host, which pathlib puts there for a folder of another
    computer on Windows, and which SQLite refuses.
    """
    posix = path.as_posix()
    return f"file://{'' if posix.startswith('/') else '/'}{quote(os.fsencode(posix), safe='/:')}"


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """What apsw and the system raise, as one sentence for a user; the technical part goes into `detail`."""
    try:
        with explained(tr("The database {file} cannot be used ({why})."), StoreError, file=path.name):
            yield
    except apsw.Error as error:
        kind = StoreInUseError if isinstance(error, apsw.BusyError | apsw.LockedError) else StoreError
        raise kind(_sentence(error, path), f"{type(error).__name__}: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(tr("The database {file} is damaged.").format(file=path.name), str(error)) from error
    except UnicodeEncodeError as error:  # the name of a folder that is no UTF-8: SQLite takes no other
        raise StoreError(tr("The database {name} cannot be opened.").format(name=path.name), repr(error)) from error


def _sentence(error: apsw.Error, path: Path) -> str:
    match error:
        case apsw.NotADBError():
            return tr("{name} is not a database; kvdesk leaves it as it is.").format(name=path.name)
        case apsw.CorruptError():
            return tr("The database {name} is damaged.").format(name=path.name)
        case apsw.BusyError() | apsw.LockedError():
            return tr("The conversations are open in another kvdesk.")
        case apsw.FullError():
            return tr("The disk is full: the conversation cannot be saved.")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return tr("The database {name} cannot be written.").format(name=path.name)
        case apsw.CantOpenError():
            return tr("The database {name} cannot be opened.").format(name=path.name)
        case apsw.ConstraintError():
            return tr("A message could not be saved: its conversation is not in the database.")
        case _:
            return tr("The database {name} cannot be used.").format(name=path.name)
