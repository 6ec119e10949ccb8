"""A figure that is judged, as every `kvdesk bench` gives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure and what it must reach."""

    value: float
    bar: float
    at_least: bool

    @property
    def passed(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar
