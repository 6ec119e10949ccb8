"""When to compact: what is said follows from the measured values, and each policy acts when it says."""

import numpy as np
import pytest

from kvdesk.cache.geometry import ModelFacts
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.experiments.questions import defrag_policies as defrag
from kvdesk.experiments.questions.defrag_policies import (
    COST,
    EXPERIMENT,
    IDLE,
    NEVER,
    NUMBERS,
    POLICIES,
    RUNS,
    THRESHOLD,
)
from kvdesk.experiments.scenarios.history import Event, Kept, Paused, Read, Sequences, Wrote
from kvdesk.experiments.simulators.compactions import Way
from kvdesk.policies.costs import Costs, Reads
from kvdesk.protocol.experiment import Result, Sample, chosen


def said(*, waited: float, noticed: float, filled: float, unsteady: float = 0.0) -> Result:
    """A day that takes 10 s without compaction, and `waited` with each policy. unsteady: share by which the second day
    takes longer with the first of them.
    """
    samples = []
    for number in range(2):
        for policy in POLICIES:
            own = dict.fromkeys(NUMBERS, 0.01)
            own[defrag.WAITED] = 10.0 if policy == NEVER else waited * (1 + unsteady * number * (policy == THRESHOLD))
            own[defrag.NOTICED] = noticed if policy == IDLE else 0.1
            samples += [Sample(f"{policy}: {name}", 0, value, number) for name, value in own.items()]
            samples += [Sample(f"{policy}: {defrag.TURN}", turn, 0.01, number) for turn in (1, 2)]
        samples.append(Sample(defrag.ROW_BYTES, 0, 1000, number))
        for name, way in RUNS:
            cells = filled if way is Way.FILL else 500.0
            values = zip(defrag.KEYS, (3, cells, 200, 2048, 1.5), strict=True)
            samples += [Sample(f"{defrag.SIMULATED}{name}: {way.value}: {k}", 0, v, number) for k, v in values]
    return EXPERIMENT.conclude(chosen(EXPERIMENT.parameters, {}, short=True), samples)


def test_compaction_pays_when_the_day_is_shorter() -> None:
    result = said(waited=7.0, noticed=0.0, filled=100)
    assert result.verdict.key == "compaction pays; in pauses nobody waits; filling holes moves fewer cells"
    assert result.figures[0].value == pytest.approx(0.7)
    assert len(result.tables[0].rows) == 4
    assert result.tables[1].rows[1][3:6] == ("100", "0.2", "0.4")
    assert len(result.plots[0].series[0].points) == 2


def test_it_does_not_pay_when_it_is_not() -> None:
    result = said(waited=10.0, noticed=0.5, filled=900)
    assert result.verdict.key == (
        "compaction does not pay; in pauses it is waited for; filling holes moves no fewer cells"
    )


def test_a_day_that_is_hardly_shorter_is_not_certain() -> None:
    (remark,) = said(waited=9.4, noticed=0.0, filled=100, unsteady=0.01).remarks[2:]
    assert remark.startswith("Not certain: seconds waited, over a threshold of 0.1, ")
    assert remark.endswith("was judged by 0.95, which is within its interval.")
    assert len(said(waited=7.0, noticed=0.0, filled=100).remarks) == 2


def test_the_policy_that_is_named_is_one_that_pays() -> None:
    """The least time may be one that says nothing: of one day in two."""
    unsure = said(waited=8.0, noticed=0.0, filled=100, unsteady=-0.5)
    assert unsure.verdict.answer.startswith("Compaction pays: by the cost model")


def due(policy: str, event: Event, *, top: int = 4000, flash: bool = False) -> bool:
    """A cache of 4,096 cells with 300 in use, the last at `top`; without flash attention a cell costs 1 µs."""
    cells = StreamCells(4096, 1)
    index = np.append(np.arange(299), top)
    cells.place(index, np.arange(300, dtype=np.int32), [(0,)] * 300, np.arange(300, dtype=np.int32), 1)
    cost = Costs(Reads(1_000_000, 100, flash))
    for n_kv in (256, 1024, 2048, 4096):
        for n_visible in (100, 300, 600):
            cost.learn(1, n_kv, n_visible, 5.0 + (0.0 if flash else n_kv / 1000) + n_visible / 1000)
    sequences = Sequences()
    sequences.follow(Read(0, tuple(range(300))))
    return defrag._due(policy, event, cells, cost, sequences, 1000, flash=flash)


READ, WROTE, PAUSED = Read(0, (1, 2)), Wrote(0, (1,)), Paused(3.0)


def test_each_policy_has_its_moment() -> None:
    moments = {p: [due(p, event) for event in (READ, WROTE, PAUSED, Kept(0, 0))] for p in POLICIES}
    assert moments == {
        NEVER: [False] * 4,
        THRESHOLD: [True, True, False, False],
        COST: [True, False, False, False],
        IDLE: [False, False, True, False],
    }


def test_the_cost_model_leaves_what_costs_nothing() -> None:
    assert not due(IDLE, PAUSED, top=299)
    assert not due(IDLE, PAUSED, flash=True)
    assert due(THRESHOLD, READ, flash=True)


def test_cells_of_a_window_cannot_be_moved_one_by_one() -> None:
    window = ModelFacts("g", "iswa", n_swa=16, swa_type="standard")
    assert EXPERIMENT.applies(window).startswith("This model's cache is not one of plain attention")
    assert EXPERIMENT.applies(ModelFacts("p", "attention")) == ""
