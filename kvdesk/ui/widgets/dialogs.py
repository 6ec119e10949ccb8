"""The one way in which a dialog is opened."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog

DialogT = TypeVar("DialogT", bound=QDialog)


def open_dialog(dialog: DialogT) -> DialogT:
    """Show a dialog that is not modal, in front; it is gone when it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return bring_to_front(dialog)


def bring_to_front(dialog: DialogT) -> DialogT:
    """Show it, or bring it back into sight."""
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog
