"""The times of the map's own frames, and how often it may refresh. No Qt."""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from kvdesk.ui.widgets.pace import Pace

SHARE: Final = 0.04
FASTEST_MS: Final = 45  # the engine sends a view every 62: each is shown at once, painted together with its text
SLOWEST_MS: Final = 500
_KEPT: Final = 120
_COUNTED_S: Final = 2.0


class FrameClock:
    """Times of the last frames, in milliseconds.

    The rule of refreshing is that of `Pace`: a refresh (new codes and their drawing) takes at most 4 % of one core from
    the threads that decode; there are never more than 22 a second, and always 2. At 2.6 ms and less that is the 15 a
    second at which the engine sends views. Panning and zooming do not wait: a person does them.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._frames: deque[float] = deque(maxlen=_KEPT)
        self._refreshes: deque[float] = deque(maxlen=256)
        self._pace = Pace(SHARE, FASTEST_MS, SLOWEST_MS)
        self._pending = 0.0
        self.n_painted = 0

    @property
    def interval_ms(self) -> int:
        """Rest before the next refresh."""
        return self._pace.rest_ms

    @property
    def last_ms(self) -> float:
        return self._frames[-1] if self._frames else 0.0

    @property
    def p99_ms(self) -> float:
        """Nearest rank over the last 120 frames."""
        ordered = sorted(self._frames)
        return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else 0.0

    @property
    def refreshes_per_s(self) -> float:
        """Over the last two seconds."""
        since = self._now() - _COUNTED_S
        return sum(at > since for at in self._refreshes) / _COUNTED_S

    def refreshed(self, ms: float) -> None:
        """New codes were made; their drawing comes next."""
        self._refreshes.append(self._now())
        self._pending += ms

    def painted(self, ms: float) -> None:
        """A frame was drawn: its time is that of its codes, if they are new, and of its drawing."""
        frame = self._pending + ms
        self._frames.append(frame)
        self.n_painted += 1
        if self._pending:
            self._pace.spent(frame)
            self._pending = 0.0

    def words(self, n_cells: int) -> str:
        """Two lines for the developer overlay."""
        return (
            f"frame {self.last_ms:.1f} ms  P99 {self.p99_ms:.1f} ms\n"
            f"{self.refreshes_per_s:.1f} refreshes/s  {n_cells:,} cells drawn"
        )
