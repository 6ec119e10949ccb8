"""Conversations and messages come back as they were put; search finds them; what fails says one sentence."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal
from unicodedata import normalize

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.chat import QueuedMessage
from kvdesk.errors import StoreError
from kvdesk.message import Attachment, ConversationId, Message, MessageId, TurnStats, storable, system_message
from kvdesk.quantities import LAST_MS, day_text
from kvdesk.reasoning import ReasoningMarks
from kvdesk.store import Store, rows
from kvdesk.store.rows import DAMAGED_NOTE, pack_stats, pack_tokens, unpack_stats, unpack_tokens
from kvdesk.store.store import uri_of
from kvdesk.values import asdict, replace
from tests.places import ROOT
from tests.store.values import PAPER, STATS, conversation, filled_before, message

C = ConversationId("c")


def names(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


# --- where it is ----------------------------------------------------------------------------------------------------


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


# --- values come back -----------------------------------------------------------------------------------------------


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


def test_statistics_of_another_version_are_left_out() -> None:
    assert unpack_stats(b'{"prompt_tokens": 3}') is None
    assert unpack_stats(b"not json") is None
    assert unpack_stats(b"[]") is None


# --- branches -------------------------------------------------------------------------------------------------------


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


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def library(store: Store) -> Store:
    store.put_conversation(conversation("c", "Cooking pasta"))
    store.put_message(message("a", "How long does spaghetti boil?"))
    store.put_message(
        message("b", 'Nine minutes. 九分钟就好。 100% "al dente", c:\\pot_1', parent="a", role="assistant")
    )
    store.put_message(message("s", "Spaghetti still stream", parent="b", role="assistant", state="streaming"))
    return store


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spaghetti", ["a"]),
        ("SPAGH boil", ["a"]),
        ("spaghetti minutes", []),
        ("分钟", ["b"]),
        ("九分钟就", ["b"]),
        ("0%", ["b"]),
        ("t_1", ["b"]),
        ("t_", ["b"]),
        ("\\p", ["b"]),
        ('"al', ["b"]),
        ("pasta", [None]),
        ("co", [None]),
        ("", []),
        ("   ", []),
        ("\0\ud800", []),
    ],
)
def test_search_finds_every_word_anywhere(library: Store, text: str, found: list[str | None]) -> None:
    assert [hit.message for hit in library.search(text)] == found


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_no_text_is_a_syntax_error(text: str) -> None:
    store = Store(Path(":memory:"))
    store.put_conversation(conversation(title=text))
    store.put_message(message("a", text))
    store.search(text)
    store.close()


@pytest.mark.parametrize(
    "text",
    [
        "\u00ad",
        "\u200b \ufe0f",
        '""',
        "a OR",
        "NEAR(",
        "text:spaghetti",
        "*",
        "-boil",
        "AND",
        "^how",
        "'; DROP TABLE message; --",
    ],
)
def test_query_syntax_is_only_text(library: Store, text: str) -> None:
    assert library.search(text) == ()


def test_a_message_is_found_once_it_is_complete_and_by_its_last_text_only(library: Store) -> None:
    library.put_message(message("s", "Spaghetti finished", parent="b", role="assistant"))
    assert [hit.message for hit in library.search("finished")] == ["s"]
    library.put_message(message("s", "Macaroni", parent="b", role="assistant"))
    assert library.search("finished") == ()
    assert [hit.message for hit in library.search("macaroni")] == ["s"]
    library.put_message(message("s", "Macaroni again", parent="b", role="assistant", state="streaming"))
    assert library.search("macaroni") == ()


def test_an_excerpt_shows_the_surroundings(library: Store) -> None:
    library.put_message(message("long", "before " * 50 + "\nneedle\n" + "after " * 50))
    (hit,) = library.search("needle")
    assert hit.title == "Cooking pasta"
    assert hit.excerpt.startswith("…")
    assert "before needle after" in hit.excerpt
    assert hit.excerpt.endswith("…")


@pytest.mark.parametrize("n", range(4))
def test_an_excerpt_has_whole_signs(library: Store, n: int) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    library.put_message(message("long", "x" * n + family * 30 + " needle " + "y" * n + family * 30))
    (hit,) = library.search("needle")
    before, after = hit.excerpt.strip("…").split(" needle ")
    assert before == family * (len(before) // len(family))
    assert after == "y" * n + family * ((len(after) - n) // len(family))


# --- start ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "damage", ["role = 'wizard'", "state = ''", "tokens = x'0102'", "text = CAST(x'48e9' AS TEXT)"]
)
def test_a_damaged_message_is_shown_as_damaged_among_the_others(store: Store, damage: str) -> None:
    store.put_conversation(conversation(leaf="b"))
    store.put_message(message("a"))
    store.put_message(message("b", "fine", parent="a"))
    store._connection.execute(f"UPDATE message SET {damage} WHERE id = 'a'")
    damaged, fine = store.all_messages(C)
    assert (damaged.state, damaged.note, damaged.tokens) == ("failed", DAMAGED_NOTE, ())
    assert damaged.text.startswith("H")
    assert fine == message("b", "fine", parent="a")
    assert [hit.message for hit in store.search("fine")] == ["b"]


@pytest.mark.parametrize(
    "change",
    [
        *("text = 'Hallo'", "text = ''", "role = 'assistant'", "parent = 'b'", "parent = ''", "conversation = 'd'"),
        *("id = 'e'", "id = 'aH', text = 'ello'", "digest = x''"),
    ],
)
def test_what_another_wrote_into_a_message_is_shown_as_damaged(store: Store, change: str) -> None:
    """Also where it would be a valid message."""
    store.put_conversation(conversation("c"))
    store.put_conversation(conversation("d"))
    store.put_message(message("a"))
    assert store.all_messages(C) == (message("a"),)
    store._connection.execute(f"UPDATE message SET {change}")
    (found,) = store.all_messages(C) + store.all_messages(ConversationId("d"))
    assert (found.state, found.note) == ("failed", DAMAGED_NOTE)


def test_a_changed_byte_of_the_file_is_noticed(path: Path) -> None:
    store = Store(path)
    store.put_conversation(conversation())
    store.put_message(message("a", "the sum is 100 crowns"))
    store.close()
    content = path.read_bytes()
    assert content.count(b"100 crowns") == 1
    path.write_bytes(content.replace(b"100 crowns", b"900 crowns"))
    store = Store(path)
    (found,) = store.all_messages(C)
    store.close()
    assert (found.text, found.note) == ("the sum is 900 crowns", DAMAGED_NOTE)


@pytest.mark.parametrize("value", ["NULL", "x'ff00'", "'words'", "2.5", "1 << 62"])
def test_any_type_in_any_column_hides_nothing_else(store: Store, value: str) -> None:
    """The types of a row stand in the row itself, and damage them with it."""
    store.put_conversation(conversation("c"))
    store.put_conversation(conversation("d"))
    for name in ("a", "b"):
        store.put_message(message(name))
    edit = store._connection
    edit.pragma("writable_schema", True)
    edit.execute(
        "UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '') WHERE sql LIKE '%STRICT'"
    )
    edit.execute("PRAGMA writable_schema = RESET")
    for name in rows.MESSAGE_COLUMNS:
        if name != "conversation":
            with edit:
                edit.execute(f"UPDATE message SET {name} = {value} WHERE id = 'a'")
                assert message("b") in store.all_messages(C), name
                edit.execute("DELETE FROM message WHERE id IS NOT 'b'")
            store.put_message(message("a"))
    edit.pragma("foreign_keys", False)
    for name in rows.CONVERSATION_COLUMNS:
        edit.execute(f"UPDATE conversation SET {name} = {value} WHERE id = 'c'")
        assert conversation("d") in store.conversations(), name


@pytest.mark.parametrize("ms", [-1, LAST_MS + 1, 1 << 62])
def test_a_time_that_is_none_is_zero(store: Store, ms: int) -> None:
    """Such as one that no calendar has: an export of all chats would end with it."""
    store.put_conversation(conversation())
    store.put_message(message("a"))
    store._connection.execute("UPDATE conversation SET created_ms = ?, updated_ms = ?", (ms, ms))
    store._connection.execute("UPDATE message SET created_ms = ?, thought_ms = ?", (ms, ms))
    (chat,), (first,) = store.conversations(), store.all_messages(C)
    assert (chat.created_ms, chat.updated_ms, first.created_ms, first.thought_ms) == (0, 0, 0, 0)
    assert [day_text(last) for last in (0, LAST_MS)] == ["1970-01-01", "9999-12-31"]


def test_an_invalid_byte_in_a_title_costs_no_other_conversation(store: Store) -> None:
    store.put_conversation(conversation("c"))
    store.put_conversation(conversation("d"))
    store._connection.execute(
        "UPDATE conversation SET title = CAST(x'41ff42' AS TEXT), colour = 1 << 40 WHERE id = 'c'"
    )
    found = {c.id: c for c in store.conversations()}
    assert (found[C].title, found[C].colour) == ("A\ufffdB", 0)
    assert found[ConversationId("d")] == conversation("d")
    assert [hit.title for hit in store.search("B")] == ["A\ufffdB"]


@pytest.mark.parametrize(
    "stats", ["[" * 100_000, '{"prompt_tokens": "many"}', "null", json.dumps({**asdict(STATS), "n_kv": 10**400})]
)
def test_damaged_statistics_cost_nothing_but_themselves(store: Store, stats: str) -> None:
    store.put_conversation(conversation())
    store.put_message(replace(message("a"), stats=STATS))
    store._connection.execute("UPDATE message SET stats = ?", (stats,))
    assert store.all_messages(C) == (message("a"),)


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


# --- size -----------------------------------------------------------------------------------------------------------


def test_ten_thousand_messages_are_no_burden(store: Store) -> None:
    """The limits are far above what is measured, and far below what a scan for each row would take."""
    body = "The quick brown fox jumps over the lazy dog, and then explains the cache. " * 4
    with store.transaction():
        for number in range(100):
            store.put_conversation(conversation(f"c{number}", leaf=f"m{number}.99", updated_ms=number))
            for turn in range(100):
                parent = f"m{number}.{turn - 1}" if turn else None
                text = f"{number} {turn} {body}"
                tokens = tuple(range(100))
                store.put_message(message(f"m{number}.{turn}", text, parent=parent, of=f"c{number}", tokens=tokens))
    began = time.thread_time()
    assert len(store.conversations()) == 100
    assert len(store.all_messages(ConversationId("c99"))) == 100
    read_s = time.thread_time() - began
    began = time.thread_time()
    assert len(store.search("42 99 quick")) >= 1
    search_s = time.thread_time() - began
    began = time.thread_time()
    store.put_message(message("m99.99", body * 20, parent="m99.98", of="c99", state="streaming"))
    write_s = time.thread_time() - began
    assert (read_s < 1, search_s < 2, write_s < 0.5) == (True, True, True), (read_s, search_s, write_s)


def test_queued_messages_that_are_damaged_are_shown_as_they_are() -> None:
    queued = (QueuedMessage("a"), QueuedMessage("\u2028[]", (PAPER,)))
    assert rows.unpack_queued(rows.pack_queued(queued)) == queued
    for damaged in ('["a", 1]', "[" * 100_000, '{"a": 1}', "half a thou"):
        assert rows.unpack_queued(damaged) == (QueuedMessage(damaged),)


# --- attachments ------------------------------------------------------------------------------------------------------


@pytest.fixture
def attached(store: Store) -> Message:
    """A question with a paper, and one without among its neighbours."""
    store.put_conversation(conversation(title="Reading"))
    question = replace(message("a", "What does it say?"), attachments=(PAPER,))
    for one in (question, message("b", "Something else", parent="a")):
        store.put_message(one)
    return question


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("several", 1),
        ('"long"', 1),
        ("\\several", 1),
        ("PAPER.PDF", 1),
        ("what pages", 1),  # one in the text, one in what is attached
        ("of", 1),  # too short for the index
        ("text", 1),
        ("nothing", 0),
        ("else pages", 0),
        ("[[", 0),  # how it is packed is nobody's text
        ("pdf,", 0),
    ],
)
@pytest.mark.usefixtures("attached")
def test_search_finds_what_is_attached(store: Store, text: str, n_found: int) -> None:
    assert [hit.message for hit in store.search(text)] == ["a"] * n_found
    assert all(hit.excerpt for hit in store.search(text))


def test_what_is_attached_is_found_no_more_once_it_is_gone(store: Store, attached: Message) -> None:
    store.put_message(replace(attached, attachments=()))
    assert store.search("several") == ()
    store.put_message(attached)
    store.delete_conversation(C)
    assert store.search("several") == ()
    found = "SELECT count(*) FROM message_index WHERE message_index MATCH 'several'"
    assert store._connection.execute(found).fetchall() == [(0,)]


@pytest.mark.usefixtures("attached")
def test_a_changed_letter_in_an_attachment_is_noticed(store: Store) -> None:
    store._connection.execute("UPDATE message SET attachments = replace(attachments, 'several', 'numerous')")
    damaged, other = store.all_messages(C)
    assert (damaged.state, damaged.note, other.state) == ("failed", DAMAGED_NOTE, "complete")
    assert "numerous" in damaged.attachments[0].text, "what could be read is shown"


@pytest.mark.parametrize("damage", ["{", "[1]", '[["a"]]', '[["a", "exe", "", 0, ""]]', '[["a", "pdf", "", "1", ""]]'])
@pytest.mark.usefixtures("attached")
def test_damaged_attachments_cost_nothing_but_themselves(store: Store, damage: str) -> None:
    store._connection.execute("UPDATE message SET attachments = ?, digest = NULL WHERE id = 'a'", (damage,))
    store._connection.execute("UPDATE conversation SET draft_attachments = ?", (damage,))
    found = store.all_messages(C)[0]
    assert (found.text, found.attachments, found.note) == ("What does it say?", (), DAMAGED_NOTE)
    assert [a.text for a in store.conversations()[0].draft_attachments] == [damage]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("text", ["GRÖSSE", "öl", "ЕЖ", "don't", "Οδός", "übung", "ÇA", "ÇA größe"])
def test_case_accents_and_apostrophes_do_not_count(store: Store, text: str, form: Literal["NFC", "NFD"]) -> None:
    store.put_conversation(replace(conversation(), title="Übung"))
    kept = Attachment("Ça.txt", "text", normalize("NFD", "ça va"))
    store.put_message(replace(message("a", "Größe ÖL Ёж don’t ΟΔΌΣ"), attachments=(kept,)))
    assert [hit.message for hit in store.search(normalize(form, text))] == [None if text == "übung" else "a"]


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
