"""Pages and trees: what is said follows from the measured values, and a journal recorded elsewhere can be taken."""

from pathlib import Path

import pytest

from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.journal.file import JournalHeader, save_journal
from kvdesk.cli import lab
from kvdesk.errors import UserError
from kvdesk.experiments import child, experiment_by_id
from kvdesk.experiments.questions import paged
from kvdesk.experiments.questions.paged import BLOCK_SIZES, EXPERIMENT, HELD, LLAMA, SERVED, TREE, Row
from kvdesk.policies.load import LoadMeter
from kvdesk.protocol.experiment import Finished, Request, Result, Sample, chosen
from tests.cache.journals import one_token


def told(*, blocks: float, tree: float, empty: float, holes: float) -> list[Sample]:
    """Prompt tokens computed by blocks and tree where llama.cpp computed 100, and the two kinds of waste."""
    samples: list[Sample] = []
    for number in range(2):
        samples += paged._told(LLAMA, 0, Row(0.5, 100, 0, 0, holes, 1000, 1), number)
        samples += paged._told(TREE, 1, Row(0.5, tree, 0, 0, 0, 900, 1), number)
        for size in BLOCK_SIZES:
            samples += paged._told(SERVED, size, Row(0.5, blocks, 0, 0, 0, 900, 1), number)
            samples += paged._told(HELD, size, Row(0.5, 100, 0, 0, empty * size / 16, 900, 1), number)
    return samples


def said(**measured: float) -> Result:
    return EXPERIMENT.conclude(chosen(EXPERIMENT.parameters, {}, short=True), told(**measured))


def test_the_caches_are_compared_by_what_they_compute_and_waste() -> None:
    result = said(blocks=130, tree=100, empty=0.02, holes=0.06)
    assert result.verdict.key == "blocks compute more; the tree computes as much; waste is less than holes"
    assert "from 0.010 with blocks of 8 to 0.160 with 128" in result.verdict.sentence
    assert len(result.tables[0].rows) == 2 + 2 * len(BLOCK_SIZES)
    result = said(blocks=80, tree=50, empty=0.3, holes=0.06)
    assert result.verdict.key == "blocks compute less; the tree computes less; waste is more than holes"


def test_what_is_about_as_much_is_not_certain_near_its_edge() -> None:
    def remarks(result: Result) -> list[str]:
        return [remark for remark in result.remarks if remark.startswith("Not certain")]

    assert remarks(said(blocks=130, tree=100, empty=0.02, holes=0.06)) == []
    days = [
        paged._told(TREE, 1, Row(0.5, computed, 0, 0, 0, 900, 1), number) for number, computed in enumerate((95, 115))
    ]
    others = [s for s in told(blocks=130, tree=100, empty=0.02, holes=0.06) if not s.series.startswith(TREE)]
    samples = [*others, *(sample for day in days for sample in day)]
    values = chosen(EXPERIMENT.parameters, {}, short=True)
    assert [remark.split(", ")[:2] for remark in remarks(EXPERIMENT.conclude(values, samples))] == [
        ["Not certain: prompt tokens computed", "tree over llama.cpp"]
    ] * 2


def test_nothing_wasted_is_as_much_as_no_holes() -> None:
    result = said(blocks=130, tree=100, empty=0.0, holes=0.0)
    assert result.verdict.key.endswith("waste is about as much as holes")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty tokens of one sequence, in 256 cells of two sequences."""
    mirror, record = one_token(0, 5, None)
    written = Journal(mirror)
    for i in range(40):
        mirror, record = one_token(0, i, mirror)
        operation = Operation(mirror.operation, 1e9 + i, "decode", "llama_decode(ctx, {1 token})", 1.0)
        written.record([operation], record)
    path = tmp_path_factory.mktemp("journal") / "mine.jsonl"
    save_journal(path, written.recording(), JournalHeader("m.gguf"))
    return path


def ended(name: str, journal: Path, model: Path, monkeypatch: pytest.MonkeyPatch, **given: float) -> Finished:
    monkeypatch.setattr(LoadMeter, "read", lambda *_: 0.0)
    values = chosen(experiment_by_id(name).parameters, given, short=True)
    *_, last = child.run(Request(name, str(model), values, journal_file=str(journal)), lambda _: None)
    assert isinstance(last, Finished)
    return last


def test_a_journal_recorded_elsewhere_is_taken(
    journal: Path, talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = ended("paged", journal, talking_file, monkeypatch)
    row = next(row for row in last.result.tables[0].rows if row[0] == HELD and row[1] == "16")
    assert row[7] == "48"  # 41 tokens in three blocks


def test_a_day_needs_as_many_cells_as_the_journal_had(
    journal: Path, talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = ended("defrag-policies", journal, talking_file, monkeypatch, turns=4, rounds=2, cells=1024)
    assert "compaction has nothing to do" in last.result.verdict.key


def test_only_experiments_on_a_history_take_a_journal(journal: Path, model_file: Path) -> None:
    with pytest.raises(UserError, match="positions takes no journal"):
        lab.main(["run", "positions", "--journal", str(journal), "--model", str(model_file)])
