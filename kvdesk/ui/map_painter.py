"""Draws a frame of the cell map: image, grid, shared cells, head, n_kv boundary, token texts, cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPolygonF

from kvdesk.ui import raster
from kvdesk.ui.map_frame import MapFrame, StripFrame, Viewport
from kvdesk.ui.map_layout import Strip
from kvdesk.ui.palette import contrast
from kvdesk.ui.theme import Look

_SPLIT_FROM_PX: Final = 3  # smaller cells are dotted, not split
_GRID_FROM_PX: Final = 4
_TEXT_FROM_PX: Final = 44.0  # cells drawn larger than this show their token's text
_TEXT_LENGTH: Final = 8
_INKS: Final = ("#000000", "#ffffff")


class MapPainter:
    """Knows how a map looks, not where it comes from."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def paint(
        self,
        painter: QPainter,
        frame: MapFrame,
        viewport: Viewport,
        texts: Mapping[int, str],
        at: tuple[int, int] | None,
    ) -> None:
        """`at` is the strip and the cell with the cursor."""
        painter.translate(viewport.offset)
        painter.scale(viewport.zoom, viewport.zoom)
        for part in frame.strips:
            strip = part.strip
            pixels = strip.cell * viewport.zoom * viewport.ratio
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, pixels < 1)
            painter.drawImage(QRectF(strip.x, strip.y, strip.width, strip.height), part.image)
            if strip.label:
                painter.setPen(QColor(self._look.colours.secondary))
                painter.setFont(self._look.small)
                painter.drawText(QPointF(strip.x, strip.y - 5), strip.label)
            self._draw_shared(painter, part, frame.colours, split=pixels >= _SPLIT_FROM_PX)
            if pixels >= _GRID_FROM_PX:
                self._draw_grid(painter, strip, viewport)
            self._draw_boundary(painter, strip, frame.n_kv)
            self._draw_frame(painter, strip, part.stream.head, 1.5 / viewport.zoom)
            if strip.cell * viewport.zoom >= _TEXT_FROM_PX:
                self._draw_texts(painter, part, viewport, texts)
        if at is not None and at[0] < len(frame.strips):
            self._draw_frame(painter, frame.strips[at[0]].strip, at[1], 2 / viewport.zoom)

    def _draw_shared(self, painter: QPainter, part: StripFrame, colours: Mapping[int, int], split: bool) -> None:
        """The lower part of a shared cell has the colour of the second conversation that holds it."""
        unknown = QColor(self._look.colours.secondary)
        strip, cell = part.strip, part.strip.cell
        top = 0.55 if split else 0.0
        for first, length, seq in part.shared:
            colour = self._look.conversation_colour(colours[seq]) if seq in colours else unknown
            brush = QBrush(colour, Qt.BrushStyle.SolidPattern if split else Qt.BrushStyle.Dense5Pattern)
            for column, row, width, height in raster.row_boxes(first, length, strip.columns):
                for line in range(height) if split else range(1):
                    y, tall = (row + line + top) * cell, cell * (1 - top) if split else cell * height
                    painter.fillRect(QRectF(strip.x + column * cell, strip.y + y, width * cell, tall), brush)

    def _draw_grid(self, painter: QPainter, strip: Strip, viewport: Viewport) -> None:
        painter.setPen(QPen(QColor(self._look.colours.panel), 0))
        cell = strip.cell
        columns, rows = viewport.visible(strip)
        x0, x1 = strip.x + columns.start * cell, strip.x + columns.stop * cell
        y0, y1 = strip.y + rows.start * cell, strip.y + rows.stop * cell
        points: list[QPointF] = []
        for column in range(columns.start, columns.stop + 1):
            points += (QPointF(strip.x + column * cell, y0), QPointF(strip.x + column * cell, y1))
        for row in range(rows.start, rows.stop + 1):
            points += (QPointF(x0, strip.y + row * cell), QPointF(x1, strip.y + row * cell))
        painter.drawLines(points)

    def _draw_boundary(self, painter: QPainter, strip: Strip, n_kv: int) -> None:
        """The end of what attention walks over, as a stepped line."""
        if not 0 < n_kv < strip.n_cells:
            return
        pen = QPen(QColor(self._look.colours.text), 0)
        pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        x, y = strip.corner(n_kv)
        step = [QPointF(x, y), QPointF(strip.x + strip.width, y)]
        if n_kv % strip.columns:
            step = [QPointF(strip.x, y + strip.cell), QPointF(x, y + strip.cell), *step]
        painter.drawPolyline(QPolygonF(step))

    def _draw_frame(self, painter: QPainter, strip: Strip, cell: int, thickness: float) -> None:
        """A frame around one cell: the head, or the cursor."""
        if not 0 <= cell < strip.n_cells:
            return
        x, y = strip.corner(cell)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._look.colours.text), thickness))
        grow = thickness / 3
        box = QRectF(x, y, strip.cell, strip.cell).adjusted(-grow, -grow, grow, grow)
        half = thickness / 2  # at the edge of a strip all of the line is inside, for outside it may be cut off
        whole = QRectF(strip.x, strip.y, strip.width, strip.height).adjusted(half, half, -half, -half)
        painter.drawRect(box.intersected(whole))

    def _draw_texts(self, painter: QPainter, part: StripFrame, viewport: Viewport, texts: Mapping[int, str]) -> None:
        """Token texts where they can be read. In widget coordinates, so that type stays sharp."""
        painter.save()
        painter.resetTransform()
        painter.setFont(self._look.mono_small)
        strip, stream = part.strip, part.stream
        size = strip.cell * viewport.zoom
        columns, rows = viewport.visible(strip)
        for row in rows:
            for column in columns:
                cell = row * strip.columns + column
                if cell >= stream.high_water or not stream.seq_bits[cell].any():
                    continue
                corner = QPointF(*strip.corner(cell)) * viewport.zoom + viewport.offset
                box = QRectF(corner.x(), corner.y(), size, size).adjusted(3, 3, -3, -3)
                ground = part.image.pixelColor(column, row).name()
                painter.setPen(QColor(max(_INKS, key=lambda ink: contrast(ink, ground))))
                text = texts.get(int(stream.token[cell]), "").strip() or "·"
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text[:_TEXT_LENGTH])
        painter.restore()
