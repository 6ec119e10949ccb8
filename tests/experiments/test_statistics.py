"""Runs that belong together: who is as fast passes on a noisy machine, and a slow request is told from its drift."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kvdesk.experiments.statistics import (
    error,
    exponential,
    figure,
    last_over_first,
    mean_figure,
    ratio,
    ratio_at_least,
    ratio_figure,
    share_figure,
    slope_figure,
    spread,
    uncertain,
)
from kvdesk.protocol.experiment import Figure, number_text


def test_a_ratio_is_the_median_of_runs_that_belong_together() -> None:
    theirs = [100.0, 200.0, 50.0, 100.0, 80.0]
    ours = [0.95 * speed for speed in theirs]
    assert ratio(ours, theirs) == pytest.approx(0.95)
    assert error(ours, theirs) == pytest.approx(0.0)
    ours[1] *= 0.7  # a hiccup of the machine
    assert ratio(ours, theirs) == pytest.approx(0.95)
    assert error(ours, theirs) > 0
    assert error([95.0], [100.0]) == math.inf


def test_who_is_as_fast_passes_and_who_is_slower_fails() -> None:
    """On 21 pairs of a machine whose neighbouring runs differ by 3 %."""
    rng = random.Random(1)

    def passes(share: float) -> bool:
        theirs = [170.0 * rng.gauss(1.0, 0.03) for _ in range(21)]
        return ratio_at_least("r", 1.0, [share * 170.0 * rng.gauss(1.0, 0.03) for _ in theirs], theirs).holds

    assert sum(passes(1.0) for _ in range(200)) > 180
    assert sum(passes(0.96) for _ in range(200)) < 20
    assert not ratio_at_least("r", 1.0, [97.0, 97.0], [100.0, 100.0]).holds


Round = tuple[list[float], list[float]]
MACHINES = range(60)


def machine(seed: int) -> Callable[[float], float]:
    """Seconds of a run that takes so many at the usual speed, which drifts; each run has a little luck of its own."""
    draw, speed = random.Random(seed), 1.0

    def run(seconds: float) -> float:
        nonlocal speed
        speed *= math.exp(draw.gauss(0, 0.02))
        hiccup = 1.3 if draw.random() < 0.02 else 1.0
        return seconds * speed * draw.lognormvariate(0, 0.02) * hiccup

    return run


def rounds(run: Callable[[float], float], requests: list[float]) -> list[Round]:
    """Three rounds of these requests in turns with a bare loop that is a little quicker."""
    taken: list[Round] = []
    for _ in range(3):
        empty, seconds = [run(0.97)], []
        for request in requests:
            seconds.append(run(request))
            empty.append(run(0.97))
        taken.append((seconds, empty))
    return taken


def judged(seed: int, requests: list[float]) -> float:
    """As `bench cache --only seeds` judges it, against 1.05."""
    ratio, own = last_over_first(rounds(machine(seed), requests))
    return ratio / own


def test_a_drifting_machine_makes_no_request_slow() -> None:
    assert sum(judged(seed, [1.0] * 6) > 1.05 for seed in MACHINES) == 0


@pytest.mark.parametrize("sixth", [1.6, 9.0])
def test_a_slow_sixth_request_is_found(sixth: float) -> None:
    assert sum(judged(seed, [1.0] * 5 + [sixth]) > 1.05 for seed in MACHINES) >= 0.95 * len(MACHINES)


def test_on_a_steady_machine_a_tenth_is_found() -> None:
    assert last_over_first(rounds(float, [1.0] * 5 + [1.1])) == pytest.approx((1.1, 1.0))


def test_spread_is_that_of_the_outer_parts() -> None:
    assert spread([1.0, 1.0, 1.0, 1.2, 1.3, 1.4, 2.0, 2.0, 2.0, 9.0], 5) == pytest.approx(5.5)
    assert spread([2.0, 3.0], 10) == 1.5


# --- figures of few values --------------------------------------------------------------------------------------------


def held(figures: Sequence[Figure], truth: float) -> float:
    """The share of the figures whose interval has the truth in it."""
    within = [f.low is not None and f.high is not None and f.low <= truth <= f.high for f in figures]
    return sum(within) / len(within)


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_the_interval_of_a_mean_of_few_values_has_it_as_often_as_it_says(n: int) -> None:
    """A bootstrap alone has the mean in half of the cases of two values."""
    draws = np.exp(np.random.default_rng(3).normal(0, 0.3, (300, n)))
    means = [mean_figure("m", values, [1.0] * n) for values in draws.tolist()]
    assert held(means, math.exp(0.3**2 / 2)) >= 0.85
    over = [
        ratio_figure("r", (values * side).tolist(), side.tolist())
        for values, side in zip(draws, draws[::-1], strict=True)
    ]
    assert held(over, math.exp(0.3**2 / 2)) >= 0.85
    assert all(f.low is not None and f.low > 0 for f in (*means, *over))


@pytest.mark.parametrize("n", [3, 4, 20])
def test_the_interval_of_a_slope_has_it_as_often_as_it_says(n: int) -> None:
    random, x = np.random.default_rng(4), np.linspace(0, 1, n)
    slopes = [slope_figure("s", x.tolist(), (1 + random.normal(0, 0.1, n)).tolist()) for _ in range(200)]
    assert held(slopes, 0.0) >= 0.88


def test_the_perplexity_of_two_very_different_blocks_has_an_interval() -> None:
    """Student's t of two values reaches far, and e to that power farther than any number."""
    perplexity = exponential("p", mean_figure("", [0.1, 9.0], [16.0, 15.0]))
    assert perplexity.value == pytest.approx(math.exp((16 * 0.1 + 15 * 9.0) / 31))
    assert perplexity.low is not None
    assert perplexity.high is not None
    assert perplexity.low < perplexity.value < perplexity.high < math.inf
    assert exponential("p", mean_figure("", [2.0], [1.0])) == Figure("p", math.exp(2.0))


def test_what_was_measured_once_has_no_interval_and_is_not_certain() -> None:
    once = figure("once", [12.0]), mean_figure("once", [12.0], [3.0]), slope_figure("once", [0.0, 1.0], [0.0, 12.0])
    for found in once:
        assert (found.value, found.low, found.high) == (12.0, None, None)
        assert str(found) == "12"
        assert uncertain([found.at_least(10.0)]) == ("Not certain: once, 12, was measured once and judged by 10.",)
        assert uncertain([found]) == ()


def test_all_of_a_few_do_not_say_that_all_are() -> None:
    assert share_figure("s", [True] * 48 + [False] * 2).value == 0.96
    (said,) = uncertain([share_figure("same", [True] * 12).at_least(0.96)])
    assert said.startswith("Not certain: same, 1 (95 %: 0.757 to 1), was judged by 0.96")
    assert uncertain([share_figure("same", [True] * 200).at_least(0.96)]) == ()
    assert uncertain([share_figure("same", [True] * 9 + [False]).at_least(1.0)]) == (), "one that differs is enough"
    assert (
        held([share_figure("s", (np.random.default_rng(i).random(25) < 0.8).tolist()) for i in range(200)], 0.8) > 0.9
    )


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (999.7, 3, "1,000"),
        (99.6, 2, "100"),
        (0.0, 3, "0"),
        (-0.0, 3, "0"),
        (12345.6, 4, "12,346"),
        (0.01234, 3, "0.0123"),
        (2.5e43, 3, "2.5e+43"),
        (math.nan, 3, "nan"),
    ],
)
def test_a_number_has_its_digits_and_no_exponent(value: float, digits: int, said: str) -> None:
    assert number_text(value, digits) == said
