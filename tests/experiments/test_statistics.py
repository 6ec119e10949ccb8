"""Runs that belong together: who is as fast passes on a noisy machine, and a slow request is told from its drift."""

import math
import random
from collections.abc import Callable

import pytest

from kvdesk.experiments.statistics import error, last_over_first, ratio, ratio_at_least, spread


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
