"""The one time axis of all graphs: which seconds are shown, whether it follows, and how its ticks are written. Pure."""

import math

from kvdesk.values import dataclass, field
from kvdesk.viewmodel.graphs.idle import Fold

LEAST_S = 1.0
"""Nothing narrower than this can be shown."""
_LEAST_FOLLOWED_S = 10.0
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(slots=True)
class TimeAxis:
    """Seconds since the first reading, without the pauses that are folded away (`fold`). Following: the newest is at
    the right; else it stays where it was put.

    It follows in even steps of about a twentieth of its width: between two steps only curves are drawn again.

    window_s   width while following, None for everything there is
    latest_s   the newest reading
    """

    window_s: float | None = 120.0
    following: bool = True
    latest_s: float = 0.0
    fold: Fold = field(default_factory=Fold)
    _begin: float = 0.0
    _end: float = 10.0

    @property
    def range(self) -> tuple[float, float]:
        """First and last second shown."""
        if not self.following:
            return self._begin, self._end
        there = max(self.latest_s, _LEAST_FOLLOWED_S)
        width = there if self.window_s is None else min(there, self.window_s)
        step = max((s for s in _STEPS_S if s <= width / 20), default=_STEPS_S[0])
        end = math.ceil(there / step) * step
        return (0.0 if self.window_s is None else max(0.0, end - self.window_s)), end

    def follow(self, window_s: float | None) -> None:
        self.window_s, self.following = window_s, True

    def resume(self) -> None:
        """Follow again, with the window there was."""
        self.following = True

    def set_range(self, begin: float, end: float) -> None:
        """Stop at these seconds, as far as there is anything."""
        latest_s = max(self.latest_s, _LEAST_FOLLOWED_S)
        width = min(max(end - begin, LEAST_S), latest_s * 1.2)
        begin = min(max(begin, -0.1 * width), latest_s - 0.2 * width)
        self._begin, self._end, self.following = begin, begin + width, False

    def zoom(self, factor: float, at_s: float | None = None) -> None:
        """Show `factor` times as many seconds; what is at `at_s` (the middle by default) stays where it is."""
        begin, end = self.range
        at_s = (begin + end) / 2 if at_s is None else at_s
        width = max((end - begin) * factor, LEAST_S)
        share = (at_s - begin) / (end - begin)
        self.set_range(at_s - share * width, at_s + (1 - share) * width)

    def pan(self, share: float) -> None:
        """Move by a share of what is shown, later when positive."""
        begin, end = self.range
        shift = share * (end - begin)
        self.set_range(begin + shift, end + shift)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most `most` places with a word each: seconds up to two minutes, then 2:30, then 1:02:30. The words are the
        time that passed, pauses included.
        """
        begin, end = self.range
        step = next((s for s in _STEPS_S if (end - begin) / s <= max(most, 1)), _STEPS_S[-1])
        last = math.floor((end - 0.06 * (end - begin)) / step)  # a word at the very end would be cut
        first = math.ceil(max(begin, 0.0) / step)
        time, last_s = self.fold.time, self.fold.time(end)
        return [(i * step, clock_text(time(i * step), step, last_s)) for i in range(first, last + 1)]


def clock_text(seconds: float, step: float = 1.0, end: float | None = None) -> str:
    """A time on an axis of which `end` is the last: seconds up to two minutes. `step`: to which accuracy."""
    if (seconds if end is None else end) <= 120:
        return f"{seconds:.1f} s" if step < 1 else f"{seconds:.0f} s"
    digits = f"{seconds % 60:04.1f}" if step < 1 else f"{int(seconds % 60):02d}"
    minutes, hours = int(seconds // 60) % 60, int(seconds // 3600)
    return f"{hours}:{minutes:02d}:{digits}" if hours else f"{minutes}:{digits}"
