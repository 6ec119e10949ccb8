"""Medians, ratios and exponents with their 95 % confidence intervals, by bootstrap where there are values enough.

Also speeds over others' of runs that belong together: how well such a ratio is known, and whether it reaches its bar.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.protocol.experiment import Figure, number_text
from kvdesk.translation import tr

N_RESAMPLES = 2000
SEED = 0  # of the resampling: the same samples give the same interval
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Of two values, of three, and so on: how many standard errors of their mean make its 95 % confidence interval. Of more
than these, the last is a little too many.
"""
_FEW = 4
"""Up to this number of values, Student's t gives the interval."""
_LEAST = 1e-12
"""In the place of 0 below a ratio."""
_MOST_EXPONENT = 100.0
"""Of the edge of an interval: more says nothing more."""
_Z = 1.96
"""Standard errors on both sides of a share that make its 95 % confidence interval."""
MOST_NOISE = 0.02
"""A ratio may miss its bar by two of its standard errors, never by more than this: who is exactly as fast as the bar
would fail every other time.
"""
SURE = 0.01
"""The standard error of a ratio of speeds that is small enough to judge it."""
MOST_ROUNDS = 2
"""Factor on the requested rounds on a machine that is too noisy to be sure."""


def most_rounds(rounds: int) -> int:
    """Rounds that are run at most. A single one is not repeated: it is one of many that are compared elsewhere."""
    return MOST_ROUNDS * rounds if rounds > 1 else 1


