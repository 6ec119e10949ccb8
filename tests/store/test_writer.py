"""The writer's thread: nothing put is lost but what a crash takes within the interval; nobody waits for the disk."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from kvdesk.chat import Conversation
from kvdesk.errors import StoreError
from kvdesk.message import ConversationId, Message
from kvdesk.store import Store, StoreWriter
from kvdesk.store import writer as writer_module
from kvdesk.store.writer import Unsaved
from tests.places import ROOT
from tests.store.values import C, conversation, message

WAIT_S = 30


@pytest.fixture
def errors() -> list[StoreError]:
    return []


@pytest.fixture
def writer(path: Path, errors: list[StoreError]) -> Iterator[StoreWriter]:
    writer = StoreWriter(path, errors.append)
    writer.opened.result(WAIT_S)
    yield writer
    writer.close()


def stored(path: Path) -> tuple[Message, ...]:
    store = Store(path)
    found = store.all_messages(C)
    store.close()
    return found


def test_what_was_put_is_there_after_close(path: Path) -> None:
    writer = StoreWriter(path, lambda _: None)
    writer.put_conversation(conversation(leaf="a"))
    writer.put_message(message("a"))
    writer.close()
    writer.close()
    assert stored(path) == (message("a"),)


def test_what_was_put_is_written_without_close(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks and nobody closes: the interval alone brings it to the file."""
    written = threading.Event()
    put_message = Store.put_message

    def put_and_tell(store: Store, value: Message) -> None:
        put_message(store, value)
        if value.text == "second":
            written.set()

    monkeypatch.setattr(Store, "put_message", put_and_tell)
    writer.put_conversation(conversation())
    writer.put_message(message("a", "first"))
    writer.put_message(message("a", "second"))
    assert written.wait(WAIT_S)


def test_a_question_is_answered_after_what_was_put_before(writer: StoreWriter) -> None:
    writer.put_conversation(conversation(leaf="a"))
    writer.put_message(message("a"))
    assert writer.ask(lambda store: store.all_messages(C)).result(WAIT_S) == (message("a"),)
    assert len(writer.ask(Store.conversations).result(WAIT_S)) == 1


