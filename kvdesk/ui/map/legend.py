"""The legend of the cell map: its colours and marks, drawn with the pixels of the map itself."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kvdesk.translation import tr
from kvdesk.ui.map.colour_tables import colour_table
from kvdesk.ui.map.legend_entries import Entry, MapLegend
from kvdesk.ui.map.pixels import Part, picture
from kvdesk.ui.map.raster import Layer
from kvdesk.ui.widgets.theme import Theme

ROWS: Final = 3
ROW_PX: Final = 18
_SWATCH_PX: Final = 11
_RAMP_PX: Final = 72
_GAP_PX: Final = 14


class Legend(QWidget):
    """Swatches and words in at most three lines."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._key: MapLegend | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Legend of the cell map"))
        theme.changed.connect(self.update)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        return QSize(200, ROWS * self._theme.px(ROW_PX))

    @Slot(MapLegend)
    def show_key(self, key: MapLegend) -> None:
        self._key = key
        words = [" ".join((entry.words, *entry.ends)).strip() for entry in key.entries]
        self.setAccessibleDescription(
            tr("Coloured by {property}: {entries}").format(
                property=tr(key.mode.value).lower(), entries=", ".join(words)
            )
        )
        self.setToolTip(key.mode.meaning)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._key is None:
            return
        painter = QPainter(self)
        painter.setFont(self._theme.small)
        metrics = QFontMetrics(self._theme.small)
        for entry, x, row in self._places(self._key, self.width(), metrics):
            self._draw(painter, entry, self._key, x, float(row * self._theme.px(ROW_PX)), metrics)

    def lines(self, width: int) -> int:
        """How many lines the key takes in a pane of this width."""
        if self._key is None:
            return 0
        return max(row for _, _, row in self._places(self._key, width, QFontMetrics(self._theme.small))) + 1

    def _places(self, key: MapLegend, width: int, metrics: QFontMetrics) -> list[tuple[Entry, float, int]]:
        """Each entry with where it begins and in which line."""
        places: list[tuple[Entry, float, int]] = []
        x, row = 0.0, 0
        for entry in key.entries:
            needed = self._width(entry, metrics)
            if x and x + needed > width:
                x, row = 0.0, row + 1
            places.append((entry, x, row))
            x += needed + self._theme.px(_GAP_PX)
        return places

    def _width(self, entry: Entry, metrics: QFontMetrics) -> float:
        if entry.kind != "ramp":
            return self._theme.px(_SWATCH_PX) + 6 + metrics.horizontalAdvance(entry.words)
        words = (entry.words, *entry.ends)
        return self._theme.px(_RAMP_PX) + 18 + sum(metrics.horizontalAdvance(word) for word in words)

    def _draw(
        self, painter: QPainter, entry: Entry, key: MapLegend, x: float, top: float, metrics: QFontMetrics
    ) -> None:
        box = QRectF(
            x,
            top + (self._theme.px(ROW_PX) - self._theme.px(_SWATCH_PX)) // 2,
            self._theme.px(_SWATCH_PX),
            self._theme.px(_SWATCH_PX),
        )
        colours = self._theme.colours
        if entry.kind == "ramp":
            for word in (entry.words, entry.ends[0]):
                tone = colours.text if word is entry.words else colours.secondary
                x = self._write(painter, word, tone, x, top, metrics) + 6
            box = QRectF(x, box.y(), self._theme.px(_RAMP_PX), box.height())
            painter.drawImage(box, self._colours(entry, key))
            self._write(painter, entry.ends[1], colours.secondary, box.right() + 6, top, metrics)
            return
        if entry.kind == "head":
            painter.setPen(QPen(QColor(colours.text), 1.5))
            painter.drawRect(box.adjusted(1.5, 1.5, -1.5, -1.5))
        elif entry.kind == "n_kv":
            pen = QPen(QColor(colours.text), 1)
            pen.setDashPattern([3, 2])
            painter.setPen(pen)
            painter.drawLine(QPointF(box.left(), box.center().y()), QPointF(box.right(), box.center().y()))
        else:
            painter.drawImage(box, self._cell(entry, key))
        self._write(painter, entry.words, colours.secondary, box.right() + 6, top, metrics)

    def _write(self, painter: QPainter, words: str, tone: str, x: float, top: float, metrics: QFontMetrics) -> float:
        """Write at x; returns where the words end."""
        width = metrics.horizontalAdvance(words)
        painter.setPen(QColor(tone))
        painter.drawText(QRectF(x, top, width + 4, self._theme.px(ROW_PX)), Qt.AlignmentFlag.AlignVCenter, words)
        return x + width

    def _cell(self, entry: Entry, key: MapLegend) -> QImage:
        """One cell of the map, as the map draws it."""
        code = np.array(entry.codes[:1], np.uint8)
        second = np.array(entry.codes[1:2], np.uint8) if entry.kind == "split" else None
        layer = Layer(code, second, np.array([entry.marks], np.uint8))
        pixels = round(self._theme.px(_SWATCH_PX) * self.devicePixelRatioF()) + 1
        codes = picture(layer, 1, Part(0, 1, 0, 1), pixels)[:-1, :-1]  # without the grid
        return _image(colour_table(key.mode, self._theme.colours)[codes])

    def _colours(self, entry: Entry, key: MapLegend) -> QImage:
        return _image(colour_table(key.mode, self._theme.colours)[np.array([entry.codes], np.uint8)])


def _image(argb: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> QImage:
    height, width = argb.shape
    argb = np.ascontiguousarray(argb)
    return QImage(argb.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()
