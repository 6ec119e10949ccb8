"""Batches: how prompts are cut, and that other times lead to the opposite verdict."""

from itertools import product

import pytest

from kvdesk.experiments.questions import batching
from kvdesk.experiments.questions.batching import (
    AT_ONCE,
    CAME,
    COUNTS,
    EACH,
    LONGEST,
    ORDERS,
    PIECES,
    SHORTEST,
    SMALL,
    WAYS,
)
from kvdesk.experiments.statistics import jain, percentiles
from kvdesk.protocol.experiment import Result, Sample, chosen

LENGTHS = [8, 1, 4, 2]


@pytest.mark.parametrize(
    ("order", "batches"),
    [
        (CAME, [[(0, 5)], [(0, 3), (1, 1), (2, 1)], [(2, 3), (3, 2)]]),
        (SHORTEST, [[(1, 1), (3, 2), (2, 2)], [(2, 2), (0, 3)], [(0, 5)]]),
        (LONGEST, [[(0, 5)], [(0, 3), (2, 2)], [(2, 2), (3, 2), (1, 1)]]),
        (EACH, [[(0, 1), (1, 1), (2, 1), (3, 1)], [(0, 1), (2, 1), (3, 1)], [(0, 2), (2, 2)], [(0, 4)]]),
    ],
)
def test_prompts_are_cut_into_batches(order: str, batches: list[list[tuple[int, int]]]) -> None:
    assert batching.cut_prompts(LENGTHS, order, 5) == batches


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 3, 16, 100])
def test_every_token_is_read_once(order: str, size: int) -> None:
    lengths = batching.prompt_lengths(40)
    batches = batching.cut_prompts(lengths, order, size)
    for i, n in enumerate(lengths):
        assert sum(m for batch in batches for j, m in batch if j == i) == n
    assert max(sum(n for _, n in batch) for batch in batches) <= max(size, len(lengths))


def test_fairness_and_percentiles() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert percentiles(range(101)) == (50, 95, 99)


def said(
    *,
    gain: float = 2.0,
    noise: float = 0.0,
    streams: float | None = 1.0,
    short: float = 0.5,
    pieces: float = 0.2,
    rounds: int = 3,
) -> Result:
    """The result where eight at once are `gain` times as fast as in turn, by `noise` more or less in the rounds beside
    the second one, and so on.
    """
    kinds = {batching.UNIFIED: 1.0} | ({batching.STREAMS: streams} if streams is not None else {})
    samples = []
    for number in range(rounds):
        for n in COUNTS:
            for _ in range(3):
                for kind, speed in kinds.items():
                    samples.append(Sample(f"{kind}, {batching.TOGETHER}", n, n / speed, number))
                samples.append(
                    Sample(f"{batching.UNIFIED}, {batching.IN_TURN}", n, n * gain * (1 + noise * (number - 1)), number)
                )
        for kind in kinds:
            for order in ORDERS:
                for seq_id in range(8):
                    wait = (seq_id + 1) * (short if order == SHORTEST else 1.0)
                    samples.append(Sample(f"{kind}, {order}", seq_id, wait, number))
        for kind, way in product(kinds, WAYS):
            name, n = f"{kind}, {way}", PIECES.get(way, 1)
            samples.append(Sample(f"{name}: prompt", n, 1.0 if way == AT_ONCE else 1.5, number))
            gap = pieces if (kind, way) == (batching.UNIFIED, SMALL) else 1.0
            samples += [Sample(f"{name}: gap", n, gap, number) for _ in range(n)]
    if streams is None:
        samples.append(Sample(batching.REFUSED, 0, 1, note="No streams here."))
    experiment = batching.EXPERIMENT
    return experiment.conclude(chosen(experiment.parameters, {}, short=True), samples)


def test_batches_pay_when_they_are_faster() -> None:
    assert said().verdict.key == (
        "8 at once write more tokens a second; streams are as fast; the shortest first waits less;"
        " pieces shorten the longest gap"
    )
    assert said(gain=1.0, streams=2.0, short=1.0, pieces=1.0).verdict.key == (
        "8 at once write no more tokens a second; streams are faster; the shortest first waits as long;"
        " pieces do not shorten the longest gap"
    )
    assert "streams are slower" in said(streams=0.5).verdict.key


@pytest.mark.parametrize("measured", [1.11, 1.12, 1.16])
def test_a_tenth_more_is_not_denied(measured: float) -> None:
    result = said(gain=measured)
    assert result.verdict.key.startswith("8 at once write slightly more tokens a second; ")
    assert not [remark for remark in result.remarks if remark.startswith("Not certain")]


def test_a_figure_that_was_judged_within_its_interval_is_named() -> None:
    (remark,) = [remark for remark in said(gain=1.3, noise=0.05).remarks if remark.startswith("Not certain")]
    assert "8 together over in turn" in remark


def test_a_memory_without_streams_is_measured_without_them() -> None:
    result = said(streams=None)
    assert "no streams" in result.verdict.key
    assert "Streams are not measured: No streams here." in result.remarks
    assert "streams" not in " ".join(result.tables[0].columns)
    assert {row[0] for row in result.tables[2].rows} == {"unified"}


def test_the_tables_tell_gaps_and_fairness() -> None:
    at_once, orders, among = said().tables
    assert [row[0] for row in at_once.rows] == [str(n) for n in COUNTS]
    assert len(orders.rows) == 2 * len(ORDERS)
    assert 0 < float(orders.rows[0][-1].split()[0]) < 1
    assert [row[:2] for row in among.rows] == list(product(("unified", "streams"), WAYS))
    longest = [row[among.columns.index("longest gap ms")] for row in among.rows]
    assert longest == ["1,000", "1,000", "1,000", "200", *["1,000"] * 4]  # in streams small pieces change nothing here


def test_percentiles_are_told_of_a_hundred_values_and_more() -> None:
    for table in said(rounds=3).tables:  # 3 values in each row of answers, 48 gaps among 16 pieces at most
        assert "gaps P50/95/99 ms" not in table.columns
    at_once, _, among = said(rounds=7).tables  # 112 gaps among 16 pieces, 28 among 4
    assert "gaps P50/95/99 ms" not in at_once.columns
    assert among.columns[-1] == "gaps P50/95/99 ms"
    assert [row[-1] for row in among.rows] == [*["–"] * 3, "200 / 200 / 200", *["–"] * 3, "1,000 / 1,000 / 1,000"]
