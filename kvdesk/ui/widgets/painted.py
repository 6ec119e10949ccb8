"""Waiting for a widget to be on the screen: what takes long is done after that."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget


def when_painted(widget: QWidget, do: Callable[[], None]) -> None:
    """Call `do` once, from the event loop, after `widget` was painted for the first time."""
    _FirstPaint(widget, do)


class _FirstPaint(QObject):
    def __init__(self, widget: QWidget, do: Callable[[], None]) -> None:
        super().__init__(widget)
        self._do = do
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self, self._do)  # the painting is still going on
        return False
