"""Measured values over time, as the graphs draw them: bounded arrays, one writer. numpy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Series:
    """Points (t, value) with rising t; the oldest half is dropped when `limit` points are there."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._data = np.zeros((2, 256))
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def times(self) -> FloatArray:
        return self._data[0, : self._n]

    @property
    def values(self) -> FloatArray:
        return self._data[1, : self._n]

    @property
    def last(self) -> float | None:
        return float(self._data[1, self._n - 1]) if self._n else None

    def append(self, at_s: float, value: float) -> None:
        """Add a point; a time before the last one is moved to it, since axes cannot run backwards."""
        if self._n >= self._limit:
            keep = self._limit // 2
            self._data[:, :keep] = self._data[:, self._n - keep : self._n].copy()
            self._n = keep
        if self._n == self._data.shape[1]:
            self._data = np.concatenate((self._data, np.zeros_like(self._data)), axis=1)
        if self._n and at_s < self._data[0, self._n - 1]:
            at_s = float(self._data[0, self._n - 1])
        self._data[:, self._n] = at_s, value
        self._n += 1

    def at(self, at_s: float) -> float | None:
        """The last value at or before a time, None before the first."""
        i = int(np.searchsorted(self.times, at_s, side="right")) - 1
        return float(self._data[1, i]) if i >= 0 else None

    def clear(self) -> None:
        self._n = 0


def with_gaps(times: FloatArray, values: FloatArray, gap_s: float) -> tuple[FloatArray, FloatArray]:
    """A NaN between points further apart than `gap_s`: nothing was measured there, so no line is drawn there."""
    if times.size < 2:
        return times, values
    breaks = np.flatnonzero(np.diff(times) > gap_s) + 1
    if breaks.size == 0:
        return times, values
    return np.insert(times, breaks, times[breaks]), np.insert(values, breaks, np.nan)


def round_up(value: float) -> float:
    """The next even number an axis can end at: 2, 4, 6, 8, 10 or 12 times a power of ten."""
    power = 1.0
    while power * 12 < value:
        power *= 10
    return next(step * power for step in (2, 4, 6, 8, 10, 12) if step * power >= value)


class Rate:
    """Tokens per second, averaged over spans of `span_s` so that a curve shows speed and not jitter."""

    def __init__(self, span_s: float = 0.25) -> None:
        self.series = Series()
        self._span_s = span_s
        self._tokens, self._ms, self._since, self._last = 0, 0.0, 0.0, 0.0

    def add(self, at_s: float, n_tokens: int, ms: float) -> None:
        """Count one measured call that ended at `at_s`."""
        if self._tokens and at_s - self._since > 4 * self._span_s:
            self._flush(self._since + self._ms / 1000)
        if not self._tokens:
            self._since = at_s
        self._tokens += n_tokens
        self._ms += ms
        self._last = at_s
        if self._ms >= self._span_s * 1000 or not len(self.series):
            self._flush(at_s)

    def finish(self) -> None:
        """What was counted so far is one reading, however short: the next call belongs to something else."""
        self._flush(self._last)

    def _flush(self, at_s: float) -> None:
        if self._ms > 0:
            self.series.append(at_s, self._tokens / self._ms * 1000)
        self._tokens, self._ms = 0, 0.0
