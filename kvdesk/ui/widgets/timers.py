"""Timers that belong to a widget or a controller, and end with it."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, SignalInstance


def once(parent: QObject, ms: int, do: Callable[[], object] | SignalInstance) -> QTimer:
    """Calls `do` so long after it was started last."""
    timer = QTimer(parent, singleShot=True, interval=ms)
    timer.timeout.connect(do)
    return timer


def every(parent: QObject, ms: int, do: Callable[[], object] | SignalInstance) -> QTimer:
    """Calls `do` at this interval from its start on."""
    timer = QTimer(parent, interval=ms)
    timer.timeout.connect(do)
    return timer
