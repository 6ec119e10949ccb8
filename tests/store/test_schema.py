"""Whose file it is, how it gets from version to version, and that a file which is not ours is left byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from kvdesk.chat import NONE_EVICTED, Attachment, ConversationId, MessageId, QueuedMessage, finish_of
from kvdesk.errors import StoreError
from kvdesk.protocol.logprobs import pack
from kvdesk.settings import Sampling
from kvdesk.store import Store, schema
from kvdesk.values import replace
from tests.protocol.logprobs import answer_logprobs
from tests.store.values import conversation, message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kvdesk.sqlite3"


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


def test_each_migration_keeps_what_was_there_and_a_copy_of_the_file(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    added = "ALTER TABLE message ADD COLUMN mood TEXT", "UPDATE message SET mood = 'calm'"
    schema.migrate(connection, path, schema.MIGRATIONS + added)
    assert schema.pragma(connection, "user_version") == schema.VERSION + 2
    assert connection.execute("SELECT text, mood FROM message").fetchall() == [("kept", "calm")]
    connection.close()

    backups = sorted((file.name for file in path.parent.glob("*.backup")), key=lambda name: (len(name), name))
    assert backups == [f"{path.name}.v{schema.VERSION + step}.backup" for step in (0, 1)]
    copy = Store(path.parent / backups[0])
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


def test_a_damaged_page_of_an_older_home_hides_no_other_chat(path: Path) -> None:
    """Bringing it to this version must not need to read every row."""
    connection = apsw.Connection(str(path))
    schema.migrate(connection, path, schema.MIGRATIONS[:8])  # kvdesk 0.1.0
    for name in ("first", "second"):
        connection.execute(
            "INSERT INTO conversation (id, title, colour, system_prompt, created_ms, updated_ms)"
            " VALUES (?, ?, 0, '', 1, 1)",
            (name, f"The {name}"),
        )
        for n in range(40):
            values = (f"{name}{n}", name, f"{name} number {n} " * 60)
            connection.execute(
                "INSERT INTO message (id, conversation, role, text, state, tokens, note, created_ms)"
                " VALUES (?, ?, 'user', ?, 'complete', x'', '', 1)",
                values,
            )
    connection.execute("VACUUM")
    connection.close()
    content = bytearray(path.read_bytes())
    at = content.index(b"second number 20 ") // 4096 * 4096
    content[at : at + 4096] = b"\xee" * 4096
    path.write_bytes(content)
    store = Store(path)
    try:
        assert {known.title for known in store.conversations()} == {"The first", "The second"}
        assert len(store.all_messages(ConversationId("first"))) == 40
        second = store.all_messages(ConversationId("second"))
        assert 30 < len(second) < 40
        assert all(known.text.startswith("second number") for known in second)
        n = 40 - len(second)
        assert store.remark.startswith(f"The database was damaged: at least {n} of its rows could not be read.")
        assert path.with_name(f"{path.name}.damaged").read_bytes()[at : at + 4096] == b"\xee" * 4096
        store.put_conversation(conversation())
        store.put_message(message("new", "goes on"))
        assert [hit.message for hit in store.search("goes on")] == ["new"]
    finally:
        store.close()


def test_the_backup_is_made_whole_or_not_at_all(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    target = path.with_name("copy")
    target.with_name(f"copy.{os.getpid()}.part").write_bytes(b"left by a crash")
    schema.back_up(connection, target)
    connection.close()
    Store(target).close()
    assert not list(path.parent.glob("*.part"))


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


def test_conversations_of_the_first_release_have_all_their_messages_in_the_context(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, path, schema.MIGRATIONS[:2])
    connection.execute("INSERT INTO conversation VALUES (1, 'c', 'Old', 2, NULL, '', 1, 2, 'slide')")
    connection.close()
    store = Store(path)
    (old,) = store.conversations()
    assert (old.title, old.overflow, old.evicted) == ("Old", "slide", NONE_EVICTED)
    store.close()


def test_conversations_of_before_have_no_draft(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, path, schema.MIGRATIONS[:4])
    connection.execute("INSERT INTO conversation VALUES (1, 'c', 'Old', 2, NULL, '', 1, 2, 'slide', '')")
    connection.close()
    store = Store(path)
    (old,) = store.conversations()
    assert (old.title, old.draft, old.queued) == ("Old", "", ())
    store.put_conversation(
        replace(old, draft="half a \ud83e thought", queued=(QueuedMessage("a \ud83e"), QueuedMessage("[]")))
    )
    assert store.conversations()[0].draft == "half a \ufffd thought"
    assert store.conversations()[0].queued == (QueuedMessage("a \ufffd"), QueuedMessage("[]"))
    store.close()


def test_messages_of_before_have_no_digest_and_are_as_they_were(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, path, schema.MIGRATIONS[:7])
    connection.execute("INSERT INTO conversation VALUES (1, 'c', 'Old', 2, NULL, '', 1, 2, 'slide', '', '', '')")
    connection.execute(
        "INSERT INTO message VALUES (1, 'a', 'c', NULL, 'user', 'kept', 'complete', x'', NULL, '', 7, 'm')"
    )
    connection.close()
    store = Store(path)
    (old,) = store.all_messages(ConversationId("c"))
    assert old == replace(message("a", "kept"), model="m")
    store.put_message(old)
    assert store._connection.execute("SELECT length(digest) FROM message").fetchall() == [(8,)]
    assert store.all_messages(ConversationId("c")) == (old,)
    store.close()


def test_conversations_of_before_have_the_settings_sampling_and_the_models_template(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, path, schema.MIGRATIONS[:8])
    connection.execute("INSERT INTO conversation VALUES (1, 'c', 'Old', 2, NULL, 'Be kind.', 1, 2, '', '', '', '')")
    connection.close()
    store = Store(path)
    (old,) = store.conversations()
    assert (old.system_prompt, old.sampling, old.template) == ("Be kind.", None, "")
    own = replace(old, sampling=Sampling(top_k=7, temperature=0.0), template="{{ messages[0].content }}\u2028")
    store.put_conversation(own)
    assert store.conversations() == (own,)
    store.close()


@pytest.mark.parametrize("damaged", ["{", "[1]", '{"top_k": -1}', '"' + "[" * 9000, '{"temperature": NaN}', "null"])
def test_sampling_that_cannot_be_read_is_that_of_the_settings(path: Path, damaged: str) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE conversation SET sampling = ?", (damaged,))
    connection.close()
    store = Store(path)
    (found,) = store.conversations()
    assert (found.title, found.sampling) == ("A title", None)
    store.close()


def test_conversations_of_before_are_in_no_folder(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "folder" in step)
    schema.migrate(connection, path, schema.MIGRATIONS[:before])
    columns = "id, title, colour, system_prompt, created_ms, updated_ms"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2)")
    connection.close()
    store = Store(path)
    (old,) = store.conversations()
    assert (old.title, old.folder, old.pinned, old.archived) == ("Old", "", False, False)
    store.put_conversation(replace(old, folder="W\ud83erk", pinned=True, archived=True))
    (new,) = store.conversations()
    assert (new.folder, new.pinned, new.archived) == ("W\ufffdrk", True, True)
    store.close()


def test_messages_of_before_have_no_attachments_and_can_get_some(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "attachments" in step)
    schema.migrate(connection, path, schema.MIGRATIONS[:before])
    columns = "id, title, colour, system_prompt, created_ms, updated_ms, draft, queued"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2, 'half', '[\"next\"]')")
    connection.close()
    store = Store(path)
    (old,) = store.conversations()
    assert (old.draft, old.draft_attachments, old.queued) == ("half", (), (QueuedMessage("next"),))
    store.put_message(message("a"))
    assert store.search("lighthouse") == ()
    attached = replace(message("a"), attachments=(Attachment("notes.txt", "text", "The lighthouse keeper"),))
    store.put_message(attached)
    assert store.all_messages(ConversationId("c")) == (attached,)
    assert [hit.message for hit in store.search("lighthouse")] == ["a"]
    store.close()


def test_messages_of_before_have_no_time_of_reasoning_and_later_ones_keep_theirs(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "thought_ms" in step)
    schema.migrate(connection, path, schema.MIGRATIONS[:before])
    columns = "id, title, colour, system_prompt, created_ms, updated_ms"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2)")
    columns = "id, conversation, role, text, state, tokens, note, created_ms"
    connection.execute(f"INSERT INTO message ({columns}) VALUES ('a', 'c', 'user', 'kept', 'complete', x'', '', 7)")
    connection.close()
    store = Store(path)
    (old,) = store.all_messages(ConversationId("c"))
    assert (old.text, old.thought_ms) == ("kept", 0)
    store.put_message(replace(old, thought_ms=12_300))
    (new,) = store.all_messages(ConversationId("c"))
    assert new.thought_ms == 12_300
    store.close()


def test_messages_of_before_are_not_pinned_and_tell_why_they_ended_by_their_state(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "finish" in step)
    schema.migrate(connection, path, schema.MIGRATIONS[:before])
    columns = "id, title, colour, system_prompt, created_ms, updated_ms"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2)")
    columns = "id, conversation, role, text, state, tokens, note, created_ms"
    for name, state, note in (
        ("a", "complete", "Ended at the limit of 24 tokens."),
        ("b", "stopped", "The context of 256 tokens is full. The answer ends here."),
        ("c", "stopped", ""),
        ("d", "complete", ""),
        ("e", "stopped", "Another model was opened."),
    ):
        values = "(?, 'c', 'assistant', 'kept', ?, x'', ?, 7)"
        connection.execute(f"INSERT INTO message ({columns}) VALUES {values}", (name, state, note))
    connection.close()
    store = Store(path)
    old = store.all_messages(ConversationId("c"))
    assert [finish_of(m) for m in old] == ["limit", "context full", "stopped", "end", "interrupted"]
    assert not any(m.pinned for m in old)
    store.put_message(replace(old[0], finish="edited", pinned=True))
    new = store.all_messages(ConversationId("c"))[0]
    assert (new.finish, new.pinned) == ("edited", True)
    store.close()


def test_an_index_of_before_is_made_again_step_by_step_and_the_search_finds_all_meanwhile(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "CREATE TABLE unindexed" in step)
    schema.migrate(connection, path, schema.MIGRATIONS[:before])
    columns = "id, title, colour, system_prompt, created_ms, updated_ms"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2)")
    columns = "id, conversation, role, text, state, tokens, note, created_ms"
    for n in range(120):
        values = (f"m{n}", f"Straße number {n}")
        connection.execute(
            f"INSERT INTO message ({columns}) VALUES (?, 'c', 'user', ?, 'complete', x'', '', 7)", values
        )
    connection.close()
    store = Store(path)
    assert [hit.message for hit in store.search("STRASSE 119")] == ["m119"]
    assert store.index_some()
    assert len(store.search("strasse")) == 120
    store.delete_messages([MessageId("m0"), MessageId("m119")])  # one that waits, one that is indexed
    store.put_message(replace(message("m1", "changed"), parent=None))
    while store.index_some():
        pass
    assert (len(store.search("strasse")), len(store.search("changed"))) == (117, 1)
    store._connection.execute("INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)")
    store.close()


def test_messages_of_before_have_no_probabilities_and_can_get_some(path: Path) -> None:
    connection = apsw.Connection(str(path))
    before = next(n for n, step in enumerate(schema.MIGRATIONS) if "probabilities" in step)
    schema.create(connection, before)
    columns = "id, title, colour, system_prompt, created_ms, updated_ms"
    connection.execute(f"INSERT INTO conversation ({columns}) VALUES ('c', 'Old', 2, '', 1, 2)")
    columns = "id, conversation, role, text, state, tokens, note, created_ms"
    connection.execute(f"INSERT INTO message ({columns}) VALUES ('a', 'c', 'assistant', 'yes', 'complete', x'', '', 7)")
    connection.close()
    store = Store(path)
    (old,) = store.all_messages(ConversationId("c"))
    assert (old.text, old.probabilities) == ("yes", b"")
    kept = replace(old, probabilities=pack(answer_logprobs(3)))
    store.put_message(kept)
    store.close()
    store = Store(path)
    assert list(store.all_messages(ConversationId("c"))) == [kept]
    store.close()
    assert path.with_name(f"{path.name}.v{before}.backup").exists()
