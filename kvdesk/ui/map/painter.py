"""Draws a frame of the cell map: cells, head, n_kv boundary, token texts, cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF, QStaticText

from kvdesk.ui.map import strip_image
from kvdesk.ui.map.colour_tables import colour_table
from kvdesk.ui.map.frame import MapFrame, StripFrame
from kvdesk.ui.map.layout import LABEL_PX, Strip
from kvdesk.ui.map.raster import FIRST_GROUP
from kvdesk.ui.map.strip_image import StripImage
from kvdesk.ui.map.viewport import Viewport
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.palette import contrast

_TEXT_FROM_PX: Final = 44.0  # cells drawn larger than this show their token's text
_TEXT_LENGTH: Final = 8
_SMALLEST_FRAME_PX: Final = 7.0  # head and cursor are to be seen around the smallest cell
_BESIDE_PX: Final = _SMALLEST_FRAME_PX + 2  # a frame goes no farther beyond its cell, with its own edge
_KEPT_TEXTS: Final = 4096
_INKS: Final = ("#000000", "#ffffff")

Edges = Mapping[int, strip_image.Edges]  # by strip


class MapPainter:
    """Knows how a map looks, not where it comes from. Keeps the pictures until viewport or selection change."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._frame: MapFrame | None = None  # that the images are of
        self._made_of: tuple[object, ...] = ()
        self._edges: Edges = {}
        self._colour_of: NDArray[np.uint32] = np.zeros(256, np.uint32)  # colour of each code
        self._images: list[StripImage] = []
        self._heads: list[_Ring | None] = []  # by strip
        self._rings: dict[tuple[float, float, float], QPixmap] = {}  # their pictures, by side, thickness and ratio
        self._boundaries: list[_Boundary | None] = []  # ends of what attention walks over, by strip
        self._pens: tuple[QPen, ...] = ()  # of these lines
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
        where: QRect | None = None,
    ) -> None:
        """`at` is the strip and the cell with the cursor; `where` to paint at least, everywhere by default."""
        self.prepare(frame, viewport, edges)
        for image in self._images:
            painter.drawImage(image.corner, image.image)
        self._draw_labels(painter, frame.layout, viewport)
        for boundary in self._boundaries:
            if boundary is not None and (where is None or boundary.bounds.intersects(where)):
                for pen in self._pens:
                    painter.setPen(pen)
                    painter.drawPolyline(boundary.line)
        for part in frame.strips:
            if part.strip.cell * viewport.zoom >= _TEXT_FROM_PX:
                self._draw_texts(painter, part, viewport, texts)
        for head in self._heads:
            if head is not None:
                self._draw_ring(painter, head, 1.5, viewport)
        if at is not None and at[0] < len(frame.strips):
            cursor = _ring_at(frame.layout[at[0]], at[1], viewport)
            if cursor is not None:
                self._draw_ring(painter, cursor, 2.0, viewport)

    def prepare(self, frame: MapFrame, viewport: Viewport, edges: Edges) -> list[QRect] | None:
        """Bring the pictures up to date. Returns what of the widget must be painted again; None: everything."""
        colours, mode = self._theme.colours, frame.scene.mode
        made_of = (id(edges), viewport, colours, mode, frame.layout)
        same = made_of == self._made_of
        if same and frame is self._frame:
            return []
        before, self._frame = self._frame, frame
        if not same:
            self._colour_of = colour_table(mode, colours)
            self._rings.clear()
            self._pens = _pens(self._theme)
        if same and before is not None:
            where = self._update_images(before, frame, viewport)
            if where is not None:
                return where
        self._made_of, self._edges = made_of, edges  # kept, so that no other has its id
        parts = enumerate(frame.strips)
        self._images = [StripImage(part, viewport, self._colour_of, edges.get(i)) for i, part in parts]
        self._heads = [_ring_at(part.strip, part.stream.head, viewport) for part in frame.strips]
        self._boundaries = [_boundary(part, viewport) for part in frame.strips]
        self.n_drawn = sum(image.n_cells for image in self._images)
        return None

    def _update_images(self, before: MapFrame, frame: MapFrame, viewport: Viewport) -> list[QRect] | None:
        """The same strips seen in the same way, with other cells. None: the pictures must be made anew."""
        rects = []
        for i, (image, old, new) in enumerate(zip(self._images, before.strips, frame.strips, strict=True)):
            rows = image.update(new, self._colour_of)
            if rows is None:
                return None
            if old.n_kv != new.n_kv:
                was, self._boundaries[i] = self._boundaries[i], _boundary(new, viewport)
                rects += [boundary.bounds for boundary in (was, self._boundaries[i]) if boundary is not None]
            if old.stream.head != new.stream.head:
                self._heads[i] = _ring_at(new.strip, new.stream.head, viewport)
                for row in (old.stream.head // new.strip.columns, new.stream.head // new.strip.columns):
                    rows.append((row, row + 1))
            if rows:
                rects.append(_band(new.strip, rows, viewport))
        return rects

    def _draw_labels(self, painter: QPainter, strips: Sequence[Strip], viewport: Viewport) -> None:
        """Names of the strips; that of a strip whose beginning is out of sight stays at the edge, on a ground."""
        strips = [strip for strip in strips if strip.label]
        if not strips:
            return
        painter.setFont(self._theme.small)
        metrics = painter.fontMetrics()
        for strip in strips:
            corner, end = viewport.to_widget(strip.x, strip.y), viewport.to_widget(0, strip.y + strip.height)
            if end.y() <= 0 or corner.y() > viewport.height + LABEL_PX:
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
                painter.fillRect(box, QColor(self._theme.colours.panel))
            painter.setPen(QColor(self._theme.colours.secondary))
            painter.drawText(box.adjusted(4 if pinned else 0, 0, 4, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_ring(self, painter: QPainter, ring: _Ring, thickness: float, viewport: Viewport) -> None:
        """A frame around one cell: the head, or the cursor."""
        key = ring.side, thickness, viewport.ratio
        if key not in self._rings:
            self._rings[key] = _ring(*key, self._theme)
        painter.drawPixmap(QPointF(ring.x - 1, ring.y - 1), self._rings[key])

    def _draw_texts(self, painter: QPainter, part: StripFrame, viewport: Viewport, texts: Mapping[int, str]) -> None:
        """Token texts where they can be read."""
        painter.setFont(self._theme.mono_small)
        colour_of = self._colour_of
        strip, stream, layer = part.strip, part.stream, part.layer
        size = strip.cell * viewport.zoom
        seen = viewport.visible(strip)
        inks = {code: _inks(int(colour_of[code])) for code in np.unique(layer.code).tolist()}
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
            known.prepare(font=self._theme.mono_small)
        return known


class _Ring(NamedTuple):
    """Where a frame around a cell is drawn, in pixels of the widget. Plain numbers: a call of Qt costs as much as a
    hundred of them.
    """

    x: float
    y: float
    side: float


def _ring_at(strip: Strip, cell: int, viewport: Viewport) -> _Ring | None:
    """The frame around a cell, around a small cell a larger one; None when it is out of sight."""
    size = strip.cell * viewport.zoom
    x, y = viewport.corner(*strip.corner(cell))
    if not (0 <= cell < strip.n_cells and -size < x < viewport.width and -size < y < viewport.height):
        return None
    around = max(1.0, (_SMALLEST_FRAME_PX - size) / 2)
    x, y, side = x - around, y - around, size + 2 * around
    if size * 3 < viewport.height:  # at the edge all of the frame is inside
        x, y = min(max(x, 0.0), viewport.width - side), min(max(y, 0.0), viewport.height - side)
    return _Ring(x, y, side)


def _band(strip: Strip, rows: Sequence[strip_image.Rows], viewport: Viewport) -> QRect:
    """From the first to the last of the rows, over the whole width of the widget, with the frames around cells."""
    top = strip.y + min([first for first, _ in rows]) * strip.cell
    bottom = strip.y + max([end for _, end in rows]) * strip.cell
    y = floor(top * viewport.zoom + viewport.offset.y() - _BESIDE_PX)
    height = ceil((bottom - top) * viewport.zoom + 2 * _BESIDE_PX)
    return QRect(0, y, ceil(viewport.width), height)


class _Boundary(NamedTuple):
    """A stepped line, and where it is."""

    line: QPolygonF
    bounds: QRect


def _boundary(part: StripFrame, viewport: Viewport) -> _Boundary | None:
    """The end of what attention walks over, None where that is nothing or everything."""
    strip, n_kv = part.strip, part.n_kv
    if not 0 < n_kv < strip.n_cells:
        return None
    x, y = strip.corner(n_kv)
    step = [(x, y), (strip.x + strip.width, y)]
    if n_kv % strip.columns:
        step = [(strip.x, y + strip.cell), (x, y + strip.cell), *step]
    line = QPolygonF([viewport.to_widget(*point) for point in step])
    return _Boundary(line, line.boundingRect().adjusted(-1, -1, 1, 1).toAlignedRect())


def _pens(theme: Theme) -> tuple[QPen, QPen]:
    """One after the other they draw a line that is dark and light in turn."""
    dashed = QPen(QColor(theme.colours.text), 1)
    dashed.setDashPattern([4, 3])
    return QPen(QColor(theme.colours.panel), 1), dashed


def _inks(argb: int) -> tuple[QColor, QColor]:
    """The ink that is read best on a ground, and the other one."""
    ground = QColor(argb).name()
    ink, paper = sorted(_INKS, key=lambda ink: contrast(ink, ground), reverse=True)
    return QColor(ink), QColor(paper)


def _ring(size: float, thickness: float, ratio: float, theme: Theme) -> QPixmap:
    """A square frame with an edge of the ground around it and inside of it, drawn once."""
    picture = QPixmap(round((size + 2) * ratio), round((size + 2) * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        for edge, thick, ink in ((0.0, thickness + 2, theme.colours.panel), (1.0, thickness, theme.colours.text)):
            side, colour = size + 2 - 2 * edge, QColor(ink)
            for box in (
                QRectF(edge, edge, side, thick),
                QRectF(edge, edge + side - thick, side, thick),
                QRectF(edge, edge, thick, side),
                QRectF(edge + side - thick, edge, thick, side),
            ):
                painter.fillRect(box, colour)
    return picture
