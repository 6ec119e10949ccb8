"""The tables and how they came about: numbered migrations, preceded by a copy of the file.

Owns `user_version` and the decision whether a file is ours to open. Must never know: what rows mean.
"""

import logging
from contextlib import closing, suppress
from pathlib import Path

import apsw

from kvdesk.errors import StoreError
from kvdesk.store.search import teach
from kvdesk.translation import tr
from kvdesk.whole_file import replacing

APPLICATION_ID = 0x6B76646B  # "kvdk" in the file's header: tells our files from other SQLite files

# MIGRATIONS[n] leads from version n to n + 1. A migration that has been released is never changed.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE conversation (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        colour INTEGER NOT NULL,
        leaf TEXT,
        system_prompt TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX conversation_by_time ON conversation (updated_ms);

    CREATE TABLE message (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        parent TEXT,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        tokens BLOB NOT NULL,
        stats TEXT,
        note TEXT NOT NULL,
        created_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX message_by_conversation ON message (conversation, number);
    CREATE INDEX message_by_parent ON message (parent, number);
    CREATE INDEX message_streaming ON message (state) WHERE state = 'streaming';

    -- Search: trigrams find parts of words in every script. A message is indexed once it no longer streams.
    CREATE VIRTUAL TABLE message_index
    USING fts5 (text, content = 'message', content_rowid = 'number', tokenize = 'trigram');
    CREATE TRIGGER message_indexed AFTER INSERT ON message WHEN new.state <> 'streaming' BEGIN
        INSERT INTO message_index (rowid, text) VALUES (new.number, new.text);
    END;
    CREATE TRIGGER message_unindexed AFTER DELETE ON message WHEN old.state <> 'streaming' BEGIN
        INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.number, old.text);
    END;
    CREATE TRIGGER message_completed AFTER UPDATE ON message
    WHEN old.state = 'streaming' AND new.state <> 'streaming' BEGIN
        INSERT INTO message_index (rowid, text) VALUES (new.number, new.text);
    END;
    CREATE TRIGGER message_resumed AFTER UPDATE ON message
    WHEN old.state <> 'streaming' AND new.state = 'streaming' BEGIN
        INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.number, old.text);
    END;
    CREATE TRIGGER message_changed AFTER UPDATE ON message
    WHEN old.state <> 'streaming' AND new.state <> 'streaming' AND old.text <> new.text BEGIN
        INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.number, old.text);
        INSERT INTO message_index (rowid, text) VALUES (new.number, new.text);
    END;
    """,
    "ALTER TABLE conversation ADD COLUMN overflow TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE conversation ADD COLUMN departed TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE message ADD COLUMN model TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE conversation ADD COLUMN draft TEXT NOT NULL DEFAULT '';",
    # Words of a deleted message leave the index at once, not at some later merge (SQLite's fts5.html, 'secure-delete').
    """
    INSERT INTO message_index (message_index, rank) VALUES ('secure-delete', 1);
    INSERT INTO message_index (message_index) VALUES ('rebuild');
    DELETE FROM message_index WHERE rowid IN (SELECT number FROM message WHERE state = 'streaming');
    """,
    "ALTER TABLE conversation ADD COLUMN queued TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE message ADD COLUMN digest BLOB;",  # `rows.digest_of`; NULL in rows that were written before
    """
    ALTER TABLE conversation ADD COLUMN sampling TEXT NOT NULL DEFAULT '';
    ALTER TABLE conversation ADD COLUMN template TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE conversation ADD COLUMN folder TEXT NOT NULL DEFAULT '';
    ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE conversation ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    """,
    # Search in attachments: of their names and texts as `rows.pack_attachments` writes them.
    """
    ALTER TABLE conversation ADD COLUMN draft_attachments TEXT NOT NULL DEFAULT '';
    ALTER TABLE message ADD COLUMN attachments TEXT NOT NULL DEFAULT '';
    CREATE VIRTUAL TABLE attachment_index
    USING fts5 (attachments, content = 'message', content_rowid = 'number', tokenize = 'trigram');
    INSERT INTO attachment_index (attachment_index, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER attachments_indexed AFTER INSERT ON message WHEN new.attachments <> '' BEGIN
        INSERT INTO attachment_index (rowid, attachments) VALUES (new.number, new.attachments);
    END;
    CREATE TRIGGER attachments_unindexed AFTER DELETE ON message WHEN old.attachments <> '' BEGIN
        INSERT INTO attachment_index (attachment_index, rowid, attachments)
        VALUES ('delete', old.number, old.attachments);
    END;
    CREATE TRIGGER attachments_changed AFTER UPDATE ON message WHEN old.attachments <> new.attachments BEGIN
        INSERT INTO attachment_index (attachment_index, rowid, attachments)
        SELECT 'delete', old.number, old.attachments WHERE old.attachments <> '';
        INSERT INTO attachment_index (rowid, attachments)
        SELECT new.number, new.attachments WHERE new.attachments <> '';
    END;
    """,
    "ALTER TABLE message ADD COLUMN thought_ms INTEGER NOT NULL DEFAULT 0;",
    """
    ALTER TABLE message ADD COLUMN finish TEXT NOT NULL DEFAULT '';
    ALTER TABLE message ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
    """,
    "CREATE TABLE adding (conversation TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;",  # `addition`: these are not shown
    # One index of folded texts and attachments (`search.teach`). `unindexed` is what `Store.index_some` has yet to add.
    """
    DROP TRIGGER message_indexed;
    DROP TRIGGER message_unindexed;
    DROP TRIGGER message_completed;
    DROP TRIGGER message_resumed;
    DROP TRIGGER message_changed;
    DROP TRIGGER attachments_indexed;
    DROP TRIGGER attachments_unindexed;
    DROP TRIGGER attachments_changed;
    DROP TABLE message_index;
    DROP TABLE attachment_index;
    CREATE TABLE unindexed (number INTEGER PRIMARY KEY) STRICT;
    INSERT INTO unindexed SELECT number FROM message WHERE state <> 'streaming';
    CREATE VIEW searchable_message AS
    SELECT number, searchable(CAST(text AS BLOB), CAST(attachments AS BLOB)) AS text
    FROM message WHERE state <> 'streaming';
    CREATE VIRTUAL TABLE message_index
    USING fts5 (text, content = 'searchable_message', content_rowid = 'number', tokenize = 'trigram case_sensitive 1');
    INSERT INTO message_index (message_index, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER message_indexed AFTER INSERT ON message WHEN new.state <> 'streaming' BEGIN
        INSERT INTO message_index (rowid, text)
        VALUES (new.number, searchable(CAST(new.text AS BLOB), CAST(new.attachments AS BLOB)));
    END;
    CREATE TRIGGER message_unindexed AFTER DELETE ON message WHEN old.state <> 'streaming' BEGIN
        INSERT INTO message_index (message_index, rowid, text)
        SELECT 'delete', old.number, searchable(CAST(old.text AS BLOB), CAST(old.attachments AS BLOB))
        WHERE old.number NOT IN (SELECT number FROM unindexed);
        DELETE FROM unindexed WHERE number = old.number;
    END;
    CREATE TRIGGER message_changed AFTER UPDATE ON message
    WHEN (old.state = 'streaming') <> (new.state = 'streaming')
    OR (new.state <> 'streaming' AND (old.text <> new.text OR old.attachments <> new.attachments)) BEGIN
        INSERT INTO message_index (message_index, rowid, text)
        SELECT 'delete', old.number, searchable(CAST(old.text AS BLOB), CAST(old.attachments AS BLOB))
        WHERE old.state <> 'streaming' AND old.number NOT IN (SELECT number FROM unindexed);
        DELETE FROM unindexed WHERE number = old.number;
        INSERT INTO message_index (rowid, text)
        SELECT new.number, searchable(CAST(new.text AS BLOB), CAST(new.attachments AS BLOB))
        WHERE new.state <> 'streaming';
    END;
    """,
    "ALTER TABLE message ADD COLUMN probabilities BLOB NOT NULL DEFAULT x'';",  # `protocol.logprobs.pack`
    # Tools: which servers' a chat has, and of messages what a template sees of calls, and the call of a result.
    """
    ALTER TABLE conversation ADD COLUMN tools TEXT NOT NULL DEFAULT '';
    ALTER TABLE message ADD COLUMN fields TEXT NOT NULL DEFAULT '';
    ALTER TABLE message ADD COLUMN tool_use TEXT NOT NULL DEFAULT '';
    """,
    "ALTER TABLE conversation ADD COLUMN thinking TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE conversation ADD COLUMN edits TEXT NOT NULL DEFAULT '';",
)
VERSION = len(MIGRATIONS)
_log = logging.getLogger(__name__)

LATER = ("CREATE INDEX IF NOT EXISTS message_attached ON message (number) WHERE attachments <> ''",)
"""What only makes questions faster, and reads every row: where a page is damaged it is left out, and the rest opens."""


def pragma(connection: apsw.Connection, name: str) -> int:
    value = connection.pragma(name)
    assert isinstance(value, int), name
    return value


def refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """Read-only. Raises when the file is a newer kvdesk's, or not kvdesk's at all."""
    found = pragma(connection, "user_version")
    if pragma(connection, "application_id") != APPLICATION_ID:
        if found or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
            raise StoreError(
                tr("{file} is a database of another program; kvdesk leaves it as it is.").format(file=path.name)
            )
    elif found > VERSION:
        raise StoreError(
            tr(
                "The conversations were saved by a newer kvdesk (format {found}, this one knows {version}); they "
                "are left as they are. Please update kvdesk."
            ).format(found=found, version=VERSION)
        )


def migrate(connection: apsw.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the database to the last version, one version and one transaction at a time."""
    found = pragma(connection, "user_version")
    teach(connection)
    if 0 < found < len(migrations):  # a new file has nothing to lose
        back_up(connection, path.with_name(f"{path.name}.v{found}.backup"))
    for version in range(found, len(migrations)):
        with connection:
            connection.execute(migrations[version])
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version + 1)
    for statement in LATER:
        with suppress(apsw.Error):
            connection.execute(statement)
    if 0 < found < len(migrations):
        with suppress(apsw.Error):  # a full disk, a damaged page
            connection.execute("VACUUM")  # no page keeps what was deleted before pages were zeroed


def create(connection: apsw.Connection, version: int) -> None:
    """The tables of a version in an empty file."""
    with connection:
        teach(connection)
        for migration in MIGRATIONS[:version]:
            connection.execute(migration)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", version)


def back_up(connection: apsw.Connection, target: Path) -> None:
    """A whole copy beside the file, complete or not there: then nothing of it takes room either."""
    with replacing(target) as part, closing(apsw.Connection(str(part))) as copy:
        copy.pragma("journal_mode", "off")  # a part needs none, and a kill would leave it there
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1000)


def remove_backups(path: Path) -> None:
    """Delete the copies that `migrate` made, which hold what has been deleted since. The log names what stays."""
    for backup in path.parent.glob(f"{path.name}.v*.backup*"):
        try:
            backup.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("an old copy of the conversations cannot be deleted: %s", error)
