"""How large the window and its text can be made."""

from typing import Final

from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QWidget

ZOOMS: Final = (50, 67, 80, 90, 100, 110, 125, 150, 175, 200)
"""Of the whole window, in percent."""
DIALOG_MARGIN_PX: Final = 24
"""Between the edge of every dialog and what is in it."""
BOX_PX: Final = 22
"""From the left edge of a check box to its text, as the style sheet has it."""
FRAME: Final = QMargins(4, 32, 4, 4)
"""The frame of a window manager in px, assumed as long as it is not known."""
LEAST_FONT_PX: Final = 8
MOST_FONT_PX: Final = 40


def fit_to_screen(window: QWidget) -> None:
    """A window that would be higher or wider than its screen is made to fit, with its frame."""
    room = window.screen().availableGeometry().marginsRemoved(FRAME).size()
    window.resize(window.size().boundedTo(room))
