"""Turns of the mouse wheel."""

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QWidget

NOTCH = 120


def turned(
    widget: QWidget,
    up: int = NOTCH,
    left: int = 0,
    *,
    at: QPointF | None = None,
    keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> QWheelEvent:
    """A turn over the middle of a widget, or over a point in it."""
    where = QPointF(widget.rect().center()) if at is None else at
    buttons, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    return QWheelEvent(where, widget.mapToGlobal(where), QPoint(), QPoint(left, up), buttons, keys, phase, False)
