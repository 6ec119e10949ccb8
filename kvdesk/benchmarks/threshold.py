"""A figure that is judged, as every `kvdesk bench` gives it."""

from __future__ import annotations

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
