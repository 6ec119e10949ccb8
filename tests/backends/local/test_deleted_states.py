"""What was deleted is in no saved state: no text, no token, no file, whatever was open, and whenever kvdesk ended."""

import errno
import json
import logging
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.forgotten_states import forget_saved, forget_unknown
from kvdesk.backends.local.cache_manager.saved_states import NOBODY, SavedStateStore
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, MessageId
from kvdesk.policies.swap import Limits, Placement, StateKind
from kvdesk.protocol.cache import MessageSpan, UsePolicy
from kvdesk.protocol.chat import Client, CloseConversation, DropMessages
from kvdesk.protocol.operations import Operate, SwapOut
from kvdesk.settings import CachePolicy, Sampling
from kvdesk.values import replace

KIND = StateKind("model", "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))
OTHER = replace(KIND, model_sha256="other")
ROOMY = Limits(0, 1 << 30)
TO_DISK = Placement("disk", (), (), "")
ONE, TWO = ConversationId("one"), ConversationId("two")
Q1, Q2 = MessageId("q1"), MessageId("q2")


def spans(*messages: MessageId) -> tuple[MessageSpan, ...]:
    return tuple(MessageSpan(name, 50 * i, 50 * i + 50, 50 * i + 5, ()) for i, name in enumerate(messages))


def filled(folder: Path, kind: StateKind = KIND) -> None:
    """Of the chat one: its state of both messages, a checkpoint of each, a document of the second; of two: a state, and
    the document too; and the state of another program's request.
    """
    with closing(SavedStateStore(folder, kind, ROOMY)) as saved:
        blob = bytes(1000)
        saved.put(TO_DISK, ONE, range(100), blob, 1.0, texts=("text of one",), spans=spans(Q1, Q2))
        saved.put(TO_DISK, ONE, range(50), blob, 1.0, checkpoint=True, messages=(Q1,))
        saved.put(TO_DISK, ONE, range(90), blob, 1.0, checkpoint=True, messages=(Q1, Q2))
        saved.put(TO_DISK, TWO, range(200, 250), blob, 1.0, texts=("text of two",), spans=spans(MessageId("q")))
        both, messages = (ONE, TWO), (Q2, MessageId("q"))
        saved.put(TO_DISK, NOBODY, range(300, 340), blob, 1.0, first=20, chats=both, messages=messages)
        program = Client("program")
        saved.put(TO_DISK, ConversationId("request"), range(400, 440), blob, 1.0, client=program)


def left(folder: Path) -> list[tuple[str, int, list[str]]]:
    """Chat, tokens and chats of each row of the index, which are the states that have files, and no others."""
    rows = json.loads((folder / "index.json").read_bytes())
    assert {f"{row['key']}.kvstate" for row in rows} | {"index.json"} == {file.name for file in folder.iterdir()}
    return sorted((row["conversation"], len(row["tokens"]), row["chats"]) for row in rows)


OF_TWO = [("", 40, ["two"]), ("request", 40, []), ("two", 50, [])]
OF_Q1 = [("", 40, ["two"]), ("one", 50, []), ("request", 40, []), ("two", 50, [])]


@pytest.mark.parametrize("kind", [KIND, OTHER], ids=["of the open model", "of another model"])
@pytest.mark.parametrize(("messages", "expected"), [(None, OF_TWO), ((Q2,), OF_Q1), ((Q1, Q2), OF_TWO)])
def test_it_leaves_while_a_model_is_open(
    tmp_path: Path, kind: StateKind, messages: tuple[MessageId, ...] | None, expected: list[object]
) -> None:
    filled(tmp_path, kind)
    with closing(SavedStateStore(tmp_path, KIND, ROOMY)) as saved:
        saved.drop_of(ONE, messages)
        saved.leave(ONE)
    assert left(tmp_path) == expected


@pytest.mark.parametrize(("messages", "expected"), [(None, OF_TWO), ((Q2,), OF_Q1)])
def test_it_leaves_while_nobody_has_the_folder_open(
    tmp_path: Path, messages: tuple[MessageId, ...] | None, expected: list[object]
) -> None:
    filled(tmp_path)
    forget_saved(tmp_path, ONE, messages)
    assert left(tmp_path) == expected


def test_the_state_of_an_earlier_version_that_names_no_messages_leaves_with_any(tmp_path: Path) -> None:
    with closing(SavedStateStore(tmp_path, KIND, ROOMY)) as saved:
        saved.put(TO_DISK, ONE, range(50), bytes(100), 1.0, checkpoint=True)
    forget_saved(tmp_path, ONE, (Q2,))
    assert left(tmp_path) == []


@pytest.mark.parametrize("command", [CloseConversation(ONE), DropMessages(ONE, (Q1,))], ids=["chat", "message"])
def test_an_engine_without_a_model_removes_it(tmp_path: Path, command: CloseConversation | DropMessages) -> None:
    filled(tmp_path)
    headless = HeadlessEngine()
    headless.do(UsePolicy(CachePolicy(), tmp_path))
    headless.do(command)
    headless.close()
    assert left(tmp_path) == OF_TWO


# --- the next start ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (("two", "q"), OF_TWO),
        (("one", "q1", "two", "q"), OF_TWO),
        (("one", "q1", "q2"), [("", 40, ["one"]), *(("one", n, []) for n in (50, 90, 100)), ("request", 40, [])]),
        ((), [("request", 40, [])]),
    ],
    ids=["a chat", "a message", "another chat", "all"],
)
def test_it_leaves_at_the_next_start(tmp_path: Path, known: tuple[str, ...], expected: list[object]) -> None:
    """kvdesk was killed after the database had forgotten it, and before the engine heard of it."""
    filled(tmp_path)

    def is_known(chat: ConversationId, messages: Collection[MessageId]) -> bool:
        return {chat, *messages} <= set(known)

    forget_unknown(tmp_path, is_known)
    assert left(tmp_path) == expected


