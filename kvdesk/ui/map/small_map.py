"""A cell map one only looks at: of a plan, or of the past. One place that knows how to make one of the real map."""

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent

from kvdesk.cache.snapshot import CacheMap
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.history import view_of


class SmallMap(CellMapView):
    """Takes no keys and selects nothing; the wheel scrolls it."""

    def __init__(self, theme: Theme, name: str, room: int) -> None:
        super().__init__(theme, wide=True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.set_room(room)
        self._take(room)  # until there is something to show

    def show_maps(
        self, maps: tuple[CacheMap, ...], operation: int, colours: Mapping[int, int], titles: Mapping[int, str]
    ) -> None:
        """Draw these maps, after operation number `operation`."""
        self.show_view(view_of(maps, operation), colours, titles)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        event.ignore()
