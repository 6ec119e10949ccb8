"""Figures that are judged by a bar, as every `kvdesk bench` gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure and what it must reach, give or take the noise it was measured with."""

    value: float
    bar: float
    at_least: bool
    noise: float = 0.0

    @property
    def passed(self) -> bool:
        if self.at_least:
            return self.value + self.noise >= self.bar
        return self.value - self.noise <= self.bar

    def figure(self, value: object) -> dict[str, Any]:
        """As results have it. `value`: the figure with the digits it is worth."""
        return {
            "value": value,
            "bar": self.bar,
            "noise": round(self.noise, 4),
            "at_least": self.at_least,
            "passed": self.passed,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures that are judged, and the raw numbers behind them; each name tells its unit."""

    bars: dict[str, Threshold]
    raw: dict[str, object]

    @property
    def passed(self) -> bool:
        """Whether every bar was reached."""
        return all(bar.passed for bar in self.bars.values())

    def figures(self, rounded: Callable[[float], object]) -> dict[str, dict[str, Any]]:
        """As results have them. rounded: gives a figure the digits it is worth."""
        return {name: bar.figure(rounded(bar.value)) for name, bar in self.bars.items()}