def test_a_message_that_only_a_document_names(tmp_path: Path) -> None:
    with closing(SavedStateStore(tmp_path, KIND, ROOMY)) as saved:
        saved.put(TO_DISK, NOBODY, range(40), bytes(100), 1.0, first=20, chats=(ONE,), messages=(Q1,))
    forget_unknown(tmp_path, lambda _, messages: Q1 not in messages)
    assert left(tmp_path) == []


def test_nothing_leaves_that_is_known(tmp_path: Path) -> None:
    filled(tmp_path)
    before = left(tmp_path)
    forget_unknown(tmp_path, lambda _chat, _messages: True)
    assert left(tmp_path) == before


def test_texts_that_an_earlier_version_wrote_leave_the_index(tmp_path: Path) -> None:
    """There may be a deleted message among them that was evicted from the context before, and is in no state."""
    filled(tmp_path)
    before = left(tmp_path)
    SavedStateStore(tmp_path, KIND, ROOMY).close()
    assert left(tmp_path) == before
    assert b"text of" not in (tmp_path / "index.json").read_bytes()


@pytest.mark.parametrize("starts_as", ["window", "engine"])
def test_killed_between_the_file_and_the_index(tmp_path: Path, starts_as: str) -> None:
    """The file is gone and its row, with the texts, is not; another index was half written."""
    filled(tmp_path)
    for row in json.loads((tmp_path / "index.json").read_bytes()):
        if row["conversation"] == ONE:
            (tmp_path / f"{row['key']}.kvstate").unlink()
    (tmp_path / "index.json.4194305.part").write_text("text of one")
    (tmp_path / "0.kvstate").write_bytes(b"of no row")
    if starts_as == "window":
        forget_unknown(tmp_path, lambda chat, _: chat != ONE)
    else:
        SavedStateStore(tmp_path, KIND, ROOMY).close()
    assert not any(b"text of one" in file.read_bytes() for file in tmp_path.iterdir())
    assert [row for row in left(tmp_path) if row[0] == ONE] == []


def test_a_half_written_index_is_removed_though_the_other_is_whole(tmp_path: Path) -> None:
    (tmp_path / "index.json.4194305.part").write_text("text of one")
    SavedStateStore(tmp_path, KIND, ROOMY).close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noted_and_the_next_start_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(SavedStateStore(tmp_path, KIND, ROOMY)) as saved:
        saved.put(TO_DISK, ONE, range(100), bytes(1000), 1.0, spans=spans(Q1))
    full = OSError(errno.ENOSPC, "no space left on device")
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr("kvdesk.whole_file.os.fsync", lambda _: (_ for _ in ()).throw(full))
        forget_saved(tmp_path, ONE)
    assert "no space left on device" in caplog.text
    assert json.loads((tmp_path / "index.json").read_bytes()), "the index could not be written"
    forget_unknown(tmp_path, lambda chat, _: chat != ONE)
    assert left(tmp_path) == []


# --- what the engine writes down --------------------------------------------------------------------------------------


def test_the_engine_names_the_messages_of_what_it_saves(engine: HeadlessEngine, tmp_path: Path) -> None:
    """For each kind of memory: states, and checkpoints where it has them."""
    engine.do(UsePolicy(CachePolicy(memory_mb=64), tmp_path))
    chat = HeadlessChat(engine, "You keep a lighthouse, and you write down what the sea brings.")
    for question in ("What came today, and from where?", "And what was it that came yesterday?"):
        chat.answer(question, Sampling(temperature=0.0, max_tokens=8))
    engine.do(Operate(SwapOut(chat.id), measured=False))
    saved_states = engine.engine.session.runtime.cache_manager.swapper.saved_states
    states = saved_states.all_of(chat.id)
    assert states
    known = {message.id for message in chat.messages}
    for state in states:
        assert state.computed_from
        assert {name for name in state.computed_from if not name.endswith(":system")} <= known
    last = chat.messages[-1].id
    engine.do(DropMessages(chat.id, (last,)))
    assert all(last not in state.computed_from for state in saved_states.all_of(chat.id))
    engine.do(CloseConversation(chat.id))
    engine.do(UsePolicy(CachePolicy(), None))
