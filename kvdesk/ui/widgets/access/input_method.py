"""Writing with an input method (Chinese, Japanese, Korean, dead keys): what is being composed is not text yet."""

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QWidget

_KEYS: Final = frozenset(
    {
        *(Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape, Qt.Key.Key_Tab, Qt.Key.Key_Backtab),
        *(Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown),
    }
)
"""What an input method chooses and confirms with."""


def composes(field: QWidget) -> None:
    """While something is composed in `field`, these keys neither send nor leave nor choose anything: not every input
    method keeps them to itself. Called after everything else that filters the field's events.
    """
    field.installEventFilter(_Composition(field))


class _Composition(QObject):
    """Belongs to the field."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self._composing = False

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QInputMethodEvent):
            self._composing = bool(event.preeditString())
        elif event.type() == QEvent.Type.FocusOut:
            self._composing = False  # Qt has the input method confirm what is composed
        elif self._composing and isinstance(event, QKeyEvent) and event.key() in _KEYS:
            event.accept()  # of a ShortcutOverride: no shortcut of the window either
            return True
        return False
