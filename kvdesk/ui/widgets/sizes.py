"""How large the window and its text can be made."""

from __future__ import annotations

from typing import Final

ZOOMS: Final = (50, 67, 80, 90, 100, 110, 125, 150, 175, 200)
"""Of the whole window, in percent."""
DIALOG_MARGIN_PX: Final = 24
"""Between the edge of every dialog and what is in it."""
BOX_PX: Final = 22
"""From the left edge of a check box to its text, as the style sheet has it."""
LEAST_FONT_PX: Final = 8
MOST_FONT_PX: Final = 40
