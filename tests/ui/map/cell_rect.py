"""Where a cell of the map is drawn, for tests that click it or look for it."""

from PySide6.QtCore import QRect, QRectF

from kvdesk.ui.map.scrolled_map import ScrolledMap


def cell_rect(cells: ScrolledMap, strip: int, cell: int) -> QRect:
    """In pixels of the map; outside of it when it is out of sight."""
    box = cells.strips[strip]
    corner, size = cells._viewport.to_widget(*box.corner(cell)), box.cell * cells.zoom
    return QRectF(corner.x(), corner.y(), size, size).toRect()
