"""The picture of one strip, kept while nothing but cells change: a new frame then draws only the rows that differ.

On two cores every millisecond of drawing is one that decoding loses, and a token changes one row of the map.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage

from kvdesk.ui.map_frame import StripFrame
from kvdesk.ui.map_pixels import Part, picture
from kvdesk.ui.map_viewport import Box, Viewport
from kvdesk.ui.raster import Layer

_FEW: Final = 64  # so many changed cells are looked at one by one sooner than by numpy
_MOST_RUNS: Final = 8  # of changed rows; when there are more, all between the first and the last are drawn

Edges = NDArray[np.uint8]  # where the outline of the selection runs (`map_pixels.edges_of`)


class StripImage:
    """What is seen of a strip, in device pixels. `tints`: colour of each code; `corner`: where it is drawn."""

    def __init__(self, part: StripFrame, viewport: Viewport, tints: NDArray[np.uint32], edges: Edges | None) -> None:
        strip, pixels = part.strip, viewport.pixels(part.strip)
        whole = Part(0, strip.rows, 0, strip.columns)
        self._layer, self._strip, self._edges = part.layer, strip, edges
        self._seen = viewport.visible(strip) if pixels >= 1 else whole
        self._pixels = max(1, int(pixels))
        self._is_scaled = pixels < 1
        self._step = int(pixels) / viewport.ratio
        self.n_cells = (self._seen.rows - self._seen.row) * (self._seen.columns - self._seen.column)
        x, y = viewport.corner(strip.x, strip.y)
        self._corner = x + self._seen.column * self._step, y + self._seen.row * self._step
        self.corner = QPointF(*self._corner)
        if not self.n_cells:
            self.image = QImage()
            return
        self._argb = tints.take(picture(part.layer, strip.columns, self._seen, self._pixels, edges))
        height, width = self._argb.shape
        self.image = QImage(self._argb.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        if self._is_scaled:
            size = round(strip.width * viewport.ratio), round(strip.height * viewport.ratio)
            modes = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
            self.image = self.image.scaled(max(1, size[0]), max(1, size[1]), *modes)
        self.image.setDevicePixelRatio(viewport.ratio)

    def update(self, part: StripFrame, tints: NDArray[np.uint32]) -> list[Box] | None:
        """Draw the rows in which cells of `part` differ from those drawn, which is the same strip seen in the same way.

        Returns where they are in the widget; None, with nothing drawn, where the picture must be made anew.
        """
        old, new = self._layer, part.layer
        if self._is_scaled or (old.second is None) != (new.second is None):
            return None
        rows, left, right = self._appended(part) if part.since is old else self._changed(old, new)
        self._layer = new
        if not self.n_cells:
            return []
        for first, end in (runs := self._runs(rows)):
            self._draw_rows(first, end, tints)
        return [self._box(first, end, left, right) for first, end in runs]

    def _appended(self, part: StripFrame) -> tuple[list[int], int, int]:
        """Rows of the cells at the end that may differ, and the columns they are in."""
        width = self._strip.columns
        first, last = part.first, part.stream.high_water - 1
        if first // width == last // width:
            return [first // width], first % width, last % width + 1
        return list(range(first // width, last // width + 1)), 0, width

    def _changed(self, old: Layer, new: Layer) -> tuple[list[int], int, int]:
        """Rows of the cells that differ, and the columns they are in."""
        both, most = sorted((old.code.size, new.code.size))
        changed = np.ones(most, np.bool_)  # behind the shorter one free cells became part of the span, or left it
        changed[:both] = (old.code[:both] != new.code[:both]) | (old.marks[:both] != new.marks[:both])
        if old.second is not None and new.second is not None:
            changed[:both] |= old.second[:both] != new.second[:both]
        cells, width = np.flatnonzero(changed), self._strip.columns
        if cells.size <= _FEW:
            few = cells.tolist()
            columns = [cell % width for cell in few]
            return sorted({cell // width for cell in few}), min(columns, default=0), max(columns, default=0) + 1
        every = cells // width
        return every[np.diff(every, prepend=-1) > 0].tolist(), 0, width

    def _runs(self, rows: list[int]) -> list[tuple[int, int]]:
        """Those of the rows that are seen, as runs [first, end)."""
        runs: list[tuple[int, int]] = []
        for row in rows:
            if not self._seen.row <= row < self._seen.rows:
                continue
            if runs and runs[-1][1] == row:
                runs[-1] = runs[-1][0], row + 1
            else:
                runs.append((row, row + 1))
        return runs if len(runs) <= _MOST_RUNS else [(runs[0][0], runs[-1][1])]

    def _box(self, first: int, end: int, left: int, right: int) -> Box:
        """Where rows and columns of cells are in the widget, as far as they are seen."""
        seen, step = self._seen, self._step
        x, y = max(left, seen.column), first - seen.row
        width = max(min(right, seen.columns) - x, 0)
        left_px, top_px = self._corner
        return Box(left_px + (x - seen.column) * step, top_px + y * step, width * step, (end - first) * step)

    def _draw_rows(self, first: int, end: int, tints: NDArray[np.uint32]) -> None:
        seen, pixels = self._seen, self._pixels
        first -= (first - seen.row) % 2  # dithering goes by pairs of rows
        rows = Part(first, end, seen.column, seen.columns)
        top, bottom = (first - seen.row) * pixels, (end - seen.row) * pixels
        codes = picture(self._layer, self._strip.columns, rows, pixels, self._edges)
        self._argb[top:bottom] = tints.take(codes)
