"""Percentiles of the gaps between tokens, by nearest rank: of the last ones and of a whole session."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

ROLLING: Final = 128
"""Gaps in the rolling window."""
_RATIO: Final = math.log(1.001)
_LEAST_MS, _MOST_MS = 1e-3, 1e7
_N_BINS: Final = math.ceil(math.log(_MOST_MS / _LEAST_MS) / _RATIO) + 1


class Percentiles(NamedTuple):
    """In milliseconds."""

    p50: float
    p95: float
    p99: float


class Gaps:
    """Gaps between tokens in ms. Bounded: the session is counted in bins 0.1 % wide (184 kB), whatever its length."""

    def __init__(self) -> None:
        self._rolling: deque[float] = deque(maxlen=ROLLING)
        self._counts = np.zeros(_N_BINS, np.int64)
        self.n = 0

    def add(self, ms: float) -> None:
        self._rolling.append(ms)
        within = min(max(ms, _LEAST_MS), _MOST_MS)
        self._counts[round(math.log(within / _LEAST_MS) / _RATIO)] += 1
        self.n += 1

    def rolling(self) -> Percentiles | None:
        """Of the last `ROLLING` gaps, exactly. None while there is none."""
        return of_values(self._rolling) if self._rolling else None

    def session(self) -> Percentiles | None:
        """Of all gaps, within 0.05 %. None while there is none."""
        if not self.n:
            return None
        ranks = [rank(self.n, p) for p in (50, 95, 99)]
        bins = np.searchsorted(np.cumsum(self._counts), ranks, side="left")
        return Percentiles(*(float(_LEAST_MS * math.exp(b * _RATIO)) for b in bins))


def of_values(values: Sequence[float] | deque[float]) -> Percentiles:
    """P50, P95 and P99 of some values, at least one."""
    ordered = sorted(values)
    return Percentiles(*(ordered[rank(len(ordered), p) - 1] for p in (50, 95, 99)))


def rank(n: int, percent: int) -> int:
    """Nearest rank, from 1: the smallest with at least `percent` of `n` values at or below it."""
    return max(1, -(-n * percent // 100))
