"""Keys of the window. Enter, Shift+Enter and F2 belong to the widgets that have the focus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

Shortcut = tuple[str, str, Callable[[], object]]
"""Name of the action, its keys, and what is called."""


def add_shortcuts(window: QWidget, shortcuts: Iterable[Shortcut]) -> None:
    """Give the window these actions."""
    for text, keys, slot in shortcuts:
        action = QAction(text, window)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked, slot=slot: slot())  # a slot's own argument must not be `checked`
        window.addAction(action)
