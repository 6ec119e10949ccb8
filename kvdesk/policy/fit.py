"""A line through measured times that outliers do not move: ms as a sum of coefficients that are never negative.

Owns least squares and nothing of what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_ROUNDS = 8
_RIDGE = 1e-3  # shares out what the samples cannot tell apart
_OUTLIER = 2.0  # times the median error


def robust_fit(rows: Sequence[Sequence[float]], ms: Sequence[float]) -> Vector:
    """Coefficients c >= 0 so that rows @ c is close to `ms`, relative errors counting alike.

    Iteratively reweighted: a sample whose relative error is beyond twice the median error loses weight (Huber).
    Columns that would come out negative are left out. Raises ValueError without samples.
    """
    x, y = np.asarray(rows, dtype=np.float64), np.asarray(ms, dtype=np.float64)
    if not len(y):
        raise ValueError("no samples")
    a = x / y[:, None]
    scale = np.maximum(np.abs(a).max(axis=0), 1e-12)
    a /= scale
    weights = np.ones(len(y))
    c: Vector = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        c = _not_negative(a * weights[:, None], weights)
        error = np.abs(a @ c - 1.0)
        limit = _OUTLIER * max(float(np.median(error)), 1e-6)
        weights = np.sqrt(np.minimum(1.0, limit / np.maximum(error, 1e-12)))
    result: Vector = c / scale
    return result


def _not_negative(a: Vector, b: Vector) -> Vector:
    """Least squares with the columns dropped, one by one, that would get a negative coefficient."""
    columns = list(range(a.shape[1]))
    c: Vector = np.zeros(a.shape[1])
    while columns:
        part = a[:, columns]
        ridge = _RIDGE * np.sqrt(len(b)) * np.eye(len(columns)) / np.sqrt(len(columns))
        solution = np.linalg.lstsq(np.vstack([part, ridge]), np.concatenate([b, np.zeros(len(columns))]), rcond=None)[0]
        if (solution >= 0).all():
            c[columns] = solution
            return c
        del columns[int(solution.argmin())]
    return c