def test_a_failing_question_fails_alone(writer: StoreWriter) -> None:
    with pytest.raises(ZeroDivisionError):
        writer.ask(lambda _: 1 // 0).result(WAIT_S)
    assert writer.flush().result(WAIT_S) is None


def test_a_cancelled_question_is_not_asked(writer: StoreWriter) -> None:
    gate = threading.Event()
    writer.ask(lambda _: gate.wait(WAIT_S))
    late = writer.ask(lambda _: pytest.fail("asked"))
    assert late.cancel()
    gate.set()
    writer.flush().result(WAIT_S)
    with pytest.raises(CancelledError):
        late.result(0)


def test_of_a_message_that_streams_only_the_newest_state_is_written(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    put_message = Store.put_message

    def put_and_note(store: Store, value: Message) -> None:
        written.append(value.text)
        put_message(store, value)

    monkeypatch.setattr(Store, "put_message", put_and_note)
    gate = threading.Event()
    writer.put_conversation(conversation())
    writer.ask(lambda _: gate.wait(WAIT_S))
    for number in range(1000):
        writer.put_message(message("a", "x" * number, state="streaming"))
    gate.set()
    writer.flush().result(WAIT_S)
    assert written[-1] == "x" * 999
    assert len(written) < 10


def test_what_is_put_for_a_deleted_conversation_is_dropped(writer: StoreWriter, errors: list[StoreError]) -> None:
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    writer.delete_conversation(C)
    writer.put_message(message("b", "the end of an answer"))
    assert writer.ask(lambda store: store.all_messages(C)).result(WAIT_S) == ()
    assert not errors


def test_a_conversation_put_again_after_it_was_deleted_lives(writer: StoreWriter) -> None:
    writer.delete_conversation(C)
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    assert writer.ask(lambda store: store.all_messages(C)).result(WAIT_S) == (message("a"),)


def test_one_message_that_cannot_be_stored_does_not_hold_up_the_others(
    writer: StoreWriter, errors: list[StoreError]
) -> None:
    writer.put_conversation(conversation())
    writer.put_message(message("lost", of="nowhere"))
    writer.put_message(message("a"))
    assert writer.ask(lambda store: store.all_messages(C)).result(WAIT_S) == (message("a"),)
    assert [str(error) for error in errors] == [
        "A message could not be saved: its conversation is not in the database."
    ]


def test_a_full_disk_is_said_once_and_nothing_is_lost_when_there_is_room_again(
    path: Path, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    writer = StoreWriter(path, errors.append)
    writer.put_conversation(conversation())
    pages = writer.ask(lambda store: store._connection.pragma("max_page_count", 1)).result(WAIT_S)
    writer.put_message(message("a", "long " * 10_000))
    writer.flush().result(WAIT_S)
    writer.put_message(message("b", "also long " * 10_000))
    writer.flush().result(WAIT_S)
    assert [str(error) for error in errors] == ["The disk is full: the conversation cannot be saved."]
    assert isinstance(pages, int)
    writer.ask(lambda store: store._connection.pragma("max_page_count", 1 << 20)).result(WAIT_S)
    writer.close()
    assert [m.id for m in stored(path)] == ["a", "b"]


def test_a_deletion_that_a_full_disk_refuses_is_tried_again(
    path: Path, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    told: list[Unsaved] = []
    delete, refuse = Store.delete_conversation, [True]

    def delete_or_refuse(store: Store, name: ConversationId) -> None:
        if refuse:
            raise StoreError("The disk is full: the conversation cannot be saved.", "FullError")
        delete(store, name)

    monkeypatch.setattr(Store, "delete_conversation", delete_or_refuse)
    writer = StoreWriter(path, errors.append, told.append)
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    writer.flush().result(WAIT_S)
    writer.delete_conversation(C)
    writer.flush().result(WAIT_S)
    assert writer.unsaved == Unsaved(0, 1, "The disk is full: the conversation cannot be saved.")
    refuse.clear()
    writer.flush().result(WAIT_S)
    assert not writer.unsaved
    assert told == [Unsaved(0, 1, "The disk is full: the conversation cannot be saved."), Unsaved()]
    assert not writer.close()
    assert stored(path) == ()


def test_a_full_disk_beside_a_message_that_never_goes_in_drops_only_that_one(
    path: Path, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    put, full = Store.put_message, [True]

    def put_or_refuse(store: Store, value: Message) -> None:
        if full and value.id == "b":
            raise StoreError("The disk is full: the conversation cannot be saved.", "FullError")
        put(store, value)

    monkeypatch.setattr(Store, "put_message", put_or_refuse)
    writer = StoreWriter(path, errors.append)
    gate = threading.Event()
    writer.ask(lambda _: gate.wait(WAIT_S))
    writer.put_conversation(conversation())
    for value in (message("lost", of="nowhere"), message("b"), message("d")):
        writer.put_message(value)
    gate.set()
    writer.flush().result(WAIT_S)
    assert writer.unsaved.n_messages == 2
    full.clear()
    assert not writer.close()
    assert [m.id for m in stored(path)] == ["b", "d"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("an accident")])
def test_no_error_ends_the_thread(
    path: Path, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What was put is said to be unsaved, and written when that works again."""
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    put, failing = Store.put_message, [True]

    def put_or_fail(store: Store, value: Message) -> None:
        if failing:
            raise error
        put(store, value)

    monkeypatch.setattr(Store, "put_message", put_or_fail)
    writer = StoreWriter(path, errors.append)
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    writer.flush().result(WAIT_S)
    assert writer.unsaved.n_messages == 1
    assert str(error.args[-1]) in str(errors[0])
    failing.clear()
    writer.put_message(message("b"))
    assert not writer.close()
    assert [m.id for m in stored(path)] == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_nothing_counts_as_saved_in_a_database_that_was_removed(
    path: Path, writer: StoreWriter, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is back in its place, everything is."""
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    writer.put_conversation(conversation())
    writer.flush().result(WAIT_S)
    elsewhere = path.rename(path.with_name("elsewhere"))
    writer.put_message(message("a"))
    writer.flush().result(WAIT_S)
    assert writer.unsaved.n_messages == 1
    assert str(errors[0]) == f"The database {path} was removed while kvdesk has it open."
    elsewhere.rename(path)
    assert not writer.close()
    assert stored(path) == (message("a"),)


def test_what_always_raises_holds_up_no_other(
    path: Path, errors: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    put_conversation = Store.put_conversation

    def put_or_fail(store: Store, value: Conversation) -> None:
        if value.id == "bad":
            raise ValueError("an accident")
        put_conversation(store, value)

    monkeypatch.setattr(Store, "put_conversation", put_or_fail)
    writer = StoreWriter(path, errors.append)
    writer.put_conversation(conversation("bad"))
    writer.put_message(message("its own", of="bad"))
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    writer.flush().result(WAIT_S)
    assert writer.unsaved.n_messages == 1, "a message of a conversation that waits waits too"
    writer.put_message(message("b"))
    unsaved = writer.close()
    assert unsaved.n_messages == 1
    assert [m.id for m in stored(path)] == ["a", "b"]
    assert "an accident" in str(errors[0])


def test_a_copy_that_cannot_be_deleted_costs_no_message(path: Path, errors: list[StoreError]) -> None:
    path.with_name(f"{path.name}.v1.backup").mkdir()
    writer = StoreWriter(path, errors.append)
    writer.put_conversation(conversation("d"))
    writer.flush().result(WAIT_S)
    writer.delete_conversation(ConversationId("d"))
    writer.flush().result(WAIT_S)
    writer.put_conversation(conversation())
    writer.put_message(message("a"))
    assert not writer.close()
    assert stored(path) == (message("a"),)
    assert not errors


def test_an_index_that_cannot_be_made_ends_no_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def fail(_: Store) -> bool:
        tried.set()
        raise ValueError("an accident")

    monkeypatch.setattr(Store, "index_some", fail)
    with closing(StoreWriter(path, lambda _: None)) as writer:
        assert tried.wait(WAIT_S)
        writer.put_conversation(conversation())
        assert len(writer.ask(Store.conversations).result(WAIT_S)) == 1


def test_what_is_deleted_beside_a_message_that_never_goes_in_is_forgotten_too(writer: StoreWriter, path: Path) -> None:
    writer.put_conversation(conversation())
    writer.flush().result(WAIT_S)
    copy = path.with_name(f"{path.name}.v1.backup")
    copy.touch()
    gate = threading.Event()
    writer.ask(lambda _: gate.wait(WAIT_S))
    writer.delete_conversation(C)
    writer.put_message(message("lost", of="nowhere"))
    gate.set()
    writer.flush().result(WAIT_S)
    assert not copy.exists()


def test_close_says_what_could_not_be_written(path: Path, errors: list[StoreError]) -> None:
    writer = StoreWriter(path, errors.append)
    writer.put_conversation(conversation())
    writer.ask(lambda store: store._connection.pragma("max_page_count", 1)).result(WAIT_S)
    for name in ("a", "b"):
        writer.put_message(message(name, "long " * 10_000))
    unsaved = writer.close()
    assert (unsaved.n_messages, unsaved.why) == (2, "The disk is full: the conversation cannot be saved.")


def test_a_database_that_cannot_be_opened_is_told_to_everybody_who_waits(path: Path, errors: list[StoreError]) -> None:
    path.write_bytes(b"This is a diary, not a database.")
    writer = StoreWriter(path, errors.append)
    with pytest.raises(StoreError, match="is not a database"):
        writer.opened.result(WAIT_S)
    writer.put_message(message("a"))
    with pytest.raises(StoreError, match="is not a database"):
        writer.ask(Store.conversations).result(WAIT_S)
    writer.close()
    assert path.read_bytes() == b"This is a diary, not a database."


# --- real processes, really ended -----------------------------------------------------------------------------------

STREAM = """
import sys, threading
from pathlib import Path
from kvdesk.store import StoreWriter
from tests.store.values import conversation, message

writer = StoreWriter(Path(sys.argv[1]), lambda error: None)
writer.opened.result()
writer.put_conversation(conversation(leaf="a"))
writer.put_message(message("done", "An older message."))
pause = threading.Event()
number = 0
while True:
    number += 1
    writer.put_message(message("a", f"{number}", state="streaming", tokens=tuple(range(number % 500))))
    print(number, flush=True)
    pause.wait(0.002)
"""

FILL = """
import resource, signal, sys
from pathlib import Path
from kvdesk.store import StoreWriter
from tests.store.values import conversation, message

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
said = []
writer = StoreWriter(Path(sys.argv[1]), lambda error: said.append(str(error)))
writer.put_conversation(conversation())
writer.put_message(message("before", "kept"))
writer.flush().result()
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
for number in range(40):
    writer.put_message(message(f"m{number}", f"{number} " * 10_000))
    writer.flush().result()
readable = [m.id for m in writer.ask(lambda store: store.all_messages("c")).result()]
assert "before" in readable
writer.close()
assert said and all(sentence.endswith(".") for sentence in said), said
print("alive", said)
"""


def child(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, path], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX matter")
@pytest.mark.parametrize("after", [1, 150, 400])
def test_kill_9_loses_at_most_the_last_250_ms(path: Path, after: int) -> None:
    """A process that streams is killed; what it had put a quarter of a second before is in the file, whole.

    A busy machine adds to that: a fixed amount, and as much as it has been seen to hold the process up.
    """
    shown: list[tuple[float, int]] = []
    with child(STREAM, path) as process:
        assert process.stdout
        for line in process.stdout:
            shown.append((time.monotonic(), int(line)))
            if len(shown) > after:
                break
        killed_at = time.monotonic()
        process.kill()
        shown += [(killed_at, int(line)) for line in process.stdout]
    held_up = max((b - a for (a, _), (b, _) in pairwise(shown)), default=0.0)
    old_enough = [number for at, number in shown if at < killed_at - 0.4 - 2 * held_up]
    assert old_enough or after < 400 or held_up > 0.1

    found = {str(m.id): m for m in stored(path)} if path.exists() else {}
    if old_enough:
        assert found["done"].text == "An older message."
        assert int(found["a"].text) >= old_enough[-1]
    if "a" in found:
        number = int(found["a"].text)
        assert found["a"].state == "interrupted"
        assert found["a"].tokens == tuple(range(number % 500))
        assert number <= shown[-1][1]


@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is a POSIX matter")
def test_a_file_that_may_not_grow_leaves_the_process_alive_and_what_was_saved_readable(path: Path) -> None:
    with child(FILL, path) as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert output.startswith("alive")
    assert "before" in [m.id for m in stored(path)]
