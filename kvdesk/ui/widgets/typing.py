"""Typing where there is no field: what is typed is for the message field, wherever in the window one is."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget


def is_typing(event: QKeyEvent) -> bool:
    """Whether a key writes something. Not a blank, which presses buttons and scrolls."""
    text, modifiers = event.text(), event.modifiers()
    control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
    alt = bool(modifiers & Qt.KeyboardModifier.AltModifier)
    is_command = control != alt or bool(modifiers & Qt.KeyboardModifier.MetaModifier)  # both together: AltGr
    return not is_command and bool(text) and text.isprintable() and not text.isspace()


def passes_typing_on(view: QWidget) -> None:
    """A list that would go to the row with the typed letter leaves typing to the window around it."""
    view.installEventFilter(_Passing(view))


class _Passing(QObject):
    """Belongs to the view."""

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and is_typing(event):
            event.ignore()  # so that it goes to the widget around
            return True
        return False
