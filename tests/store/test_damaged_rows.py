"""What is damaged in a row is shown as damaged, and hides nothing else."""

import json
from pathlib import Path

import pytest

from kvdesk.chat import QueuedMessage
from kvdesk.message import ConversationId
from kvdesk.quantities import LAST_MS, day_text
from kvdesk.store import Store, rows
from kvdesk.store.rows import DAMAGED_NOTE, unpack_stats
from kvdesk.values import asdict, replace
from tests.store.values import PAPER, STATS, C, conversation, message


def test_statistics_of_another_version_are_left_out() -> None:
    assert unpack_stats(b'{"prompt_tokens": 3}') is None
    assert unpack_stats(b"not json") is None
    assert unpack_stats(b"[]") is None


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


def test_queued_messages_that_are_damaged_are_shown_as_they_are() -> None:
    queued = (QueuedMessage("a"), QueuedMessage("\u2028[]", (PAPER,)))
    assert rows.unpack_queued(rows.pack_queued(queued)) == queued
    for damaged in ('["a", 1]', "[" * 100_000, '{"a": 1}', "half a thou"):
        assert rows.unpack_queued(damaged) == (QueuedMessage(damaged),)


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
