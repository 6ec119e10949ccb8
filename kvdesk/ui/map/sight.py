"""The cells of a frame that are in sight: which they are, and their looks. Geometry and numpy, no widgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtCore import QRectF

from kvdesk.ui.map import raster
from kvdesk.ui.map.frame import MapFrame, StripFrame
from kvdesk.ui.map.pixels import Part
from kvdesk.ui.map.viewport import Viewport


@dataclass(frozen=True, slots=True, eq=False)
class SeenStrip:
    """Rows and columns of a strip that are in sight, and the looks of these rows in their whole width."""

    strip: StripFrame
    part: Part
    layer: raster.Layer = field(repr=False)

    def rows(self, first: int, end: int) -> raster.Layer:
        """The looks of some of the rows in sight."""
        columns = self.strip.strip.columns
        cells = slice((first - self.part.row) * columns, (end - self.part.row) * columns)
        lower = self.layer.lower
        return raster.Layer(self.layer.upper[cells], None if lower is None else lower[cells])


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """A frame through a viewport."""

    frame: MapFrame
    viewport: Viewport
    strips: tuple[SeenStrip, ...]

    def changed(self, before: Sight) -> list[QRectF] | None:
        """Where it looks different from one before, in pixels of the widget; None: all of it may."""
        if (
            self.viewport != before.viewport
            or self.frame.layout is not before.frame.layout
            or self.frame.scene.mode is not before.frame.scene.mode
        ):
            return None
        return [box for one, other in zip(before.strips, self.strips, strict=True) for box in self._between(one, other)]

    def _between(self, before: SeenStrip, after: SeenStrip) -> Iterator[QRectF]:
        """The rows in which the cells of a strip differ, and those of its head."""
        columns = after.strip.strip.columns
        cells = np.flatnonzero(raster.differ(before.layer, after.layer))
        if cells.size:
            yield self._box(
                after, after.part.row + int(cells[0]) // columns, after.part.row + int(cells[-1]) // columns
            )
        heads = {part.strip.stream.head for part in (before, after)}
        if len(heads) > 1:
            yield from (self._box(after, head // columns - 1, head // columns + 1) for head in heads)

    def _box(self, seen: SeenStrip, first: int, last: int) -> QRectF:
        strip = seen.strip.strip
        left, top = self.viewport.corner(strip.x, strip.y + first * strip.cell)
        right, bottom = self.viewport.corner(strip.x + strip.width, strip.y + (last + 1) * strip.cell)
        return QRectF(left, top, right - left, bottom - top)


def look_at(frame: MapFrame, viewport: Viewport) -> Sight:
    """The looks of all cells in sight."""
    strips = []
    for strip in frame.strips:
        part = viewport.visible(strip.strip)
        strips.append(SeenStrip(strip, part, strip.rows(part.row, part.rows)))
    return Sight(frame, viewport, tuple(strips))
