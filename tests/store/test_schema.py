"""Whose file it is, how it gets from version to version, and that a file which is not ours is left byte for byte."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from kvdesk.chat import NONE_EVICTED, QueuedMessage
from kvdesk.errors import StoreError
from kvdesk.message import Attachment, ConversationId, MessageId, finish_of
from kvdesk.protocol.logprobs import pack
from kvdesk.settings import Sampling
from kvdesk.store import Store, schema
from kvdesk.values import replace
from tests.protocol.logprobs import answer_logprobs
from tests.store.values import C, conversation, filled_before, message

Open = Callable[[], Store]


@pytest.fixture
def open_store(path: Path) -> Iterator[Open]:
    """Opens the database, which is closed before it is opened again and at the end."""
    opened: list[Store] = []

    def opens() -> Store:
        if opened:
            opened.pop().close()
        opened.append(Store(path))
        return opened[-1]

    yield opens
    for store in opened:
        store.close()


def filled(path: Path) -> None:
    store = Store(path)
    store.put_conversation(conversation())
    store.put_message(message("a", "kept"))
    store.close()


def bytes_beside(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}


# --- not ours -------------------------------------------------------------------------------------------------------


def test_a_newer_database_is_refused_and_left_byte_for_byte(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    before = bytes_beside(path)
    with pytest.raises(StoreError, match="saved by a newer kvdesk"):
        Store(path)
    assert bytes_beside(path) == before


def test_a_newer_database_with_an_unfinished_journal_is_left_byte_for_byte(path: Path) -> None:
    """The version may be in the journal only: after a newer kvdesk was killed."""
    filled(path)
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.pragma("journal_mode", "wal")
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    before = bytes_beside(path)
    assert len(before[f"{path.name}-wal"]) > 0
    with pytest.raises(StoreError, match="saved by a newer kvdesk"):
        Store(path)
    assert bytes_beside(path) == before


def test_a_database_of_another_program_is_left_byte_for_byte(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE bookmark (url TEXT)")
    connection.close()
    before = bytes_beside(path)
    with pytest.raises(StoreError, match="database of another program"):
        Store(path)
    assert bytes_beside(path) == before


@pytest.mark.parametrize(
    "content", [b"x", b"This is a diary, not a database.\n" * 100, b"SQLite format 2\0" + bytes(4096)]
)
def test_a_file_that_is_not_a_database_is_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a database"):
        Store(path)
    assert bytes_beside(path) == {path.name: content}


def test_a_folder_is_not_a_database(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        Store(path)


def test_a_folder_that_does_not_exist_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "missing" / "kvdesk.sqlite3")


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    filled(path)
    assert path.stat().st_size > 0


@pytest.mark.parametrize("page_size_offset", [16, 100])
def test_a_damaged_start_is_a_sentence(path: Path, page_size_offset: int) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[page_size_offset : page_size_offset + 60] = b"\xa5" * 60
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged|is not a database"):
        Store(path)


def test_every_way_a_file_can_be_cut_or_scribbled_on_is_a_sentence_or_works(path: Path) -> None:
    """Whatever is damaged, the answer is a value or a StoreError; never another exception, never a dead process."""
    store = Store(path)
    store.put_conversation(conversation())
    for number in range(60):
        store.put_message(message(f"m{number}", f"message number {number} " * 40))
    store.close()
    whole = path.read_bytes()
    damaged = [whole[: len(whole) * cut // 16] for cut in range(1, 16)]
    scribble = b"\xee" * 700
    starts = range(4096, len(whole), len(whole) // 24)
    damaged += [whole[:start] + scribble + whole[start + len(scribble) :] for start in starts]
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            store = Store(path)
        except StoreError:
            refused += 1
            continue
        refused += _answers_or_refuses(store)
    assert refused > len(damaged) // 2


def _answers_or_refuses(store: Store) -> bool:
    try:
        store.conversations()
        store.all_messages(ConversationId("c"))
        store.search("number 59")
        store.put_message(message("new", "one more"))
    except StoreError:
        return True
    finally:
        store.close()
    return False


# --- migrations -----------------------------------------------------------------------------------------------------


def test_a_new_database_has_the_last_version_and_no_backup(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    assert schema.pragma(connection, "user_version") == schema.VERSION
    assert schema.pragma(connection, "application_id") == schema.APPLICATION_ID
    connection.close()
    assert list(bytes_beside(path)) == [path.name]


def test_migrations_keep_what_was_there_and_one_copy_of_the_file(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    added = "ALTER TABLE message ADD COLUMN mood TEXT", "UPDATE message SET mood = 'calm'"
    schema.migrate(connection, path, schema.MIGRATIONS + added)
    assert schema.pragma(connection, "user_version") == schema.VERSION + 2
    assert connection.execute("SELECT text, mood FROM message").fetchall() == [("kept", "calm")]
    connection.close()

    backups = list(path.parent.glob("*.backup"))
    assert backups == [path.with_name(f"{path.name}.v{schema.VERSION}.backup")]
    copy = Store(backups[0])
    assert [m.text for m in copy.all_messages(ConversationId("c"))] == ["kept"]
    copy.close()


def test_a_migration_that_fails_leaves_the_old_version(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    broken = "ALTER TABLE message ADD COLUMN mood TEXT; INSERT INTO nowhere VALUES (1)"
    with pytest.raises(apsw.SQLError):
        schema.migrate(connection, path, (*schema.MIGRATIONS, broken))
    assert schema.pragma(connection, "user_version") == schema.VERSION
    connection.close()
    filled(path)


def test_the_backup_is_made_whole_or_not_at_all(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    target = path.with_name("copy")
    target.with_name(f"copy.{os.getpid()}.part").write_bytes(b"left by a crash")
    schema.back_up(connection, target)
    connection.close()
    Store(target).close()
    assert not list(path.parent.glob("*.part"))


KILLED = """
import resource, signal, sys
from pathlib import Path
import apsw
from kvdesk.store import schema
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
schema.back_up(apsw.Connection(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX kills it")
def test_a_kill_leaves_one_part_that_the_next_backup_removes(path: Path) -> None:
    Store(path).close()
    target = path.with_name("copy")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path), str(target)], check=False)
    assert ended.returncode == -signal.SIGXFSZ
    assert [file.suffix for file in path.parent.glob("copy*")] == [".part"]
    with closing(apsw.Connection(str(path))) as connection:
        schema.back_up(connection, target)
    assert list(path.parent.glob("copy*")) == [target]


