"""Speeds over others' of runs that belong together: how well such a ratio is known, and whether it reaches its bar."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kvdesk.benchmarks.threshold import Threshold
from kvdesk.experiments.statistics import interval

MOST_NOISE = 0.02
"""A ratio may miss its bar by two of its standard errors, never by more than this: who is exactly as fast as the bar
would fail every other time.
"""
SURE = 0.01
"""The standard error of a ratio of speeds that is small enough to judge it."""
MOST_ROUNDS = 2
"""So many times the rounds that were asked for are run on a machine that is too noisy to be sure."""


def ratio_at_least(bar: float, ours: Sequence[float], theirs: Sequence[float]) -> Threshold:
    """Whether our speed is this share of theirs, give or take what MOST_NOISE allows."""
    return Threshold(ratio(ours, theirs), bar, at_least=True, noise=min(2 * error(ours, theirs), MOST_NOISE))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios of runs that belong together."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def error(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Standard error of `ratio`."""
    return standard_error([a / b for a, b in zip(ours, theirs, strict=True)])


def standard_error(values: list[float]) -> float:
    """That of their median, a quarter of its 95 % confidence interval: a few that something disturbed widen it little,
    as they move the median little. Infinite where there is one.
    """
    low, high = interval(values)
    return (high - low) / 4 if len(values) > 1 else math.inf
