"""Do something at once, then at most once per interval: what changes fast is shown at a speed one can read."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot


class Throttle(QObject):
    """Calls `action` for a request; requests within the interval become one call at its end."""

    def __init__(self, parent: QObject, interval_ms: int, action: Callable[[], None]) -> None:
        super().__init__(parent)
        self._action = action
        self._asked = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._on_timer)

    def request(self) -> None:
        if self._timer.isActive():
            self._asked = True
            return
        self._timer.start()
        self._action()

    @Slot()
    def _on_timer(self) -> None:
        if self._asked:
            self._asked = False
            self._timer.start()
            self._action()
