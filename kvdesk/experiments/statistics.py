"""Medians, ratios and exponents with their 95 % confidence intervals, by bootstrap. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.protocol.experiment import Figure

N_RESAMPLES = 2000
SEED = 0  # of the resampling: the same samples give the same interval


def median(values: Sequence[float]) -> float:
    return float(np.median(np.asarray(values, float)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median; of a single value, that value twice."""
    data = np.asarray(values, float)
    picks = np.random.default_rng(SEED).integers(0, len(data), (N_RESAMPLES, len(data)))
    low, high = np.percentile(np.median(data[picks], axis=1), (2.5, 97.5))
    return float(low), float(high)


def figure(name: str, values: Sequence[float], unit: str = "") -> Figure:
    """The median of `values`, one a round. Ratios are made within a round, before they come here."""
    low, high = interval(values)
    return Figure(name, median(values), low, high, unit)


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
