"""Do something at once, then at most once per interval: what changes fast is shown at a speed one can read."""

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject

from kvdesk.ui.widgets.pace import Pace
from kvdesk.ui.widgets.timers import once

_SLOWEST: Final = 4  # intervals: text that changes so seldom is still read as live
_SLACK_MS: Final = 70  # a little longer than from one batch of events to the next


class Throttle(QObject):
    """Calls `action` for a request; requests within the interval become one call after it.

    That call is made by the next request if there is one soon, so that what one batch of events changes is painted
    together: every painting goes through the window from its top, and takes its time from the threads that decode.

    `share`: of one core that the calls may take while it is `busy`; the interval grows where they would take more
    (`Pace`). When nothing decodes, nobody has to wait.
    """

    def __init__(
        self,
        parent: QObject,
        interval_ms: int,
        action: Callable[[], None],
        *,
        share: float = 1.0,
        busy: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(parent)
        self._action, self._busy = action, busy
        self._acted_s = float("-inf")
        self._interval_s = interval_ms / 1e3
        self._slack_s = min(interval_ms // 2, _SLACK_MS) / 1e3
        self._pace = Pace(share, interval_ms, _SLOWEST * interval_ms)
        self._waits_until_s = float("inf")  # when the timer ends
        self._timer = once(self, 0, self.now)

    def request(self) -> None:
        now = time.monotonic()
        due_s = self._acted_s + (self._pace.rest_ms / 1e3 if self._busy() else self._interval_s)
        if now >= due_s:
            self.now()
        elif due_s + self._slack_s < self._waits_until_s:
            self._waits_until_s = due_s + self._slack_s
            self._timer.start(round((self._waits_until_s - now) * 1e3))

    def now(self) -> None:
        """Do it at once, and nothing later unless it is requested."""
        self._timer.stop()
        self._waits_until_s = float("inf")
        begun = self._acted_s = time.monotonic()  # before the action: it may make requests
        self._action()
        self._pace.spent((time.monotonic() - begun) * 1e3)
