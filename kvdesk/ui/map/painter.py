"""Draws a frame of the cell map: cells, head, n_kv boundary, token texts, cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap, QPolygonF, QStaticText

from kvdesk.graphemes import cut
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import colour_table
from kvdesk.ui.map.frame import StripFrame
from kvdesk.ui.map.layout import LABEL_PX, NUMBER_GAP_PX, Strip, row_step
from kvdesk.ui.map.pixels import PATTERNED, picture
from kvdesk.ui.map.raster import FIRST_GROUP
from kvdesk.ui.map.sight import SeenStrip, Sight
from kvdesk.ui.map.viewport import LARGEST_CELL_PX, Viewport
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.palette import contrast

_TEXT_FROM: Final = 3.6  # heights of a text; cells as large show their token's text, and the largest always
_TEXT_LENGTH: Final = 8
_SMALLEST_FRAME_PX: Final = 7.0  # head and cursor are to be seen around the smallest cell
_KEPT_TEXTS: Final = 4096
_LEADING_PX: Final = 3  # above and below the digits of a row number
_INKS: Final = (QColor("#000000"), QColor("#ffffff"))

Outline = NDArray[np.uint8]  # where the outline of the selection runs (`pixels.edges_of`)
Edges = Mapping[int, Outline]  # by strip
Masks = Mapping[int, NDArray[np.bool_]]  # cells, by strip
_NO_MASKS: Final[Masks] = {}


class MapPainter:
    """Knows how a map looks, not where it comes from. Everything in the rectangle that is to be painted is drawn."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._rings: dict[tuple[float, float, float], QPixmap] = {}  # their pictures, by side, thickness and ratio
        self._texts: dict[tuple[str, int], _Laid] = {}
        self._pens: tuple[QPen, ...] = ()  # of the n_kv boundary
        self._look: object = None  # that these are drawn in
        self.n_drawn = 0  # cells at the last painting

    @property
    def _text_from_px(self) -> float:
        return min(_TEXT_FROM * self._theme.mono_small.pixelSize(), LARGEST_CELL_PX - 0.5)

    def shows_texts(self, strips: Sequence[Strip], viewport: Viewport) -> bool:
        """Whether cells are so large that they show their tokens."""
        return any(strip.cell * viewport.zoom >= self._text_from_px for strip in strips)

    def paint(
        self,
        painter: QPainter,
        exposed: QRect,
        sight: Sight,
        texts: Mapping[int, str],
        edges: Edges,
        at: tuple[int, int] | None,
        lit: Masks = _NO_MASKS,
    ) -> None:
        """`at` is the strip and the cell with the cursor; `lit` are the cells of what is looked at elsewhere."""
        look = self._theme.colours, self._theme.mono_small.pixelSize()
        if self._look != look:
            self._look = look
            self._rings.clear()
            self._texts.clear()
            self._pens = _pens(self._theme)
        frame, viewport = sight.frame, sight.viewport
        colour_of = colour_table(frame.scene.mode, self._theme.colours)
        self.n_drawn = sum(
            _draw_cells(painter, exposed, seen, viewport, colour_of, edges.get(i), lit.get(i))
            for i, seen in enumerate(sight.strips)
        )
        for seen in sight.strips:
            if (line := _boundary(seen.strip, viewport)) is not None:
                for pen in self._pens:
                    painter.setPen(pen)
                    painter.drawPolyline(line)
            if seen.strip.strip.cell * viewport.zoom >= self._text_from_px:
                self._draw_texts(painter, seen, viewport, texts, colour_of)
        for part in frame.strips:
            if (head := _ring_at(part.strip, part.stream.head, viewport)) is not None:
                self._draw_ring(painter, head, 1.5, viewport)
        if at is not None and at[0] < len(frame.strips):
            cursor = _ring_at(frame.layout[at[0]], at[1], viewport)
            if cursor is not None:
                self._draw_ring(painter, cursor, 2.0, viewport)
        for seen in sight.strips:
            self._draw_row_numbers(painter, exposed, seen, viewport)
        self._draw_labels(painter, [strip for strip in frame.layout if strip.label], viewport)

    def paint_words(self, painter: QPainter, words: str, right: int) -> None:
        """The developer overlay: two lines in the corner."""
        painter.setFont(self._theme.mono_small)
        metrics = painter.fontMetrics()
        width = max(metrics.horizontalAdvance(line) for line in words.split("\n")) + 12
        box = QRectF(right - width, 0, width, 2 * metrics.lineSpacing() + 4)
        painter.fillRect(box, QColor(self._theme.colours.text))
        painter.setPen(QColor(self._theme.colours.panel))
        painter.drawText(box.adjusted(6, 2, -6, -2), Qt.AlignmentFlag.AlignLeft, words)

    def _draw_labels(self, painter: QPainter, strips: Sequence[Strip], viewport: Viewport) -> None:
        """Names of the strips; that of a strip whose beginning is out of sight stays at the edge, on a ground."""
        if not strips:
            return
        painter.setFont(self._theme.small)
        metrics = painter.fontMetrics()
        for strip in strips:
            corner, end = viewport.to_widget(strip.x, strip.y), viewport.to_widget(0, strip.y + strip.height)
            if end.y() <= 0 or corner.y() > viewport.height + LABEL_PX:
                continue
            pinned = corner.y() < LABEL_PX
            x, y = max(corner.x(), 0.0), max(corner.y() - LABEL_PX, 0.0)
            box = QRectF(x, y, metrics.horizontalAdvance(strip.label) + (8 if pinned else 0), LABEL_PX)
            if pinned:
                painter.fillRect(box, QColor(self._theme.colours.panel))
            painter.setPen(QColor(self._theme.colours.secondary))
            painter.drawText(box.adjusted(4 if pinned else 0, 0, 4, 0), Qt.AlignmentFlag.AlignVCenter, strip.label)

    def _draw_row_numbers(self, painter: QPainter, exposed: QRect, seen: SeenStrip, viewport: Viewport) -> None:
        """The number of the first cell of some rows, left of them; none that would be cut. That of the first row moves
        down as far as it must. Where the cells begin out of sight, numbers stay at the edge, on a ground.
        """
        strip, part = seen.strip.strip, seen.part
        size = strip.cell * viewport.zoom
        x, top = viewport.corner(strip.x, strip.y)
        if x < strip.x:
            top, end = max(top, 0.0), min(viewport.corner(0, strip.y + strip.height)[1], viewport.height)
            painter.fillRect(QRectF(0.0, top, strip.x, end - top), QColor(self._theme.colours.panel))
        right = max(x, strip.x) - NUMBER_GAP_PX
        if right <= max(exposed.left(), 0):
            return
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(self._theme.colours.secondary))
        height = painter.fontMetrics().height()
        step = row_step(strip, size, height + 4)
        for row in range(-(-part.row // step) * step, part.rows, step):
            y = viewport.corner(0, strip.y + row * strip.cell)[1] + (size - height) / 2
            if row == 0:
                y = max(y, -_LEADING_PX)
            if not -_LEADING_PX <= y <= viewport.height - height + _LEADING_PX:
                continue
            number = self._laid(f"{row * strip.columns:,}")
            painter.drawStaticText(QPointF(right - number.width, y), number.text)

    def _draw_ring(self, painter: QPainter, ring: _Ring, thickness: float, viewport: Viewport) -> None:
        """A frame around one cell: the head, or the cursor."""
        key = ring.side, thickness, viewport.ratio
        if key not in self._rings:
            self._rings[key] = _ring(*key, self._theme)
        painter.drawPixmap(QPointF(ring.x - 1, ring.y - 1), self._rings[key])

    def _draw_texts(
        self,
        painter: QPainter,
        seen: SeenStrip,
        viewport: Viewport,
        texts: Mapping[int, str],
        colour_of: NDArray[np.uint32],
    ) -> None:
        """Token texts where they can be read."""
        painter.setFont(self._theme.mono_small)
        strip, part = seen.strip.strip, seen.part
        half = strip.cell * viewport.zoom / 2
        token = seen.strip.stream.token
        codes, marks = (
            every.reshape(-1, strip.columns)[:, part.column : part.columns].tolist()
            for every in (seen.layer.code, seen.layer.marks)
        )
        argb, pen = colour_of.tolist(), None
        middle = [viewport.corner(*strip.corner(column))[0] + half for column in range(part.column, part.columns)]
        for row, line in enumerate(zip(codes, marks, strict=True), part.row):
            first = row * strip.columns + part.column
            centre = viewport.corner(*strip.corner(first))[1] + half
            tokens = token[first : first + len(middle)].tolist()
            for x, code, mark, of in zip(middle, *line, tokens, strict=False):  # the last row may have fewer cells
                if code < FIRST_GROUP or of not in texts:
                    continue
                text, width, height = self._laid(texts[of], _TEXT_LENGTH)
                x, y = x - width / 2, centre - height / 2
                ink, paper = _inks(argb[code])
                if mark & PATTERNED:  # under it
                    painter.setPen(paper)
                    painter.drawStaticText(QPointF(x + 0.8, y + 0.8), text)
                    pen = paper
                if pen is not ink:
                    painter.setPen(ink)
                    pen = ink
                painter.drawStaticText(QPointF(x, y), text)

    def _laid(self, text: str, most: int = 16) -> _Laid:
        """A text, cut to `most` characters and laid out once for as long as the map is drawn."""
        known = self._texts.get((text, most))
        if known is None:
            if len(self._texts) > _KEPT_TEXTS:
                self._texts.clear()
            laid = QStaticText(cut(text.strip(), most, "") or "·")
            laid.setTextFormat(Qt.TextFormat.PlainText)
            laid.prepare(font=self._theme.mono_small)
            size = laid.size()
            known = self._texts[text, most] = _Laid(laid, size.width(), size.height())
        return known


class _Laid(NamedTuple):
    """A text that is laid out, and the pixels it takes."""

    text: QStaticText
    width: float
    height: float


class _Ring(NamedTuple):
    """Where a frame around a cell is drawn, in pixels of the widget."""

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


def _draw_cells(
    painter: QPainter,
    exposed: QRect,
    seen: SeenStrip,
    viewport: Viewport,
    colour_of: NDArray[np.uint32],
    edges: Outline | None,
    lit: NDArray[np.bool_] | None,
) -> int:
    """The exposed rows of a strip as one image, in device pixels. Returns the number of their cells."""
    strip, pixels = seen.strip.strip, round(viewport.pixels(seen.strip.strip))
    part = viewport.visible(strip, exposed.top(), exposed.bottom() + 1)
    n_cells = (part.rows - part.row) * (part.columns - part.column)
    if not n_cells:
        return 0
    layer = seen.rows(part.row, part.rows)
    if lit is not None:
        layer = raster.lit(layer, lit[part.row * strip.columns : part.rows * strip.columns])
    argb = picture(layer, strip.columns, part, pixels, colour_of, edges)
    height, width = argb.shape
    image = QImage(argb.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(viewport.ratio)
    x, y = viewport.corner(strip.x, strip.y)
    step = pixels / viewport.ratio
    painter.drawImage(QPointF(x + part.column * step, y + part.row * step), image)
    return n_cells


def _boundary(part: StripFrame, viewport: Viewport) -> QPolygonF | None:
    """A stepped line in the gap behind what attention walks over, None if that is nothing or everything."""
    strip, n_kv = part.strip, part.n_kv
    if not 0 < n_kv < strip.n_cells:
        return None
    x, y = strip.corner(n_kv)
    step = [(x, y), (strip.x + strip.width, y)]
    if n_kv % strip.columns:
        step = [(strip.x, y + strip.cell), (x, y + strip.cell), *step]
    gap = 1 / (viewport.ratio * viewport.zoom)
    return QPolygonF([viewport.to_widget(x - gap, max(y - gap, strip.y)) for x, y in step])


def _pens(theme: Theme) -> tuple[QPen, QPen]:
    """One after the other they draw a line that is dark and light in turn."""
    dashed = QPen(QColor(theme.colours.text), 1)
    dashed.setDashPattern([4, 3])
    return QPen(QColor(theme.colours.panel), 1), dashed


@lru_cache(maxsize=256)
def _inks(argb: int) -> tuple[QColor, QColor]:
    """The ink that is read best on a ground, and the other one."""
    ground = QColor(argb).name()
    ink, paper = sorted(_INKS, key=lambda ink: contrast(ink.name(), ground), reverse=True)
    return ink, paper


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
