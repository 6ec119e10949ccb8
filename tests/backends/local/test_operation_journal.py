"""An operation is one event and one entry of the journal, however many calls it takes."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.decodes import MirroredDecode
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.journal.file import JournalHeader, load_journal, save_journal
from kvdesk.cache.journal.packing import Entry
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import OperationDone
from kvdesk.settings import ContextSettings
from tests.backends.local.ids import open_model

ONE, TWO = ConversationId("one"), ConversationId("two")
SETTINGS = ContextSettings(n_ctx=64, n_seq_max=3, n_batch=32, n_ubatch=32, n_threads=1, n_threads_batch=1)


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> Iterator[Model]:
    model = open_model("attention", tiny_folder)
    yield model
    model.close()


class Rig:
    def __init__(self, model: Model) -> None:
        self.context = Context(model, SETTINGS)
        self.told: list[OperationDone] = []
        self.journal = OperationJournal(self.context, self.told.append)  # type: ignore[arg-type]
        self.context.memory.on_decoded = self._decoded
        self.context.decode(Batch.of(0, 0, range(5, 25)))
        self.context.memory.settle()
        self.before = self.journal.journal.recording().last

    def _decoded(self, decodes: Sequence[MirroredDecode]) -> None:
        for decode in decodes:
            self.journal.decoded(decode)

    @property
    def entries(self) -> list[Entry]:
        """What was written down after the prompt."""
        recording = self.journal.journal.recording()
        return recording.operations(self.before + 1, recording.last)


@pytest.fixture
def rig(model: Model) -> Iterator[Rig]:
    rig = Rig(model)
    yield rig
    rig.context.close()


def test_two_calls_are_one_operation(rig: Rig) -> None:
    with rig.journal.operation("slide", ONE, "it was full") as operation:
        rig.context.memory.seq_rm(0, 4, 8)
        rig.context.memory.seq_add(0, 8, -1, -4)
        operation.note = "a sentence"
    (told,), (entry,) = rig.told, rig.entries
    assert told.call == entry.operation.call
    assert told.call == "llama_memory_seq_rm(mem, 0, 4, 8) -> True; llama_memory_seq_add(mem, 0, 8, -1, -4)"
    assert (told.name, told.conversation, told.reason, told.note) == ("slide", ONE, "it was full", "a sentence")
    assert (entry.operation.name, entry.operation.conversation, entry.operation.reason) == ("slide", ONE, "it was full")
    assert told.operation == entry.operation.number == rig.context.memory.mirror.operation == rig.before + 2
    assert entry.n_cells == 4 + 12, "removed and moved"
    maps = rig.journal.journal.recording().state_at(told.operation)
    assert (maps[0].streams[0].pos == rig.context.memory.snapshot().maps[0].streams[0].pos).all()


PARTS = (("swap out", "by hand"), ("seq_rm", "swapped out"))


def test_a_part_of_an_operation_is_not_told_twice(rig: Rig) -> None:
    swap, removal = (rig.journal.operation(name, ONE, reason) for name, reason in PARTS)
    with swap, removal as part:
        rig.context.memory.seq_rm(0, -1, -1)
        part.emptied = True
    assert [(e.name, e.reason, e.emptied) for e in rig.told] == [("swap out", "by hand", False)]
    assert [e.operation.name for e in rig.entries] == ["swap out"]


def test_what_happens_to_another_conversation_is_its_own_operation(rig: Rig) -> None:
    with rig.journal.operation("swap in", ONE, "by hand"):
        rig.context.memory.seq_cp(0, 1)
        with rig.journal.operation("seq_rm", TWO, "its cells are needed"):
            rig.context.memory.seq_rm(0, 10, -1)
        rig.context.memory.seq_rm(1, 12, -1)
    assert [(e.name, e.conversation) for e in rig.told] == [("seq_rm", TWO), ("swap in", ONE)]
    assert rig.told[1].call.count("llama_memory") == 2
    assert [(e.operation.name, e.operation.number - rig.before) for e in rig.entries] == [
        ("swap in", 1),
        ("seq_rm", 2),
        ("swap in", 3),
    ], "in the order in which the cells changed"


def test_an_operation_that_raises_is_written_down_and_not_told(rig: Rig) -> None:
    def fail() -> None:
        with rig.journal.operation("slide", ONE):
            rig.context.memory.seq_rm(0, 4, 8)
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail()
    assert rig.told == []
    assert [(e.operation.name, e.n_cells) for e in rig.entries] == [("slide", 4)]


def test_an_operation_that_calls_nothing_is_not_told(rig: Rig) -> None:
    with rig.journal.operation("seq_rm", ONE):
        pass
    with rig.journal.operation("audit", call="llama_state_get_data(ctx, dst, size)"):
        pass
    assert [e.name for e in rig.told] == ["audit"], "it says what it read"
    assert rig.entries == [], "no cell changed"


def test_what_is_no_operation_has_its_entries_and_is_not_told(rig: Rig) -> None:
    with rig.journal.purpose(ONE, "to compare"):
        rig.context.memory.seq_cp(0, 1)
        rig.context.decode(Batch.of(1, 20, [5]), "check")
        rig.context.memory.seq_rm(1, -1, -1)
    assert rig.told == []
    assert [(e.operation.name, e.operation.reason) for e in rig.entries] == [
        ("seq_cp", "to compare"),
        ("check", "to compare"),
        ("seq_rm", "to compare"),
    ]


def test_the_time_of_what_looks_at_an_operation_is_not_its_own(rig: Rig) -> None:
    with rig.journal.operation("seq_rm", ONE) as operation:
        rig.context.memory.seq_rm(0, 4, 8)
        rig.journal.end(operation)
        ms = operation.ms
        with rig.journal.purpose(None, "to compare"):
            rig.context.memory.seq_cp(0, 1)
        operation.undoable = True
    (told,) = rig.told
    assert (told.ms, told.operation, told.undoable) == (ms, rig.before + 1, True)
    assert told.call == "llama_memory_seq_rm(mem, 0, 4, 8) -> True"


def test_an_operation_of_two_calls_is_read_back_from_a_file(rig: Rig, tmp_path: Path) -> None:
    with rig.journal.operation("slide", ONE, "it was full"):
        rig.context.memory.seq_rm(0, 4, 8)
        rig.context.memory.seq_add(0, 8, -1, -4)
    rig.context.memory.seq_rm(0, 10, -1)
    recording = rig.journal.journal.recording()
    save_journal(tmp_path / "journal", recording, JournalHeader())
    read = load_journal(tmp_path / "journal")[1]
    assert read.operations(0, read.last) == recording.operations(0, recording.last)
    for number in (rig.before, rig.before + 1, rig.before + 2, read.last):
        wanted, found = recording.state_at(number), read.state_at(number)
        assert (found[0].streams[0].pos == wanted[0].streams[0].pos).all()
