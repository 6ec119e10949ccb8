"""The keys of the cell map: tables of their actions, and the moves of the cursor."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt

from kvdesk.ui.map.layout import Strip
from kvdesk.ui.map.selection import stepped
from kvdesk.ui.map.viewport import Viewport

ARROWS: Final = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
"""Columns and rows."""
MOVES: Final = frozenset((*ARROWS, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown))
ACTIONS: Final = {
    Qt.Key.Key_Plus: "zoom_in",
    Qt.Key.Key_Equal: "zoom_in",
    Qt.Key.Key_Minus: "zoom_out",
    Qt.Key.Key_0: "reset_zoom",
    Qt.Key.Key_Delete: "clear_selection",
}
"""Methods of `CellMapView`."""


def moved(key: Qt.Key, strips: Sequence[Strip], viewport: Viewport, at: tuple[int, int]) -> tuple[int, int]:
    """Strip and cell to which one of `MOVES` moves the cursor from `at`."""
    strip = strips[at[0]]
    if key == Qt.Key.Key_Home:
        return at[0], 0
    if key == Qt.Key.Key_End:
        return at[0], strip.n_cells - 1
    if key in ARROWS:
        return stepped(strips, at, *ARROWS[key])
    seen = viewport.visible(strip)
    rows = max(1, (seen.rows - seen.row) * 3 // 4)
    return stepped(strips, at, 0, rows if key == Qt.Key.Key_PageDown else -rows)
