"""The samples of a run by series and x: values round by round, their figures, ratios within a round, and curves."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from kvdesk.experiments.statistics import figure, median
from kvdesk.protocol.experiment import Figure, Point, Sample, Series
from kvdesk.translation import tr

Place = tuple[str, float]
"""A series and an x."""


class Measured:
    """Rounds are in their order, values of one round in the order they came. What was not measured raises KeyError."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self._by: dict[Place, dict[int, list[float]]] = {}
        for sample in samples:
            rounds = self._by.setdefault((sample.series, sample.x), {})
            rounds.setdefault(sample.round, []).append(sample.y)

    def __contains__(self, place: object) -> bool:
        return place in self._by

    @cached_property
    def series(self) -> frozenset[str]:
        return frozenset(series for series, _ in self._by)

    def xs(self, series: str) -> list[float]:
        """In their order."""
        return sorted(x for name, x in self._by if name == series)

    def rounds(self, series: str, x: float = 0) -> list[list[float]]:
        """The values of each round."""
        found = self._by[series, x]
        return [found[number] for number in sorted(found)]

    def all(self, series: str, x: float = 0) -> list[float]:
        return [y for ys in self.rounds(series, x) for y in ys]

    def one(self, series: str, x: float = 0) -> float:
        """The first value."""
        return self.rounds(series, x)[0][0]

    def median(self, series: str, x: float = 0) -> float:
        return median(self.all(series, x))

    def by_round(self, series: str, xs: Iterable[float] | None = None) -> list[list[float]]:
        """Of each round the values at these x, or at all of them."""
        columns = [self._by[series, x] for x in (self.xs(series) if xs is None else xs)]
        numbers = sorted({number for column in columns for number in column})
        return [[y for column in columns for y in column.get(number, ())] for number in numbers]

    def figure(self, name: str, series: str, x: float = 0, unit: str = "", *, scale: float = 1.0) -> Figure:
        """The median of the rounds."""
        return figure(name, [scale * y for y in self.all(series, x)], unit)

    def ratio(self, name: str, over: Place, under: Place) -> Figure:
        """Of the sums of each round."""
        pairs = zip(self.rounds(*over), self.rounds(*under), strict=True)
        return figure(name, [sum(a) / sum(b) for a, b in pairs])

    def curve(self, series: str, xs: Iterable[float], scale: float = 1.0, name: str = "") -> Series:
        """Medians with their intervals."""
        return curve(name or tr(series), [(x, self.figure("", series, x, scale=scale)) for x in xs])


def curve(name: str, figures: Iterable[tuple[float, Figure]]) -> Series:
    """Figures, each with its x."""
    return Series(name, tuple(Point(x, f.value, f.low, f.high) for x, f in figures))