def test_a_backup_that_cannot_be_made_is_a_sentence(path: Path) -> None:
    version = filled_before(path, "digest")
    path.with_name(f"{path.name}.v{version}.backup").mkdir()
    with pytest.raises(StoreError, match=r"The database kvdesk.sqlite3 cannot be used \("):
        Store(path)


def test_a_backup_that_finds_no_room_takes_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    open_, opened = apsw.Connection, list[apsw.Connection]()

    def small(name: str) -> apsw.Connection:
        opened.append(open_(name))
        opened[-1].pragma("max_page_count", 1)
        return opened[-1]

    monkeypatch.setattr(apsw, "Connection", small)
    with pytest.raises(apsw.FullError):
        schema.back_up(connection, path.with_name("copy"))
    connection.close()
    assert opened
    assert list(path.parent.glob("copy*")) == []


def test_conversations_of_the_first_release_have_all_their_messages_in_the_context(
    path: Path, open_store: Open
) -> None:
    filled_before(path, "departed", overflow="slide")
    (old,) = open_store().conversations()
    assert (old.title, old.overflow, old.evicted) == ("Old", "slide", NONE_EVICTED)


def test_conversations_of_before_have_no_draft(path: Path, open_store: Open) -> None:
    filled_before(path, "draft")
    store = open_store()
    (old,) = store.conversations()
    assert (old.draft, old.queued, old.edits) == ("", (), ())
    queued, edits = (QueuedMessage("a \ud83e"), QueuedMessage("[]")), ((MessageId("m"), "b \ud83e"),)
    store.put_conversation(replace(old, draft="half a \ud83e thought", queued=queued, edits=edits))
    (new,) = store.conversations()
    assert new.edits == ((MessageId("m"), "b \ufffd"),)
    assert (new.draft, new.queued) == ("half a \ufffd thought", (QueuedMessage("a \ufffd"), QueuedMessage("[]")))


def test_messages_of_before_have_no_digest_and_are_as_they_were(path: Path, open_store: Open) -> None:
    filled_before(path, "digest", ("a", "kept"))
    store = open_store()
    (old,) = store.all_messages(C)
    assert old == replace(message("a", "kept"), model="")
    store.put_message(old)
    assert store._connection.execute("SELECT length(digest) FROM message").fetchall() == [(8,)]
    assert store.all_messages(C) == (old,)


def test_conversations_of_before_have_the_settings_sampling_and_the_models_template(
    path: Path, open_store: Open
) -> None:
    filled_before(path, "sampling", system_prompt="Be kind.")
    store = open_store()
    (old,) = store.conversations()
    assert (old.system_prompt, old.sampling, old.template) == ("Be kind.", None, "")
    own = replace(old, sampling=Sampling(top_k=7, temperature=0.0), template="{{ messages[0].content }}\u2028")
    store.put_conversation(own)
    assert store.conversations() == (own,)


def test_conversations_of_before_are_in_no_folder(path: Path, open_store: Open) -> None:
    filled_before(path, "folder")
    store = open_store()
    (old,) = store.conversations()
    assert (old.folder, old.pinned, old.archived) == ("", False, False)
    store.put_conversation(replace(old, folder="W\ud83erk", pinned=True, archived=True))
    (new,) = store.conversations()
    assert (new.folder, new.pinned, new.archived) == ("W\ufffdrk", True, True)


