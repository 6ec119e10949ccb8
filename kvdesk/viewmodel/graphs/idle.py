"""Time in which nothing happened, folded away on time axes: an hour without a question is a narrow gap. No Qt."""

from typing import Final, overload

import numpy as np

from kvdesk.values import dataclass, field
from kvdesk.viewmodel.graphs.series import FloatArray

IDLE_S: Final = 15.0
"""A pause that is longer is folded."""
GAP_S: Final = 3.0
"""So wide is a folded pause on the axis."""
MOST_SPANS: Final = 500


def _nothing() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Fold:
    """Seconds since the first reading (`real`), and where they are on the axis (`shown`); both rise. Without points
    each second is where it is.

    gaps  the first and the last second on the axis of each pause that is folded
    """

    real: FloatArray = field(default_factory=_nothing)
    shown: FloatArray = field(default_factory=_nothing)
    gaps: tuple[tuple[float, float], ...] = ()

    @overload
    def place(self, real: float) -> float: ...
    @overload
    def place(self, real: FloatArray) -> FloatArray: ...
    def place(self, real: float | FloatArray) -> float | FloatArray:
        """Where on the axis; before the first and after the last point as if time went on."""
        return _between(real, self.real, self.shown)

    @overload
    def time(self, shown: float) -> float: ...
    @overload
    def time(self, shown: FloatArray) -> FloatArray: ...
    def time(self, shown: float | FloatArray) -> float | FloatArray:
        """The seconds at a place of the axis."""
        return _between(shown, self.shown, self.real)


class ActiveTime:
    """The spans in which something happened; the oldest of very many are joined."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def clear(self) -> None:
        self._spans.clear()

    def note(self, begin_s: float, end_s: float) -> None:
        """Something happened from one time to another, after what was noted before."""
        if self._spans and begin_s - self._spans[-1][1] <= IDLE_S:
            first, last = self._spans[-1]
            self._spans[-1] = min(first, begin_s), max(last, end_s)
        else:
            self._spans.append((begin_s, end_s))
        if len(self._spans) > MOST_SPANS:
            (first, _), (_, last) = self._spans[:2]
            self._spans[:2] = [(first, last)]

    def fold(self, start_s: float) -> Fold:
        """`start_s`: second 0 of the axis."""
        real, shown, gaps = [0.0], [0.0], []
        for begin, end in self._spans:
            begin, end = max(begin - start_s, real[-1]), max(end - start_s, real[-1])
            pause = begin - real[-1]
            if pause > IDLE_S:
                gaps.append((shown[-1], shown[-1] + GAP_S))
                pause = GAP_S
            for at, width in ((begin, pause), (end, end - begin)):
                if at > real[-1]:
                    real.append(at)
                    shown.append(shown[-1] + width)
        return Fold(np.array(real), np.array(shown), tuple(gaps)) if gaps else Fold()


def _between(value: float | FloatArray, xs: FloatArray, ys: FloatArray) -> float | FloatArray:
    if not xs.size:
        return value
    at = np.asarray(value, np.float64)
    found = np.interp(at, xs, ys) + np.minimum(at - xs[0], 0.0) + np.maximum(at - xs[-1], 0.0)
    return float(found) if found.ndim == 0 else found
