"""What can still be read of a damaged database, row by row, as a new file.

SQLite reads a whole table when it adds a column to it (STRICT tables, sqlite3AlterFinishAddColumn), so one bad page
would keep a home of an older kvdesk from being opened at all. The damaged file stays beside the new one.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

import apsw

from kvdesk.store import schema
from kvdesk.translation import tr

TABLES = ("conversation", "message")
_MOST_TRIED: Final = 1_000_000
"""Numbers of rows that nothing names any more: a damaged one may be far above all others."""


def salvage(connection: apsw.Connection, path: Path) -> str:
    """Put what `connection` can read of the database at `path` into a new file of the same version, in its place, and
    close the connection. Returns a sentence for the user. Raises apsw.Error and OSError, with everything as it was,
    where even that is impossible.
    """
    version = schema.pragma(connection, "user_version")
    part = _part(path)
    try:
        part.unlink(missing_ok=True)
        with closing(apsw.Connection(str(part))) as new, new:
            schema.create(new, version)
            lost = sum(_copy(connection, new, table) for table in TABLES)
            with suppress(apsw.Error):  # an older version has no such table
                hidden = connection.execute("SELECT conversation FROM adding")
                new.executemany("INSERT OR IGNORE INTO adding VALUES (?)", hidden)
        connection.close()
        path.replace(next(name for name in _damaged_names(path) if not name.exists()))
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return finish_salvage(path, lost)


def finish_salvage(path: Path, lost: int = 0) -> str:
    """If the damaged database has left its place and the new one is not there yet, put it there, also after a kill.
    Returns a sentence for the user; "" if there is nothing to do. Raises OSError; the next start tries it again.
    """
    part = _part(path)
    if path.exists() or not part.exists() or part.with_name(part.name + "-journal").exists():  # not whole
        return ""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    part.replace(path)
    said = tr("at least {lost:,} of its rows").format(lost=lost) if lost else tr("a part of it")
    damaged = [path, *takewhile(Path.exists, _damaged_names(path))][-1]
    return tr(
        "The database was damaged: {said} could not be read. The rest is here; the damaged file is {name}."
    ).format(said=said, name=damaged.name)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".salvaged.part")


def _damaged_names(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}.damaged{n or ''}") for n in range(1000))


def _copy(source: apsw.Connection, target: apsw.Connection, table: str) -> int:
    """Copy the rows that can be read; how many of those that are named could not be."""
    columns = [str(row[1]) for row in target.execute(f"PRAGMA table_info({table})")]
    sql = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    read = f"SELECT {', '.join(columns)} FROM {table} WHERE number = ?"
    named, gap = _numbers(source, table)
    lost = 0
    for number in sorted(named.union(gap)):
        try:
            for row in source.execute(read, (number,)):
                target.execute(sql, row)
        except apsw.Error:
            lost += number in named
    return lost


def _numbers(source: apsw.Connection, table: str) -> tuple[set[int], range]:
    """Those of rows that the table or its index by id still names from either end, and those that may be in the gap
    between the ends of the table.
    """
    by_id = f"{table} INDEXED BY sqlite_autoindex_{table}_1 ORDER BY id"
    ends = [_read(source, f"{table} NOT INDEXED ORDER BY number{way}") for way in ("", " DESC")]
    named = ends[0].union(ends[1], *(_read(source, by_id + way) for way in ("", " DESC")))
    first, last = max(ends[0], default=0), min(ends[1], default=max(named, default=0))
    return named, range(first + 1, min(last, first + 1 + _MOST_TRIED))


def _read(source: apsw.Connection, rows: str) -> set[int]:
    """The numbers up to the first that cannot be read."""
    found = set[int]()
    with suppress(apsw.Error):
        found.update(number for (number,) in source.execute(f"SELECT number FROM {rows}"))
    return found
