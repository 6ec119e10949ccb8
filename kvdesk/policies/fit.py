"""A line through measured times that outliers do not move: ms as a sum of coefficients that are never negative.

Owns least squares and nothing of what the numbers mean. Few columns and few rows: plain numbers are quicker here than
arrays, and the first line is drawn as quickly as the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

Line = tuple[float, ...]
"""One coefficient a column."""

_ROUNDS = 8
_RIDGE = 1e-6  # shares out what the samples cannot tell apart
_OUTLIER = 2.0  # times the median error
_NOISE = 0.05  # relative error of one measured time that is trusted


@dataclass(frozen=True, slots=True)
class Guess:
    """A coefficient as it is thought to be before anything was measured, and by how much that may be wrong."""

    value: float
    doubt: float


def robust_fit(rows: Sequence[Sequence[float]], ms: Sequence[float], guesses: Sequence[Guess | None] = ()) -> Line:
    """Coefficients c >= 0 so that rows @ c is close to `ms`, relative errors counting alike.

    Iteratively reweighted: a sample whose relative error is beyond twice the median error loses weight (Huber).
    Columns that would come out negative are left out. `guesses`: one for each column, None where nothing is known; they
    count as much as a measured time each. Raises ValueError without samples.
    """
    if not ms:
        raise ValueError("no samples")
    known = tuple(guesses) or (None,) * len(rows[0])
    a = [[value / taken for value in row] for row, taken in zip(rows, ms, strict=True)]
    scale = [max(1e-12, *(abs(row[j]) for row in a)) for j in range(len(known))]
    a = [[value / s for value, s in zip(row, scale, strict=True)] for row in a]
    # each column's pull towards its guess: (strength, where to)
    pulls = [
        (_RIDGE * len(a) / len(known), 0.0) if g is None else ((_NOISE / (g.doubt * s)) ** 2, g.value * s)
        for g, s in zip(known, scale, strict=True)
    ]
    weights = [1.0] * len(a)
    c = [0.0] * len(known)
    for _ in range(_ROUNDS):
        c = _not_negative(a, weights, pulls)
        errors = [abs(sum(map(mul, row, c)) - 1.0) for row in a]
        limit = _OUTLIER * max(statistics.median(errors), 1e-6)
        weights = [min(1.0, limit / max(error, 1e-12)) for error in errors]
    return tuple(value / s for value, s in zip(c, scale, strict=True))


def at(line: Line, row: Sequence[float]) -> float:
    """The line's value there."""
    value: float = sum(map(mul, line, row))
    return value


# --- private ----------------------------------------------------------------------------------------------------------


def _not_negative(a: list[list[float]], weights: list[float], pulls: list[tuple[float, float]]) -> list[float]:
    """Weighted least squares of a @ c = 1 with the columns dropped, one by one, that would come out negative."""
    width = len(pulls)
    squares = [
        [sum(w * row[i] * row[j] for w, row in zip(weights, a, strict=True)) for j in range(width)]
        for i in range(width)
    ]
    sums = [sum(w * row[i] for w, row in zip(weights, a, strict=True)) for i in range(width)]
    for i, (strength, value) in enumerate(pulls):
        squares[i][i] += strength
        sums[i] += strength * value
    columns = list(range(width))
    c = [0.0] * width
    while columns:
        found = _solve([[squares[i][j] for j in columns] for i in columns], [sums[i] for i in columns])
        worst = min(range(len(columns)), key=found.__getitem__)
        if found[worst] >= 0:
            for column, value in zip(columns, found, strict=True):
                c[column] = value
            return c
        del columns[worst]
    return c


def _solve(m: list[list[float]], b: list[float]) -> list[float]:
    """The solution of m x = b; m is symmetric and positive definite."""
    rows = [[*row, value] for row, value in zip(m, b, strict=True)]
    n = len(rows)
    for i in range(n):
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x
