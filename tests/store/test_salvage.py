"""A damaged home of an older kvdesk opens with all that can be read, whatever is damaged and whenever it is killed."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw

from kvdesk.message import ConversationId
from kvdesk.store import Store, schema
from tests.store.values import conversation, message

FIRST, SECOND = ConversationId("first"), ConversationId("second")
PAGE = 4096


def fill(path: Path, version: int, *statements: str) -> None:
    """Two chats with 40 messages each, by a kvdesk of that version."""
    with closing(apsw.Connection(str(path))) as connection:
        schema.create(connection, version)
        for name in (FIRST, SECOND):
            connection.execute(
                "INSERT INTO conversation (id, title, colour, system_prompt, created_ms, updated_ms)"
                " VALUES (?, ?, 0, '', 1, 1)",
                (name, f"The {name}"),
            )
            for n in range(40):
                connection.execute(
                    "INSERT INTO message (id, conversation, role, text, state, tokens, note, created_ms)"
                    " VALUES (?, ?, 'user', ?, 'complete', x'', '', 1)",
                    (f"{name}{n}", name, f"{name} number {n} " * 60),
                )
        for statement in statements:
            connection.execute(statement)
        connection.execute("VACUUM")


def scribble(path: Path, *texts: bytes) -> None:
    """Over the first page that has each of the texts."""
    content = bytearray(path.read_bytes())
    for text in texts:
        at = content.index(text) // PAGE * PAGE
        content[at : at + PAGE] = b"\xee" * PAGE
    path.write_bytes(content)


def titles(store: Store) -> set[str]:
    return {known.title for known in store.conversations()}


def test_a_damaged_page_of_an_older_home_hides_no_other_chat(path: Path) -> None:
    """Bringing it to this version must not need to read every row."""
    fill(path, 8)  # kvdesk 0.1.0
    scribble(path, b"second number 20 ")
    with closing(Store(path)) as store:
        assert titles(store) == {"The first", "The second"}
        assert len(store.all_messages(FIRST)) == 40
        second = store.all_messages(SECOND)
        assert 30 < len(second) < 40
        assert all(known.text.startswith("second number") for known in second)
        n = 40 - len(second)
        assert store.remark.startswith(f"The database was damaged: at least {n} of its rows could not be read.")
        assert b"\xee" * PAGE in path.with_name(f"{path.name}.damaged").read_bytes()
        store.put_conversation(conversation())
        store.put_message(message("new", "goes on"))
        assert [hit.message for hit in store.search("goes on")] == ["new"]


def test_rows_between_damaged_pages_are_found_without_the_index(path: Path) -> None:
    fill(path, 8)
    content = path.read_bytes()
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    (index,) = (page for page in pages if b"second20" in page and b" number " not in page)
    scribble(path, index, b"second number 5 ", b"second number 30 ")
    with closing(Store(path)) as store:
        found = {known.id for known in store.all_messages(SECOND)}
        assert {"second0", "second20", "second39"} <= found
        assert not {"second5", "second30"} & found


def test_a_number_far_above_all_others_is_no_endless_search(path: Path) -> None:
    values = "'far', 'first', 'user', 'x', 'complete', x'', '', 1"
    columns = "number, id, conversation, role, text, state, tokens, note, created_ms"
    fill(path, 8, f"INSERT INTO message ({columns}) VALUES (1 << 62, {values})")
    scribble(path, b"second number 20 ")
    with closing(Store(path)) as store:
        assert len(store.all_messages(FIRST)) == 41
        n = 40 - len(store.all_messages(SECOND))
        assert f"at least {n} of its rows" in store.remark


def test_a_chat_that_was_being_imported_stays_hidden(path: Path) -> None:
    version = next(n for n, sql in enumerate(schema.MIGRATIONS) if "CREATE TABLE unindexed" in sql)
    fill(path, version, "INSERT INTO adding VALUES ('second')")
    scribble(path, b"second number 20 ")
    with closing(Store(path)) as store:
        assert store.remark
        assert titles(store) == {"The first"}
        assert store.leftover() is not None


def test_a_kill_between_the_two_files_loses_nothing(path: Path, tmp_path: Path) -> None:
    fill(path, 8)
    scribble(path, b"second number 20 ")
    Store(path).close()
    path.replace(path.with_name(f"{path.name}.salvaged.part"))
    other = tmp_path / "other.sqlite3"
    with closing(Store(other)) as store:  # a journal that would be played into whatever file is beside it
        store.put_conversation(conversation())
        shutil.copy(f"{other}-wal", f"{path}-wal")
    with closing(Store(path)) as store:
        assert titles(store) == {"The first", "The second"}
        assert store.remark.startswith("The database was damaged: a part of it could not be read.")
        assert f"the damaged file is {path.name}.damaged." in store.remark
    with closing(Store(path)) as store:
        assert not store.remark


def test_what_a_kill_left_unfinished_is_not_taken(path: Path) -> None:
    part = path.with_name(f"{path.name}.salvaged.part")
    part.write_bytes(b"half")
    part.with_name(f"{part.name}-journal").touch()
    with closing(Store(path)) as store:
        assert (store.conversations(), store.remark) == ((), "")
