"""Hours of mixed use: other samples lead to the opposite verdict, and the use itself does what it says."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kvdesk.experiments.questions import soak
from kvdesk.experiments.soak_use import MixedUse
from kvdesk.experiments.statistics import slope_figure
from kvdesk.protocol.experiment import Result, Sample, chosen
from kvdesk.settings import ContextSettings

LOOKS = 24


def said(
    *, slower: float = 0.0, larger: float = 0.0, holes: float = 0.0, unsteady: float = 0.0, cells: bool = True
) -> Result:
    """The result where a token's time grows by the share `slower` over the whole time, and so on; with some noise.

    unsteady: share by which all probes of a look are above and below, in turn
    """
    random, samples = Random(1), []
    for number in range(LOOKS):
        x, share = (number + 1) / 4, (number + 1) / LOOKS
        noise = random.uniform(0.995, 1.005)
        swing = 1 + unsteady * (-1) ** number
        ratios = [(1 + slower * share) * swing * random.uniform(0.99, 1.01) for _ in range(soak.N_PROBES)]
        samples += [Sample(soak.PROBE, x, ratio, number) for ratio in ratios]
        samples.append(Sample(soak.MEMORY, x, 3e8 * (1 + larger * share) * noise, number))
        samples.append(Sample(soak.STORES, x, 1e7, number))
        if cells:
            samples.append(Sample(soak.HOLES, x, 0.3 + holes * share + random.uniform(-0.05, 0.05), number))
        samples += [Sample(name, x, 8.0 * noise, number) for name in (soak.P50, soak.P95, soak.P99)]
        samples += [Sample(soak.OWN, x, 0.9, number), Sample(soak.TOKENS, x, 100, number)]
        samples += [Sample(soak.MOVED, x, 1e8, number), Sample(soak.SPEED, x, 1e10, number)]
        samples.append(Sample(soak.COPIED, x, 2e10, number))
    samples.append(Sample(f"{soak.ACTS}: answer", 0, 77))
    return soak.EXPERIMENT.conclude(chosen(soak.EXPERIMENT.parameters, {}, short=True), samples)


def test_what_stays_is_not_slower_and_not_larger() -> None:
    result = said()
    assert result.verdict.key == "not slower, not larger and not more scattered with time"
    assert "at 0.5 (95 %: 0.5 to 0.5) of the speed of a plain copy" in result.verdict.sentence
    assert result.tables[1].rows == (("answer", "77"), ("tokens written", "2,400"))


@pytest.mark.parametrize(
    ("grown", "key"),
    [
        ({"slower": 0.2}, "slower, not larger and not more scattered with time"),
        ({"larger": 0.1}, "not slower, larger and not more scattered with time"),
        ({"holes": 0.4}, "not slower, not larger and more scattered with time"),
        ({"slower": -0.2, "larger": -0.1}, "not slower, not larger and not more scattered with time"),
    ],
)
def test_what_grows_is_said(grown: dict[str, float], key: str) -> None:
    assert said(**grown).verdict.key == key  # type: ignore[arg-type]


def test_what_the_interval_does_not_exclude_cannot_be_told() -> None:
    result = said(unsteady=0.3)
    assert result.verdict.key == "cannot be told whether slower, not larger and not more scattered with time"
    assert "Cannot be told from this run: growth of a token's time (5 %)." in result.verdict.sentence
    assert "a longer run" in result.verdict.sentence
    assert result.remarks[-1].startswith("Not certain: growth of a token's time, ")
    assert "Cannot be told" not in said(slower=0.2).verdict.sentence


def test_the_probes_of_a_look_are_one_point() -> None:
    """They have the same disturbance: three of them make the interval of the slope no narrower than one does."""
    looks = [Sample(soak.PROBE, x, 1.0 + 0.3 * (-1) ** x, x) for x in range(1, 13)]
    one = soak._growth("", looks, 12, relative=True)
    assert soak._growth("", [s for s in looks for _ in range(soak.N_PROBES)], 12, relative=True) == one


def test_what_is_made_at_the_beginning_is_no_growth() -> None:
    samples = [Sample(soak.MEMORY, x, 1e8 if x <= soak.WARM * 10 else 2e8) for x in range(1, 11)]
    growth = soak._growth("", [s for s in samples if s.x > soak.WARM * 10], 10, relative=True)
    assert growth.value == pytest.approx(0)


def test_a_memory_without_cells_has_no_holes() -> None:
    result = said(cells=False)
    assert "hole ratio" not in result.verdict.sentence
    assert not result.plots[3].series


def test_a_slope_has_an_interval() -> None:
    straight = slope_figure("s", [0, 1, 2, 3], [1, 3, 5, 7])
    assert [straight.value, straight.low, straight.high] == pytest.approx([2, 2, 2])
    noisy = slope_figure("s", range(8), [0, 1, 0, 1, 0, 1, 0, 1])
    assert noisy.low is not None
    assert noisy.high is not None
    assert noisy.low < 0 < noisy.high


def test_mixed_use_answers_forks_swaps_and_leaves_nothing(talking_file: Path) -> None:
    with closing(
        MixedUse(talking_file, ContextSettings(n_ctx=512, n_seq_max=4, n_threads=1, n_threads_batch=1), Random(5))
    ) as use:
        for _ in range(20):
            use.act()
        gaps, n_kv = use.take_gaps()
        assert len(gaps) == len(n_kv) > 20
        assert use.take_gaps() == ([], [])
        assert {"answer", "fork"} <= set(use.counts)
        assert sum(use.counts.values()) == 20
        assert use.probe_ms(1, 4) > 0
        assert use.take_gaps() == ([], [])  # what is measured is no use
        assert use.cell_bytes > 100
        assert use.snapshot().maps
