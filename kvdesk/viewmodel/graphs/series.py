"""Measured values over time, as the graphs draw them: bounded arrays, one writer. numpy only."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LIMIT: Final = 20_000
"""Points of a series at most (320 kB): more are thinned, the older the more."""


class Series:
    """Points (t, value) with rising t. A NaN is a gap: nothing was measured there, so no line is drawn there.

    When `limit` points are there every second one of the older half is dropped: a whole session stays in sight, every
    point is one that was measured, and what is new is complete.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._data = np.zeros((2, min(256, limit)))
        self._n = 0
        self._last: float | None = None
        self._lifted = False
        self.held_s = -math.inf  # until then the last value is known to hold; -inf: it is a value of its moment only

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
        """The last value that was measured."""
        return self._last

    def append(self, at_s: float, value: float) -> None:
        """Add a point; a time before the last one is moved to it, since axes cannot run backwards."""
        if self._lifted:
            self._lifted = False
            self._put(at_s, math.nan)
        self._put(at_s, value)
        self._last = value

    def hold(self, at_s: float, value: float) -> None:
        """The value is known to be so at `at_s`, and to have been as it was until then: a step."""
        if value != self._last:
            if self._last is not None:
                self.append(at_s, self._last)
            self.append(at_s, value)
        self.held_s = max(at_s, self.held_s)

    def clear(self) -> None:
        """No points, as if new; whoever draws the series goes on drawing it."""
        self._n, self._last, self._lifted, self.held_s = 0, None, False, -math.inf

    def lift(self) -> None:
        """The next point belongs to something else: no line leads to it."""
        self._lifted = self._n > 0

    def at(self, at_s: float) -> float | None:
        """The last value at or before a time, None before the first."""
        i = int(np.searchsorted(self.times, at_s, side="right")) - 1
        while i >= 0 and math.isnan(self._data[1, i]):
            i -= 1
        return float(self._data[1, i]) if i >= 0 else None

    def _put(self, at_s: float, value: float) -> None:
        if self._n >= self._limit:
            half = self._limit // 2
            kept = np.concatenate((self._data[:, :half:2], self._data[:, half : self._n]), axis=1)
            self._n = kept.shape[1]
            self._data[:, : self._n] = kept
        if self._n == self._data.shape[1]:
            self._data = np.concatenate((self._data, np.zeros_like(self._data)), axis=1)
        if self._n and at_s < self._data[0, self._n - 1]:
            at_s = float(self._data[0, self._n - 1])
        self._data[:, self._n] = at_s, value
        self._n += 1


def visible(series: Series, begin: float, end: float, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """The points to draw between two times: of many only the lowest and highest in each of `n_bins`, gaps kept.

    One point more on either side, so that lines lead out of the picture.
    """
    times, values = series.times, series.values
    if series.last is not None and series.held_s > times[-1]:
        times, values = np.append(times, series.held_s), np.append(values, series.last)
    first = max(int(np.searchsorted(times, begin, side="left")) - 1, 0)
    last = int(np.searchsorted(times, end, side="right")) + 1
    times, values = times[first:last], values[first:last]
    if times.size <= 4 * n_bins:
        return times, values
    starts = np.unique(np.linspace(0, times.size, n_bins, endpoint=False).astype(np.int64))
    with np.errstate(invalid="ignore"):  # a bin may be a gap as a whole
        low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    gap = np.where(np.logical_or.reduceat(np.isnan(values), starts), np.nan, low)
    return np.repeat(times[starts], 3), np.stack((gap, low, high), axis=1).ravel()


def round_up(value: float) -> float:
    """The next even number an axis can end at: 2, 4, 6, 8, 10 or 12 times a power of ten."""
    power = 1.0
    while power * 12 < value:
        power *= 10
    return next(step * power for step in (2, 4, 6, 8, 10, 12) if step * power >= value)


class Rate:
    """Tokens per second, averaged over spans of `span_s` so that a curve shows speed and not jitter."""

    def __init__(self, span_s: float = 0.25, least: int = 1) -> None:
        """A reading of fewer than `least` tokens is none."""
        self.series = Series()
        self._span_s, self._least = span_s, least
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
            self._flush(at_s, done=False)

    def finish(self) -> None:
        """End the reading, however short: the next call begins another."""
        self._flush(self._last)
        self.series.lift()

    def clear(self) -> None:
        """Nothing was measured yet."""
        self.series.clear()
        self._tokens, self._ms = 0, 0.0

    def _flush(self, at_s: float, *, done: bool = True) -> None:
        """`done`: what was counted belongs together and is all there is of it."""
        if self._tokens < self._least and not done:
            return
        if self._ms > 0 and self._tokens >= self._least:
            self.series.append(at_s, self._tokens / self._ms * 1000)
        self._tokens, self._ms = 0, 0.0