def test_messages_of_before_have_no_attachments_and_can_get_some(path: Path, open_store: Open) -> None:
    filled_before(path, "attachments", draft="half", queued='["next"]')
    store = open_store()
    (old,) = store.conversations()
    assert (old.draft, old.draft_attachments, old.queued) == ("half", (), (QueuedMessage("next"),))
    store.put_message(message("a"))
    assert store.search("lighthouse") == ()
    attached = replace(message("a"), attachments=(Attachment("notes.txt", "text", "The lighthouse keeper"),))
    store.put_message(attached)
    assert store.all_messages(C) == (attached,)
    assert [hit.message for hit in store.search("lighthouse")] == ["a"]


def test_messages_of_before_have_no_time_of_reasoning_and_later_ones_keep_theirs(path: Path, open_store: Open) -> None:
    filled_before(path, "thought_ms", ("a", "kept"))
    store = open_store()
    (old,) = store.all_messages(C)
    assert (old.text, old.thought_ms) == ("kept", 0)
    store.put_message(replace(old, thought_ms=12_300))
    assert store.all_messages(C)[0].thought_ms == 12_300


def test_messages_of_before_are_not_pinned_and_tell_why_they_ended_by_their_state(path: Path, open_store: Open) -> None:
    ends = [
        ("complete", "Ended at the limit of 24 tokens.", "limit"),
        ("stopped", "The context of 256 tokens is full. The answer ends here.", "context full"),
        ("stopped", "", "stopped"),
        ("complete", "", "end"),
        ("stopped", "Another model was opened.", "interrupted"),
    ]
    filled_before(path, "finish", *((f"m{n}", "kept", "assistant", *end[:2]) for n, end in enumerate(ends)))
    store = open_store()
    old = store.all_messages(C)
    assert [finish_of(m) for m in old] == [end[2] for end in ends]
    assert not any(m.pinned for m in old)
    store.put_message(replace(old[0], finish="edited", pinned=True))
    new = store.all_messages(C)[0]
    assert (new.finish, new.pinned) == ("edited", True)


def test_an_index_of_before_is_made_again_step_by_step_and_the_search_finds_all_meanwhile(
    path: Path, open_store: Open
) -> None:
    filled_before(path, "CREATE TABLE unindexed", *((f"m{n}", f"Straße number {n}") for n in range(120)))
    store = open_store()
    assert [hit.message for hit in store.search("STRASSE 119")] == ["m119"]
    assert store.index_some()
    assert len(store.search("strasse")) == 120
    store.delete_messages([MessageId("m0"), MessageId("m119")])  # one that waits, one that is indexed
    store.put_message(replace(message("m1", "changed"), parent=None))
    while store.index_some():
        pass
    assert (len(store.search("strasse")), len(store.search("changed"))) == (117, 1)
    store._connection.execute("INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)")


def test_messages_of_before_have_no_probabilities_and_can_get_some(path: Path, open_store: Open) -> None:
    version = filled_before(path, "probabilities", ("a", "yes", "assistant"))
    store = open_store()
    (old,) = store.all_messages(C)
    assert (old.text, old.probabilities) == ("yes", b"")
    kept = replace(old, probabilities=pack(answer_logprobs(3)))
    store.put_message(kept)
    assert open_store().all_messages(C) == (kept,)
    assert path.with_name(f"{path.name}.v{version}.backup").exists()


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("column", "damage", "without"),
    [
        *(
            ("sampling", damage, {"sampling": None})
            for damage in ("{", "[1]", '{"top_k": -1}', f'"{DEEP[:9000]}', '{"temperature": NaN}', "null")
        ),
        *(
            ("departed", damage, {"evicted": NONE_EVICTED})
            for damage in (
                *("x", "[]", "{}", "null", DEEP),
                '{"messages": 3, "parted": null}',
                '{"messages": [3], "parted": null}',
                '{"messages": [], "parted": [1, 2]}',
                '{"messages": [], "parted": ["a", "b"]}',
                '{"messages": [], "parted": "abc"}',
                '{"messages": [], "parted": null, "cuts": 3}',
                '{"messages": [], "parted": null, "cuts": [["a", [[1, "2"]]]]}',
                '{"messages": [], "parted": null, "cuts": [[3, [[1, 2]]]]}',
                '{"messages": [], "parted": null, "cuts": [["a", [[2]]]]}',
                '{"messages": [], "parted": null, "cuts": [["a", [[5, 7], [2, 3]]]]}',
                '{"messages": [], "parted": null, "cuts": [["a", [[-1, 3]]]]}',
            )
        ),
    ],
)
def test_a_damaged_column_of_a_chat_costs_nothing_but_itself(
    open_store: Open, column: str, damage: str, without: dict[str, Any]
) -> None:
    """Its sampling is that of the settings then, and all its messages are in the context."""
    store = open_store()
    store.put_conversation(conversation())
    assert store.conversations() == (conversation(),)
    store._connection.execute(f"UPDATE conversation SET {column} = ?", (damage,))
    assert open_store().conversations() == (replace(conversation(), **without),)
