"""Draws a frame of the cell map: cells, head, n_kv boundary, token texts, cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPolygonF, QStaticText

from kvdesk.ui.map_frame import MapFrame, StripFrame
from kvdesk.ui.map_layout import LABEL_PX, Strip
from kvdesk.ui.map_pixels import Part, picture
from kvdesk.ui.map_tints import tint_table
from kvdesk.ui.map_viewport import Viewport
from kvdesk.ui.palette import contrast
from kvdesk.ui.raster import FIRST_GROUP
from kvdesk.ui.theme import Look

_TEXT_FROM_PX: Final = 44.0  # cells drawn larger than this show their token's text
_TEXT_LENGTH: Final = 8
_SMALLEST_FRAME_PX: Final = 7.0  # head and cursor are to be seen around the smallest cell
_KEPT_TEXTS: Final = 4096
_INKS: Final = ("#000000", "#ffffff")

Edges = Mapping[int, NDArray[np.uint8]]  # by strip: where the outline of the selection runs


class MapPainter:
    """Knows how a map looks, not where it comes from. Keeps the pictures until frame, viewport or selection change."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._made_of: tuple[object, ...] = ()
        self._images: list[tuple[QPointF, QImage, NDArray[np.uint32]]] = []
        self._texts: dict[str, QStaticText] = {}
        self.n_drawn = 0  # cells that were visible at the last drawing

    def paint(
        self,
        painter: QPainter,
        frame: MapFrame,
        viewport: Viewport,
        texts: Mapping[int, str],
        edges: Edges,
        at: tuple[int, int] | None,
    ) -> None:
        """`at` is the strip and the cell with the cursor."""
        made_of = (frame, viewport, edges, self._look.colours)
        if len(made_of) != len(self._made_of) or any(a is not b for a, b in zip(made_of, self._made_of, strict=True)):
            self._make_images(frame, viewport, edges)
            self._made_of = made_of
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        for corner, image, _ in self._images:
            painter.drawImage(corner, image)
        self._draw_labels(painter, [part.strip for part in frame.strips], viewport)
        for part in frame.strips:
            self._draw_boundary(painter, part, viewport)
            if part.strip.cell * viewport.zoom >= _TEXT_FROM_PX:
                self._draw_texts(painter, part, frame, viewport, texts)
        for part in frame.strips:
            self._draw_box(painter, part.strip, part.stream.head, viewport, 1.5)
        if at is not None and at[0] < len(frame.strips):
            self._draw_box(painter, frame.strips[at[0]].strip, at[1], viewport, 2.0)

    def _make_images(self, frame: MapFrame, viewport: Viewport, edges: Edges) -> None:
        tints = tint_table(frame.scene.mode, self._look.colours)
        self._images = []
        self.n_drawn = 0
        for i, part in enumerate(frame.strips):
            strip, pixels = part.strip, viewport.pixels(part.strip)
            seen = viewport.visible(strip) if pixels >= 1 else Part(0, strip.rows, 0, strip.columns)
            if seen.rows <= seen.row or seen.columns <= seen.column:
                continue
            self.n_drawn += (seen.rows - seen.row) * (seen.columns - seen.column)
            codes = picture(part.layer, strip.columns, seen, max(1, int(pixels)), edges.get(i))
            argb = tints.take(codes)
            height, width = argb.shape
            image = QImage(argb.data, width, height, 4 * width, QImage.Format.Format_RGB32)
            if pixels < 1:
                size = round(strip.width * viewport.ratio), round(strip.height * viewport.ratio)
                image = image.scaled(
                    max(1, size[0]),
                    max(1, size[1]),
                    Qt.AspectRatioMode.IgnoreAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            image.setDevicePixelRatio(viewport.ratio)
            corner = viewport.to_widget(strip.x, strip.y)
            step = int(pixels) / viewport.ratio
            corner += QPointF(seen.column * step, seen.row * step)
            self._images.append((corner, image, argb))

    def _draw_labels(self, painter: QPainter, strips: Sequence[Strip], viewport: Viewport) -> None:
        """Names of the strips; that of a strip whose beginning is out of sight stays at the edge, on a ground."""
        painter.setFont(self._look.small)
        metrics = painter.fontMetrics()
        for strip in strips:
            corner, end = viewport.to_widget(strip.x, strip.y), viewport.to_widget(0, strip.y + strip.height)
            if not strip.label or end.y() <= 0 or corner.y() > viewport.height + LABEL_PX:
                continue
            text = strip.short or strip.label
            width = metrics.horizontalAdvance(text)
            if strip.short:
                low = min(end.y() - corner.y(), LABEL_PX)
                x, y = max(corner.x() - width - 6, 0.0), corner.y() + (low - LABEL_PX) / 2
            else:
                x, y = max(corner.x(), 0.0), corner.y() - LABEL_PX
            pinned = corner.y() < 0 or (strip.short != "" and corner.x() - width - 6 < 0)
            box = QRectF(x, max(y, 0.0), width + (8 if pinned else 0), LABEL_PX)
            if pinned:
                painter.fillRect(box, QColor(self._look.colours.panel))
            painter.setPen(QColor(self._look.colours.secondary))
            painter.drawText(box.adjusted(4 if pinned else 0, 0, 4, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_boundary(self, painter: QPainter, part: StripFrame, viewport: Viewport) -> None:
        """The end of what attention walks over, as a stepped line that is dark and light in turn."""
        strip, n_kv = part.strip, part.n_kv
        if not 0 < n_kv < strip.n_cells:
            return
        x, y = strip.corner(n_kv)
        step = [(x, y), (strip.x + strip.width, y)]
        if n_kv % strip.columns:
            step = [(strip.x, y + strip.cell), (x, y + strip.cell), *step]
        line = QPolygonF([viewport.to_widget(*point) for point in step])
        painter.setPen(QPen(QColor(self._look.colours.panel), 1))
        painter.drawPolyline(line)
        pen = QPen(QColor(self._look.colours.text), 1)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        painter.drawPolyline(line)

    def _draw_box(self, painter: QPainter, strip: Strip, cell: int, viewport: Viewport, thickness: float) -> None:
        """A frame around one cell: the head, or the cursor. Around a small cell it is larger than the cell."""
        if not 0 <= cell < strip.n_cells:
            return
        size = strip.cell * viewport.zoom
        corner = viewport.to_widget(*strip.corner(cell))
        box = QRectF(corner.x(), corner.y(), size, size)
        if not box.intersects(QRectF(0, 0, viewport.width, viewport.height)):
            return
        grow = max(1.0, (_SMALLEST_FRAME_PX - size) / 2)
        box.adjust(-grow, -grow, grow, grow)
        bounds = QRectF(0, 0, viewport.width, viewport.height)  # at the edge all of the frame is inside
        if size * 3 < viewport.height:
            box.moveLeft(min(max(box.left(), bounds.left()), bounds.right() - box.width()))
            box.moveTop(min(max(box.top(), bounds.top()), bounds.bottom() - box.height()))
        _fill_ring(painter, box.adjusted(-1, -1, 1, 1), thickness + 2, QColor(self._look.colours.panel))
        _fill_ring(painter, box, thickness, QColor(self._look.colours.text))

    def _draw_texts(
        self, painter: QPainter, part: StripFrame, frame: MapFrame, viewport: Viewport, texts: Mapping[int, str]
    ) -> None:
        """Token texts where they can be read."""
        painter.setFont(self._look.mono_small)
        tints = tint_table(frame.scene.mode, self._look.colours)
        strip, stream, layer = part.strip, part.stream, part.layer
        size = strip.cell * viewport.zoom
        seen = viewport.visible(strip)
        inks = {code: _inks(int(tints[code])) for code in np.unique(layer.code).tolist()}
        for row in range(seen.row, seen.rows):
            first = row * strip.columns
            last = min(first + seen.columns, stream.high_water)
            for cell in range(first + seen.column, last):
                code = int(layer.code[cell])
                if code < FIRST_GROUP:
                    continue
                text = self._static(texts.get(int(stream.token[cell]), "").strip()[:_TEXT_LENGTH] or "·")
                box = text.size()
                corner = viewport.to_widget(*strip.corner(cell))
                corner += QPointF((size - box.width()) / 2, (size - box.height()) / 2)
                ink, paper = inks[code]
                if layer.marks[cell]:  # patterns are under it
                    painter.setPen(paper)
                    painter.drawStaticText(corner + QPointF(0.8, 0.8), text)
                painter.setPen(ink)
                painter.drawStaticText(corner, text)

    def _static(self, text: str) -> QStaticText:
        """The text laid out once, for as long as the map is drawn."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) > _KEPT_TEXTS:
                self._texts.clear()
            known = self._texts[text] = QStaticText(text)
            known.setTextFormat(Qt.TextFormat.PlainText)
            known.prepare(font=self._look.mono_small)
        return known


def _inks(argb: int) -> tuple[QColor, QColor]:
    """The ink that is read best on a ground, and the other one."""
    ground = QColor(argb).name()
    ink, paper = sorted(_INKS, key=lambda ink: contrast(ink, ground), reverse=True)
    return QColor(ink), QColor(paper)


def _fill_ring(painter: QPainter, box: QRectF, thick: float, colour: QColor) -> None:
    """The inner edge of a box. Much cheaper than a pen of that thickness."""
    x, y, width, height = box.x(), box.y(), box.width(), box.height()
    for side in (
        QRectF(x, y, width, thick),
        QRectF(x, y + height - thick, width, thick),
        QRectF(x, y + thick, thick, height - 2 * thick),
        QRectF(x + width - thick, y + thick, thick, height - 2 * thick),
    ):
        painter.fillRect(side, colour)
