"""What can still be read of a damaged database, row by row, as a new file.

SQLite reads a whole table when it adds a column to it (STRICT tables, sqlite3AlterFinishAddColumn), so one bad page
would keep a home of an older kvdesk from being opened at all. The damaged file stays beside the new one.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import apsw

from kvdesk.store import schema
from kvdesk.translation import tr

TABLES = ("conversation", "message")


def salvage(connection: apsw.Connection, path: Path) -> str:
    """Put what `connection` can read of the database at `path` into a new file of the same version, in its place, and
    close the connection. Returns a sentence for the user. Raises apsw.Error, with everything as it was, where even
    that is impossible.
    """
    version = schema.pragma(connection, "user_version")
    part = path.with_name(path.name + ".salvaged.part")
    part.unlink(missing_ok=True)
    try:
        with closing(apsw.Connection(str(part))) as new:
            schema.create(new, version)
            lost = sum(_copy(connection, new, table) for table in TABLES)
        connection.close()
        damaged = _free_name(path)
        path.replace(damaged)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        part.replace(path)
    except OSError as error:
        raise apsw.CorruptError(f"and cannot be replaced: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    said = tr("at least {lost:,} of its rows").format(lost=lost) if lost else tr("a part of it")
    return tr(
        "The database was damaged: {said} could not be read. The rest is here; the damaged file is {name}."
    ).format(said=said, name=damaged.name)


def _copy(source: apsw.Connection, target: apsw.Connection, table: str) -> int:
    """Copy the rows that can be read; how many of those that are named could not be."""
    columns = [str(row[1]) for row in target.execute(f"PRAGMA table_info({table})")]
    sql = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    read = f"SELECT {', '.join(columns)} FROM {table} WHERE number = ?"
    lost = 0
    with target:
        for number in _numbers(source, table):
            try:
                for row in source.execute(read, (number,)):
                    target.execute(sql, row)
            except apsw.Error:
                lost += 1
    return lost


def _numbers(source: apsw.Connection, table: str) -> Iterator[int]:
    """Every number up to the highest that the table or its index by id still names."""
    highest = 0
    for sql in (
        f"SELECT number FROM {table} ORDER BY number DESC LIMIT 1",
        f"SELECT number FROM {table} INDEXED BY sqlite_autoindex_{table}_1",
    ):
        with suppress(apsw.Error):
            for (number,) in source.execute(sql):
                highest = max(highest, number)
    return iter(range(1, highest + 1))


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged{n or ''}") for n in range(1000))
    return next(name for name in names if not name.exists())
