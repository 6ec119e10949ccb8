"""Speeds over others': who is as fast passes on a noisy machine, who is slower fails."""

from __future__ import annotations

import math
import random

import pytest

from kvdesk.benchmarks.ratios import error, ratio, ratio_at_least


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
        return ratio_at_least(1.0, [share * 170.0 * rng.gauss(1.0, 0.03) for _ in theirs], theirs).passed

    assert sum(passes(1.0) for _ in range(200)) > 180
    assert sum(passes(0.96) for _ in range(200)) < 20
    assert not ratio_at_least(1.0, [97.0, 97.0], [100.0, 100.0]).passed
