"""Conversations and messages come back as they were put; what fails says one sentence."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath, PureWindowsPath

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.errors import StoreError
from kvdesk.message import ConversationId, Message, MessageId, TurnStats, storable, system_message
from kvdesk.reasoning import ReasoningMarks
from kvdesk.store import Store
from kvdesk.store.rows import pack_stats, pack_tokens, unpack_stats, unpack_tokens
from kvdesk.store.store import uri_of
from kvdesk.values import replace
from tests.places import ROOT
from tests.store.values import STATS, C, conversation, filled_before, message


def names(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


def test_a_database_on_another_computer_has_an_address_that_sqlite_takes() -> None:
    assert uri_of(PurePosixPath("/a b/ü?#%")) == "file:///a%20b/%C3%BC%3F%23%25"
    assert uri_of(PureWindowsPath(r"C:\Users\me\kvdesk.sqlite3")) == "file:///C:/Users/me/kvdesk.sqlite3"
    far = uri_of(PureWindowsPath(r"\\server\share\kvdesk.sqlite3"))
    with pytest.raises(apsw.CantOpenError):  # and no complaint about a host
        apsw.Connection(far, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


@pytest.mark.skipif(sys.platform != "linux", reason="names are text on other systems")
def test_a_folder_whose_name_is_no_text_gets_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be opened"):
            Store(folder / "kvdesk.sqlite3")


def test_a_message_comes_back_as_it_was_put(path: Path) -> None:
    answer = replace(
        message("b", "Ünï\0code\n😀", parent="a", role="assistant", state="stopped", tokens=(0, 49151, 2**31 - 1, -1)),
        stats=STATS,
        note="You stopped it.",
    )
    store = Store(path)
    store.put_conversation(conversation(leaf="b"))
    store.put_message(message("a"))
    store.put_message(answer)
    store.close()

    store = Store(path)
    assert store.all_messages(C) == (message("a"), answer)
    assert store.conversations() == (conversation(leaf="b"),)
    store.close()


def test_putting_again_replaces(store: Store) -> None:
    store.put_conversation(conversation())
    store.put_conversation(conversation(title="Another"))
    store.put_message(message("a", "one", state="streaming"))
    store.put_message(message("a", "one two"))
    assert store.conversations()[0].title == "Another"
    assert store.all_messages(C) == (message("a", "one two"),)


def test_conversations_come_newest_first_without_messages(store: Store) -> None:
    for name, when in (("old", 1), ("newest", 9), ("newer", 5)):
        store.put_conversation(conversation(name, updated_ms=when))
    assert [c.id for c in store.conversations()] == ["newest", "newer", "old"]
    assert all(c.messages == () for c in store.conversations())


def test_deleting_a_conversation_takes_its_messages_along(store: Store) -> None:
    for name in ("c", "d"):
        store.put_conversation(conversation(name))
        store.put_message(message(f"in {name}", "findable", of=name))
    store.delete_conversation(C)
    store.delete_conversation(ConversationId("never was"))
    assert store.all_messages(C) == ()
    assert [hit.conversation for hit in store.search("findable")] == ["d"]


def test_a_message_of_no_conversation_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="its conversation is not in the database"):
        store.put_message(message("a", of="nowhere"))


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_stored(text: str) -> None:
    kept = storable(text)
    assert kept.encode().decode() == kept
    assert storable(kept) == kept
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert kept == text


def test_lone_surrogates_are_replaced_and_pairs_joined(store: Store) -> None:
    store.put_conversation(conversation(title="\udc00"))
    store.put_message(message("a", "x\ud83dy \ud83d\ude00"))
    assert store.all_messages(C)[0].text == "x\ufffdy 😀"
    assert store.conversations()[0].title == "\ufffd"


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_tokens_are_packed_as_little_endian_int32(tokens: list[int]) -> None:
    packed = pack_tokens(tokens)
    assert packed == b"".join(token.to_bytes(4, "little", signed=True) for token in tokens)
    assert unpack_tokens(packed) == tuple(tokens)


@pytest.fixture
def branched(store: Store) -> Store:
    """a - b - c, and an edit of b that leads to d - e; e is shown."""
    store.put_conversation(conversation(leaf="e"))
    for name, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "d")):
        store.put_message(message(name, parent=parent))
    return store


def test_every_branch_is_there_in_the_order_it_was_made(branched: Store) -> None:
    assert names(branched.all_messages(C)) == ["a", "b", "c", "d", "e"]


def test_an_unknown_conversation_has_no_messages(store: Store) -> None:
    assert store.all_messages(ConversationId("none")) == ()


def test_what_was_streaming_is_interrupted_at_the_next_start_and_findable(path: Path) -> None:
    store = Store(path)
    store.put_conversation(conversation(leaf="b"))
    store.put_message(message("a"))
    store.put_message(message("b", "half an ans", parent="a", role="assistant", state="streaming", tokens=(1, 2)))
    store.close()

    store = Store(path)
    first, second = store.all_messages(C)
    assert (first.state, second.state, second.text, second.tokens) == ("complete", "interrupted", "half an ans", (1, 2))
    assert second.note == "kvdesk ended before this answer was complete."
    assert [hit.message for hit in store.search("half")] == ["b"]
    store.close()


def test_one_kvdesk_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvdesk.store.store.BUSY_MS", 10)
    store = Store(path)
    with pytest.raises(StoreError, match="open in another kvdesk"):
        Store(path)
    store.put_conversation(conversation())
    store.close()
    Store(path).close()


READ_WITHOUT_ROOM = """
import resource, signal, sys
from pathlib import Path
from kvdesk.store.store import _look_first
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
_look_first(Path(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of files")
def test_a_journal_that_was_left_needs_no_room_to_be_read(path: Path, tmp_path: Path) -> None:
    """As after a kill: its index has no room on a full disk, and SQLite would say "disk I/O error"."""
    store = Store(path)
    store.put_conversation(conversation())
    left = tmp_path / "left" / path.name
    left.parent.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{left}{end}")
    store.close()
    read = subprocess.run(
        [sys.executable, "-c", READ_WITHOUT_ROOM, str(left)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_the_journal_is_a_wal_and_foreign_keys_are_on(path: Path) -> None:
    store = Store(path)
    assert store._connection.pragma("journal_mode") == "wal"
    assert store._connection.pragma("synchronous") == 1
    assert store._connection.pragma("foreign_keys") == 1
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_nothing_of_a_deleted_conversation_is_left_on_the_disk(store: Store, path: Path) -> None:
    secret = "quetzalcoatl"
    store.put_conversation(conversation("d", title=secret))
    for name in ("c", "e"):
        store.put_conversation(conversation(name, title=f"{secret} {name}"))
        store.put_message(message(f"in {name}", f"It is said that {secret} lives in {name}. " * 50, of=name))
    path.with_name(path.name + ".v1.backup").write_text(secret)
    for name in ("c", "d", "e"):
        store.delete_conversation(ConversationId(name))
    store.forget_deleted()
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert secret.encode() not in content, file
        assert b"quetz" not in content, file  # nor in the index, which holds words in parts
    assert store.search(secret) == ()


def test_a_copy_that_cannot_be_deleted_is_logged_and_the_others_go(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.with_name(path.name + ".v1.backup").mkdir()
    path.with_name(path.name + ".v2.backup").touch()
    store.forget_deleted()
    assert "an old copy of the conversations cannot be deleted" in caplog.text
    assert not path.with_name(path.name + ".v2.backup").exists()


def test_what_was_deleted_by_an_older_kvdesk_goes_at_the_migration(path: Path) -> None:
    secret = "quetzalcoatl"
    filled_before(path, 5, ("gone", f"{secret} " * 300), ("kept", "a lighthouse"))
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM message WHERE id = 'gone'")
    connection.close()
    assert secret.encode() in path.read_bytes()
    store = Store(path)
    assert [hit.message for hit in store.search("lighthouse")] == ["kept"]
    store.close()
    assert secret.encode() not in path.read_bytes()


def test_a_write_that_fails_leaves_nothing_behind(store: Store) -> None:
    store.put_conversation(conversation())
    store.put_message(message("a"))
    with pytest.raises(StoreError), store.transaction():
        _put_two(store, "b")
    assert store.all_messages(C) == (message("a"),)


def test_a_deleted_message_finds_its_old_place_after_a_write_that_failed(store: Store) -> None:
    store.put_conversation(conversation())
    for name in ("a", "b"):
        store.put_message(message(name))
    store.delete_messages([message("a").id])
    with pytest.raises(StoreError), store.transaction():
        _put_two(store, "a")
    store.put_message(message("a"))
    assert names(store.all_messages(C)) == ["a", "b"]
    store.put_message(message("a", "changed"))
    assert store.all_messages(C) == (message("a", "changed"), message("b"))


def _put_two(store: Store, name: str) -> None:
    store.put_message(message(name))
    store.put_message(message("c", of="nowhere"))


def test_after_close_every_call_is_a_sentence(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="cannot be used"):
        store.conversations()
    assert issubclass(apsw.ConnectionClosedError, apsw.Error)


def test_five_thousand_messages_are_no_burden(store: Store) -> None:
    """The limits are far above what is measured, and far below what a scan for each row would take."""
    body = "The quick brown fox jumps over the lazy dog, and then explains the cache. " * 4
    with store.transaction():
        for number in range(50):
            store.put_conversation(conversation(f"c{number}", leaf=f"m{number}.99", updated_ms=number))
            for turn in range(100):
                parent = f"m{number}.{turn - 1}" if turn else None
                text = f"{number} {turn} {body}"
                tokens = tuple(range(100))
                store.put_message(message(f"m{number}.{turn}", text, parent=parent, of=f"c{number}", tokens=tokens))
    began = time.thread_time()
    assert len(store.conversations()) == 50
    assert len(store.all_messages(ConversationId("c49"))) == 100
    read_s = time.thread_time() - began
    began = time.thread_time()
    assert len(store.search("42 99 quick")) >= 1
    search_s = time.thread_time() - began
    began = time.thread_time()
    store.put_message(message("m49.99", body * 20, parent="m49.98", of="c49", state="streaming"))
    write_s = time.thread_time() - began
    assert (read_s < 1, search_s < 2, write_s < 0.5) == (True, True, True), (read_s, search_s, write_s)


def test_marks_of_reasoning_are_kept_with_what_an_answer_cost() -> None:
    stats = TurnStats(1, 0, 1, 1, 1.0, 1.0, 1.0, marks=ReasoningMarks("<a>", "</a>", is_open=True))
    packed = pack_stats(stats)
    assert packed is not None
    assert unpack_stats(packed.encode()) == stats
    before = {name: value for name, value in json.loads(packed).items() if name != "marks"}
    assert unpack_stats(json.dumps(before).encode()) == replace(stats, marks=None), "written by an earlier version"


def test_it_says_whether_a_conversation_is_there_with_its_messages(store: Store) -> None:
    store.put_conversation(conversation())
    store.put_message(message("a"))
    store.put_message(message("b"))
    assert store.has(C, ())
    assert store.has(C, (MessageId("a"), MessageId("b"), system_message(C)))
    store.delete_messages([MessageId("b")])
    assert store.has(C, (MessageId("a"),))
    assert not store.has(C, (MessageId("a"), MessageId("b")))
    assert not store.has(ConversationId("d"), ())
    store.delete_conversation(C)
    assert not store.has(C, ())
