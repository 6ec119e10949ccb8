"""A figure that is judged, as every `kvdesk bench` gives it."""

from __future__ import annotations

from dataclasses import dataclass


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
