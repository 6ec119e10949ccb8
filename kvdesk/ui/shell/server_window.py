"""Opens the dialog of serving other programs; it is made when it is first opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from kvdesk.ui.shell.window_parts import WindowParts

if TYPE_CHECKING:
    from kvdesk.ui.server.dialog import ServerDialog


class ServerWindow(QObject):
    """The controller connects the dialog when the window says that it was made."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self.dialog: ServerDialog | None = None

    @Slot()
    def open(self) -> None:
        """Show the dialog, which is not modal."""
        if self.dialog is None:
            from kvdesk.ui.server.dialog import ServerDialog

            self.dialog = ServerDialog(self._parts.theme, self._parts.window)
            self._parts.window.server_dialog_made.emit(self.dialog)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
