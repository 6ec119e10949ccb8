"""Do something at once, then at most once per interval: what changes fast is shown at a speed one can read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Slot

from kvdesk.ui.pace import Pace

_SLOWEST: Final = 4  # intervals: text that changes so seldom is still read as live


class Throttle(QObject):
    """Calls `action` for a request; requests within the interval become one call at its end.

    `share`: of one core that the calls may take; the interval grows where they would take more (`Pace`).
    """

    def __init__(self, parent: QObject, interval_ms: int, action: Callable[[], None], *, share: float = 1.0) -> None:
        super().__init__(parent)
        self._action = action
        self._asked = False
        self._pace = Pace(share, interval_ms, _SLOWEST * interval_ms)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_timer)

    def request(self) -> None:
        if self._timer.isActive():
            self._asked = True
            return
        self._act()

    def now(self) -> None:
        """Do it at once: this is how it stays."""
        self._asked = False
        self._act()

    @Slot()
    def _on_timer(self) -> None:
        if self._asked:
            self._asked = False
            self._act()

    def _act(self) -> None:
        self._timer.start(self._pace.rest_ms)  # also for requests that the action makes
        begun = time.perf_counter()
        self._action()
        self._pace.spent((time.perf_counter() - begun) * 1e3)
