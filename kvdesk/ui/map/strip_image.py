"""The picture of one strip, kept while nothing but cells change: a new frame then draws only the rows that differ.

On two cores every millisecond of drawing is one that decoding loses, and a token changes one row of the map.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage

from kvdesk.ui.map.frame import StripFrame
from kvdesk.ui.map.pixels import Part, picture
from kvdesk.ui.map.raster import Layer
from kvdesk.ui.map.viewport import Viewport

_MOST_RUNS: Final = 8  # of changed rows; when there are more, all between the first and the last are drawn

Rows = tuple[int, int]
"""Rows of cells of a strip, end excluded."""
Edges = NDArray[np.uint8]  # where the outline of the selection runs (`pixels.edges_of`)


class StripImage:
    """The visible part of a strip as an image, in device pixels. `colour_of`: ARGB by code; `corner`: its place."""

    def __init__(
        self, part: StripFrame, viewport: Viewport, colour_of: NDArray[np.uint32], edges: Edges | None
    ) -> None:
        strip, pixels = part.strip, viewport.pixels(part.strip)
        whole = Part(0, strip.rows, 0, strip.columns)
        self._layer, self._strip, self._edges = part.layer, strip, edges
        self._seen = viewport.visible(strip) if pixels >= 1 else whole
        self._pixels = max(1, int(pixels))
        self._is_scaled = pixels < 1
        self.n_cells = (self._seen.rows - self._seen.row) * (self._seen.columns - self._seen.column)
        x, y = viewport.corner(strip.x, strip.y)
        step = int(pixels) / viewport.ratio
        self.corner = QPointF(x + self._seen.column * step, y + self._seen.row * step)
        if not self.n_cells:
            self.image = QImage()
            return
        self._argb = colour_of.take(picture(part.layer, strip.columns, self._seen, self._pixels, edges))
        height, width = self._argb.shape
        self.image = QImage(self._argb.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        if self._is_scaled:
            size = round(strip.width * viewport.ratio), round(strip.height * viewport.ratio)
            modes = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
            self.image = self.image.scaled(max(1, size[0]), max(1, size[1]), *modes)
        self.image.setDevicePixelRatio(viewport.ratio)

    def update(self, part: StripFrame, colour_of: NDArray[np.uint32]) -> list[Rows] | None:
        """Draw the rows in which cells of `part` differ from those drawn, which is the same strip seen in the same way.

        Returns them, rising; None, with nothing drawn, where the picture must be made anew.
        """
        old, new = self._layer, part.layer
        if self._is_scaled or (old.second is None) != (new.second is None):
            return None
        width = self._strip.columns
        if part.since is old:
            changed = [(part.first // width, (part.stream.high_water - 1) // width + 1)]
        else:
            changed = self._changed(old, new)
        self._layer = new
        if not self.n_cells:
            return []
        seen = [(max(first, self._seen.row), min(end, self._seen.rows)) for first, end in changed]
        seen = [(first, end) for first, end in seen if first < end]
        for first, end in seen:
            self._draw_rows(first, end, colour_of)
        return seen

    def _changed(self, old: Layer, new: Layer) -> list[Rows]:
        """Rows with cells that differ."""
        both, most = sorted((old.code.size, new.code.size))
        changed = np.ones(most, np.bool_)  # behind the shorter one free cells became part of the span, or left it
        changed[:both] = (old.code[:both] != new.code[:both]) | (old.marks[:both] != new.marks[:both])
        if old.second is not None and new.second is not None:
            changed[:both] |= old.second[:both] != new.second[:both]
        rows = np.flatnonzero(changed) // self._strip.columns
        if not rows.size:
            return []
        begins = np.flatnonzero(np.diff(rows) > 1) + 1
        firsts = [int(rows[0]), *rows[begins].tolist()]
        lasts = [*rows[begins - 1].tolist(), int(rows[-1])]
        if len(firsts) > _MOST_RUNS:
            firsts, lasts = firsts[:1], lasts[-1:]
        return [(first, last + 1) for first, last in zip(firsts, lasts, strict=True)]

    def _draw_rows(self, first: int, end: int, colour_of: NDArray[np.uint32]) -> None:
        seen, pixels = self._seen, self._pixels
        first -= (first - seen.row) % 2  # dithering goes by pairs of rows
        rows = Part(first, end, seen.column, seen.columns)
        top, bottom = (first - seen.row) * pixels, (end - seen.row) * pixels
        codes = picture(self._layer, self._strip.columns, rows, pixels, self._edges)
        self._argb[top:bottom] = colour_of.take(codes)
