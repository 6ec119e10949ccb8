"""The result of a benchmark, as every `kvdesk bench` returns it: judged figures, and the numbers behind them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kvdesk.protocol.experiment import Figure


class Outcome(NamedTuple):
    """figures: each has a bar, and a name with its unit; raw: the underlying numbers."""

    figures: Sequence[Figure]
    raw: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every bar was reached."""
        return all(figure.holds for figure in self.figures)

    def as_json(self, rounded: Callable[[float], object] = lambda value: round(value, 4)) -> dict[str, Any]:
        """Whether it passed, the judged figures by name, and the raw numbers. rounded: the digits a figure is worth."""
        figures = {
            figure.name: {
                "value": rounded(figure.value),
                "bar": bar.limit,
                "noise": round(bar.noise, 4),
                "at_least": bar.at_least,
                "passed": figure.holds,
            }
            for figure in self.figures
            for bar in figure.bars
        }
        return {"passed": self.passed, "figures": figures, **self.raw}
