"""Keys of the window. Enter, Shift+Enter and F2 belong to the widgets that have the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QKeySequence

if TYPE_CHECKING:
    from kvdesk.ui.shell.main_window import MainWindow


def add_shortcuts(window: MainWindow) -> None:
    """Give the window its actions."""
    for text, keys, slot in (
        ("New chat", "Ctrl+N", window.new_chat_requested.emit),
        ("Search the conversations", "Ctrl+K", window.focus_search),
        ("Show or hide the conversations", "Ctrl+B", window.toggle_sidebar),
        ("Show or hide the cache inspector", "Ctrl+I", window.toggle_inspector),
        ("Show all instruments, or the map and four numbers", "Ctrl+Shift+I", window.toggle_instruments),
        ("Settings", "Ctrl+,", window.open_settings),
        ("Open a model", "Ctrl+O", window.open_model),
        ("Answer again", "Ctrl+R", window.regenerate),
        ("Write a message", "Ctrl+L", window.chat.composer.focus_edit),
        ("Stop", "Esc", window.stop),
        ("Show or hide the drawing times of the cell map", "Ctrl+Shift+D", window.inspector.cell_map.toggle_overlay),
        ("Quit", "Ctrl+Q", window.close),
    ):
        action = QAction(text, window)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked, slot=slot: slot())  # a slot's own argument must not be `checked`
        window.addAction(action)