def median(values: Sequence[float]) -> float:
    return float(np.median(np.asarray(values, float)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median of at least two values; of a single value, that value twice.

    A bootstrap of n values can give no more than the lowest to the highest, which has the median in 1 - 2**(1 - n) of
    all cases: 50 % of two, 75 % of three. Of fewer than five it is Student's t, of their logarithms where all are above
    0, as seconds and ratios are.
    """
    data = np.asarray(values, float)
    if 1 < len(data) <= _FEW:
        _, low, high = geometric_mean(values) if np.all(data > 0) else _mean(data)
        return min(low, median(values)), max(high, median(values))
    picks = np.random.default_rng(SEED).integers(0, len(data), (N_RESAMPLES, len(data)))
    low, high = np.percentile(np.median(data[picks], axis=1), (2.5, 97.5))
    return float(low), float(high)


def geometric_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Of values above 0, with its 95 % confidence interval: Student's t of their logarithms. That of ratios is 1 over
    that of their inverses. Of a single value the interval is not known: 0 to infinity.
    """
    if len(values) == 1:
        return values[0], 0.0, math.inf
    mean, low, high = (math.exp(value) for value in _mean(np.log(np.asarray(values, float))))
    return mean, low, high


def _mean(data: NDArray[np.float64]) -> tuple[float, float, float]:
    """That of at least two values, with its 95 % confidence interval."""
    mean, error = float(data.mean()), _t(len(data) - 1) * float(np.std(data, ddof=1)) / len(data) ** 0.5
    return mean, mean - error, mean + error


def _t(freedom: int) -> float:
    """Standard errors on both sides of a mean that make its interval, by its degrees of freedom."""
    return STUDENT_T[min(freedom - 1, len(STUDENT_T) - 1)]


def _about(value: float, error: float, *, positive: bool) -> tuple[float, float]:
    """The interval of this half-width about a value; of what is always above 0, in its logarithm."""
    if not positive:
        return value - error, value + error
    factor = math.exp(min(error / value, _MOST_EXPONENT))
    return value / factor, value * factor


def figure(name: str, values: Sequence[float], unit: str = "") -> Figure:
    """The median of `values`, one a round. Ratios are made within a round, before they come here. A single value has no
    interval: how far another would be from it is not known.
    """
    low, high = interval(values) if len(values) > 1 else (None, None)
    return Figure(name, median(values), low, high, unit)


def uncertain(figures: Iterable[Figure]) -> tuple[str, ...]:
    """For `Result.remarks`: a sentence for each bar inside the interval of its figure, and for each of a figure that
    has none, since it was measured only once.
    """
    within = tr("Not certain: {name}, {figure}, was judged by {limit}, which is within its interval.")
    once = tr("Not certain: {name}, {figure}, was measured once and judged by {limit}.")
    return tuple(
        (once if figure.low is None else within).format(name=figure.name, figure=figure, limit=number_text(bar.limit))
        for figure in figures
        for bar in (figure.bars if figure.low is None else figure.uncertain)
    )


def mean_figure(name: str, values: Sequence[float], weights: Sequence[float], unit: str = "") -> Figure:
    """The mean of `values`, each a mean of `weights` things, and its interval: by resampling them, and for few values
    by Student's t as in `interval`. A single value has none.
    """
    data, weight = np.asarray(values, float), np.asarray(weights, float)
    mean, n = float(np.average(data, weights=weight)), len(data)
    if n == 1:
        return Figure(name, mean, unit=unit)
    if n <= _FEW:
        error = float((((data - mean) * weight) ** 2).sum() * n / (n - 1)) ** 0.5 / float(weight.sum())
        low, high = _about(mean, _t(n - 1) * error, positive=bool(np.all(data > 0)))
        return Figure(name, mean, low, high, unit)
    picks = np.random.default_rng(SEED).integers(0, n, (N_RESAMPLES, n))
    means = (data[picks] * weight[picks]).sum(axis=1) / weight[picks].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Figure(name, mean, float(low), float(high), unit)


def ratio_figure(name: str, over: Sequence[float], under: Sequence[float]) -> Figure:
    """The sum of `over` over that of `under`, which belong together and are at least 0, with the interval of a mean."""
    weights = [max(value, _LEAST) for value in under]
    return mean_figure(name, [a / b for a, b in zip(over, weights, strict=True)], weights)


def exponential(name: str, logs: Figure) -> Figure:
    """e to the power of a figure, as a perplexity is of a mean surprise in nats."""
    low, high = (None if edge is None else math.exp(min(edge, _MOST_EXPONENT)) for edge in (logs.low, logs.high))
    return Figure(name, math.exp(logs.value), low, high)


def share_figure(name: str, good: Sequence[bool]) -> Figure:
    """The share that is good, and Wilson's interval of it: a sample of which all are good does not say that all are."""
    n, share = len(good), sum(good) / len(good)
    middle, edge = share + _Z**2 / (2 * n), _Z * (share * (1 - share) / n + (_Z / (2 * n)) ** 2) ** 0.5
    low, high = ((middle + side) / (1 + _Z**2 / n) for side in (-edge, edge))
    return Figure(name, share, max(0.0, low), min(1.0, high))


def line_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line with the least squares."""
    return float(_slopes(np.asarray(x, float), np.asarray(y, float)))


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """p of y = c * x**p, fitted to the logarithms. All values above 0."""
    return float(_slopes(np.log(np.asarray(x, float)), np.log(np.asarray(y, float))))


def percentiles(values: Sequence[float]) -> tuple[float, ...]:
    """P50, P95 and P99, interpolated."""
    return tuple(np.percentile(np.asarray(values, float), (50, 95, 99)).tolist())


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 if all get the same, 1/n if one gets everything."""
    data = np.asarray(shares, float)
    return float(data.sum() ** 2 / (len(data) * (data**2).sum()))


def slope_figure(name: str, x: Sequence[float], y: Sequence[float]) -> Figure:
    """The slope of the straight line through the points, and its interval: by resampling them, and for few points by
    Student's t of what they are apart from the line. Two points have none.
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) <= _FEW:
        slope, away = line_slope(x, y), xs - xs.mean()
        if len(xs) < 3:
            return Figure(name, slope)
        apart = ys - ys.mean() - slope * away
        error = float((apart**2).sum() / (len(xs) - 2) / (away**2).sum()) ** 0.5
        return Figure(name, slope, *_about(slope, _t(len(xs) - 2) * error, positive=False))
    picks = np.random.default_rng(SEED).integers(0, len(xs), (N_RESAMPLES, len(xs)))
    picks = picks[np.ptp(xs[picks], axis=1) > 0]
    low, high = np.percentile(_slopes(xs[picks], ys[picks]), (2.5, 97.5))
    return Figure(name, line_slope(x, y), float(low), float(high))


def _slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the straight line through the points of each row."""
    away = x - x.mean(axis=-1, keepdims=True)
    return np.asarray((away * y).sum(axis=-1) / (away * away).sum(axis=-1))


# --- runs that belong together ----------------------------------------------------------------------------------------


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Of runs that belong together."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def ratio_at_least(name: str, bar: float, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Our speed over theirs, which is to be this much, give or take what MOST_NOISE allows."""
    values = ratios(ours, theirs)
    low, high = interval(values)
    found = Figure(name, median(values), low, high)
    return found.at_least(bar, noise=min(2 * _error(len(values), low, high), MOST_NOISE))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of `ratios`."""
    return median(ratios(ours, theirs))


def error(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Standard error of `ratio`."""
    return standard_error(ratios(ours, theirs))


def standard_error(values: Sequence[float]) -> float:
    """That of their median, a quarter of its 95 % confidence interval: a few that something disturbed widen it little,
    as they move the median little. Infinite if there is only one.
    """
    return _error(len(values), *interval(values))


def _error(n_values: int, low: float, high: float) -> float:
    return (high - low) / 4 if n_values > 1 else math.inf


def against(seconds: list[float], empty: list[float]) -> list[float]:
    """Each request over the mean of the yardstick (the bare loop) before and after it."""
    return [taken / statistics.fmean(pair) for taken, pair in zip(seconds, itertools.pairwise(empty), strict=True)]


def last_over_first(rounds: Sequence[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """How many times as long the last request takes as the first, in the median round, and how much of that is the
    machine's own variation: the slowest quarter of the yardstick's runs over the fastest.

    rounds: each as `in_turns` gives it. Requests are taken over the yardstick before and after them, and so are its own
    runs, so that a slow drift is in neither figure.
    """
    over = [against(seconds, empty) for seconds, empty in rounds]
    own = [run for _, empty in rounds for run in _own(empty)]
    return median([values[-1] / values[0] for values in over]), spread(own, 4)


def slowest_over_fastest(rounds: Sequence[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """Of the requests, each by its median over the rounds, and of the yardstick's runs between them in the same way.

    rounds: each as `in_turns` gives it. Both are taken over their neighbours, as in `last_over_first`.
    """
    ours = [median(same) for same in zip(*(against(*taken) for taken in rounds), strict=True)]
    own = [median(same) for same in zip(*(_own(empty) for _, empty in rounds), strict=True)]
    return max(ours) / min(ours), max(own) / min(own)


def spread(values: Sequence[float], n_parts: int) -> float:
    """The slowest of `n_parts` equal parts over the fastest, each by its median."""
    ordered, n = sorted(values), max(1, len(values) // n_parts)
    return median(ordered[-n:]) / median(ordered[:n])


def _own(empty: list[float]) -> list[float]:
    """Each run of the yardstick over the mean of the one before and the one after it; not the first and the last."""
    return [
        run / statistics.fmean((before, after)) for before, run, after in zip(empty, empty[1:], empty[2:], strict=False)
    ]
