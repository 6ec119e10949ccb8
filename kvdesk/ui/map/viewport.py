"""The visible part of the map and its scale. Geometry in logical pixels, no widgets."""

from __future__ import annotations

from math import ceil, floor, inf
from typing import Final

from PySide6.QtCore import QPointF, QRectF

from kvdesk.ui.map.layout import Strip
from kvdesk.ui.map.pixels import Part
from kvdesk.values import dataclass, field, replace

LARGEST_CELL_PX: Final = 96


@dataclass(frozen=True, slots=True)
class Viewport:
    """widget = map * zoom + offset. `ratio`: device pixels to a logical one; `map_height`: of the whole map at zoom 1.

    Zoom goes in steps at which a cell is a whole number of device pixels, so that nothing is blurred. A map that is
    higher than the widget scrolls at zoom 1 too.
    """

    width: float
    height: float
    ratio: float = 1.0
    zoom: float = 1.0
    offset: QPointF = field(default_factory=QPointF)
    map_height: float = 0.0

    @property
    def hidden_height(self) -> float:
        """Pixels of the map above and below what is seen."""
        return max(0.0, max(self.map_height, self.height) * self.zoom - self.height)

    def to_map(self, point: QPointF) -> QPointF:
        return (point - self.offset) / self.zoom

    def to_widget(self, x: float, y: float) -> QPointF:
        """Where a point of the map is drawn, on a whole device pixel."""
        return QPointF(*self.corner(x, y))

    def corner(self, x: float, y: float) -> tuple[float, float]:
        """`to_widget` in plain numbers."""
        across, down = x * self.zoom + self.offset.x(), y * self.zoom + self.offset.y()
        return round(across * self.ratio) / self.ratio, round(down * self.ratio) / self.ratio

    def pixels(self, strip: Strip) -> float:
        """Device pixels of one cell: whole, or less than 1."""
        size = strip.cell * self.zoom * self.ratio
        return round(size) if size > 0.99 else size

    def zoomed(self, point: QPointF, factor: float, cell: float) -> Viewport:
        """Larger or smaller by about `factor`, a pixel at least, the point staying where it is. `cell`: at zoom 1."""
        least, most = cell * self.ratio, max(cell, LARGEST_CELL_PX) * self.ratio
        now = round(least * self.zoom, 6)
        wanted = now * factor
        if wanted < 1:
            wanted = 1.0 if factor > 1 else least
        else:
            wanted = float(round(wanted))
            if factor > 1 and wanted <= now:
                wanted = floor(now) + 1.0
            elif factor < 1 and wanted >= now:
                wanted = ceil(now) - 1.0
        zoom = min(max(wanted, least), most) / least
        return _inside(self, zoom, point - (point - self.offset) * (zoom / self.zoom))

    def moved(self, by: QPointF) -> Viewport:
        return _inside(self, self.zoom, self.offset + by)

    def showing(self, box: QRectF, left: float = 0.0) -> Viewport:
        """Moved no more than needed to show a box of the map right of `left`."""
        corner, size = QPointF(box.x(), box.y()) * self.zoom + self.offset, box.size() * self.zoom
        dx = max(left - corner.x(), 0.0) or min(self.width - corner.x() - size.width(), 0.0)
        dy = max(-corner.y(), 0.0) or min(self.height - corner.y() - size.height(), 0.0)
        return self.moved(QPointF(dx, dy)) if dx or dy else self

    def resized(self, width: float, height: float, ratio: float, map_height: float = 0.0) -> Viewport:
        """The same zoom and place in a widget or of a map of another size."""
        return _inside(
            replace(self, width=width, height=height, ratio=ratio, map_height=map_height), self.zoom, self.offset
        )

    def visible(self, strip: Strip, above: float = 0.0, below: float = inf) -> Part:
        """Rows and columns of a strip that can be seen, between these heights of the widget; empty if none can."""
        left, right = ((x - self.offset.x()) / self.zoom - strip.x for x in (0.0, self.width))
        top, bottom = ((y - self.offset.y()) / self.zoom - strip.y for y in (above, min(below, self.height)))
        first, last = max(0, int(left / strip.cell)), min(strip.columns, int(right / strip.cell) + 1)
        row, end = max(0, int(top / strip.cell)), min(strip.rows, int(max(bottom, 0.0) / strip.cell) + 1)
        return Part(row, max(end, row), first, max(last, first))


def _inside(viewport: Viewport, zoom: float, offset: QPointF) -> Viewport:
    """At this zoom, moved so that no space appears beside the map."""
    zoomed = replace(viewport, zoom=zoom)
    x, y = viewport.width * (1 - zoom), -zoomed.hidden_height
    return replace(zoomed, offset=QPointF(min(0.0, max(offset.x(), x)), min(0.0, max(offset.y(), y))))
