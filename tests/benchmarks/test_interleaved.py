"""What is judged of equal requests: a slow one is found, and the machine's own drift is not taken for one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from kvdesk.benchmarks.interleaved import last_over_first, spread

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
