"""Medians, ratios and exponents with their 95 % confidence intervals, by bootstrap where there are values enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.protocol.experiment import Figure
from kvdesk.translation import tr

N_RESAMPLES = 2000
SEED = 0  # of the resampling: the same samples give the same interval
STUDENT_T = {2: 12.706, 3: 4.303, 4: 3.182}
"""By the number of values: how many standard errors of their mean make its 95 % confidence interval."""


def median(values: Sequence[float]) -> float:
    return float(np.median(np.asarray(values, float)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median; of a single value, that value twice.

    A bootstrap of n values can give no more than the lowest to the highest, which has the median in 1 - 2**(1 - n) of
    all cases: 50 % of two, 75 % of three. Of fewer than five it is Student's t, of their logarithms where all are above
    0, as seconds and ratios are.
    """
    data = np.asarray(values, float)
    if len(data) in STUDENT_T:
        scaled = np.log(data) if (above := bool(np.all(data > 0))) else data
        error = STUDENT_T[len(data)] * float(np.std(scaled, ddof=1)) / len(data) ** 0.5
        low, high = (float(scaled.mean()) + side for side in (-error, error))
        low, high = (float(np.exp(low)), float(np.exp(high))) if above else (low, high)
        return min(low, median(values)), max(high, median(values))
    picks = np.random.default_rng(SEED).integers(0, len(data), (N_RESAMPLES, len(data)))
    low, high = np.percentile(np.median(data[picks], axis=1), (2.5, 97.5))
    return float(low), float(high)


def figure(name: str, values: Sequence[float], unit: str = "") -> Figure:
    """The median of `values`, one a round. Ratios are made within a round, before they come here."""
    low, high = interval(values)
    return Figure(name, median(values), low, high, unit)


def uncertain(*judged: tuple[Figure, float]) -> tuple[str, ...]:
    """For `Result.remarks`: a sentence for each figure whose interval has the value in it by which it was judged, so
    that another run may say the opposite.
    """
    said = tr("Not certain: {name}, {figure}, was judged by {limit:.3g}, which is within its interval.")
    return tuple(
        said.format(name=figure.name, figure=figure, limit=limit)
        for figure, limit in judged
        if figure.low is not None and figure.high is not None and figure.low < limit < figure.high
    )


def mean_figure(name: str, values: Sequence[float], weights: Sequence[float], unit: str = "") -> Figure:
    """The mean of `values`, each a mean of `weights` things, and its interval by resampling them."""
    data, weight = np.asarray(values, float), np.asarray(weights, float)
    picks = np.random.default_rng(SEED).integers(0, len(data), (N_RESAMPLES, len(data)))
    means = (data[picks] * weight[picks]).sum(axis=1) / weight[picks].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Figure(name, float(np.average(data, weights=weight)), float(low), float(high), unit)


def line_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line with the least squares."""
    return float(np.polyfit(np.asarray(x, float), np.asarray(y, float), 1)[0])


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """p of y = c * x**p, fitted to the logarithms. All values above 0."""
    logs: tuple[NDArray[np.float64], NDArray[np.float64]] = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    return float(np.polyfit(*logs, 1)[0])


def percentiles(values: Sequence[float], which: Sequence[float] = (50, 95, 99)) -> tuple[float, ...]:
    """Those of `values`, interpolated."""
    return tuple(float(value) for value in np.percentile(np.asarray(values, float), which))


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 where all get the same, 1/n where one gets everything."""
    data = np.asarray(shares, float)
    return float(data.sum() ** 2 / (len(data) * (data**2).sum()))


def slope_figure(name: str, x: Sequence[float], y: Sequence[float], unit: str = "") -> Figure:
    """The slope of the straight line through the points, and its interval by resampling them."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    picks = np.random.default_rng(SEED).integers(0, len(xs), (N_RESAMPLES, len(xs)))
    slopes = [np.polyfit(xs[pick], ys[pick], 1)[0] for pick in picks if np.ptp(xs[pick]) > 0]
    low, high = np.percentile(slopes, (2.5, 97.5))
    return Figure(name, line_slope(x, y), float(low), float(high), unit)
