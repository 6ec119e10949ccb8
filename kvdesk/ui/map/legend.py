"""The legend of the cell map: its colours and marks, drawn with the pixels of the map itself."""

from functools import lru_cache
from html import escape
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from kvdesk.translation import tr
from kvdesk.ui.map.colours import ColourBy, colour_table
from kvdesk.ui.map.legend_entries import Entry, Kind, MapLegend
from kvdesk.ui.map.pixels import Part, picture
from kvdesk.ui.map.raster import MARK_SHIFT, Layer
from kvdesk.ui.widgets.legend import Legend, swatch
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.ui.widgets.style.theme import Theme

_SWATCH_PX: Final = 11
_RAMP_PX: Final = 72


class CellLegend(Legend):
    """Swatches and words in at most three lines of a narrow pane."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._key: MapLegend | None = None
        self.setAccessibleName(tr("Legend of the cell map"))
        theme.changed.connect(self._show)

    def show_key(self, key: MapLegend) -> None:
        self._key = key
        words = [" ".join((entry.words, *entry.ends)).strip() for entry in key.entries]
        self.setAccessibleDescription(
            tr("Coloured by {property}: {entries}").format(
                property=tr(key.mode.value).lower(), entries=tr(", ").join(words)
            )
        )
        self.setToolTip(key.mode.meaning)
        self._show()

    def _show(self) -> None:
        if self._key is not None:
            self.show_entries(self._entry(entry, self._key.mode) for entry in self._key.entries)

    def _entry(self, entry: Entry, mode: ColourBy) -> tuple[str, str]:
        side, colours = self._theme.px(_SWATCH_PX), self._theme.colours
        width = self._theme.px(_RAMP_PX) if entry.kind == "ramp" else side
        shown = _swatch(entry.kind, entry.codes, entry.marks, mode, colours, width, side, self.devicePixelRatioF())
        if entry.kind != "ramp":
            return shown, entry.words
        words = f'<span style="color:{colours.text}">{escape(entry.words)}</span>&nbsp; {escape(entry.ends[0])}'
        return f"{words}&nbsp; {shown}", entry.ends[1]


@lru_cache(maxsize=128)
def _swatch(
    kind: Kind,
    codes: tuple[int, ...],
    marks: int,
    mode: ColourBy,
    colours: Colours,
    width: int,
    height: int,
    ratio: float,
) -> str:
    """Rich text with the picture of an entry, `width` by `height` pixels of the text."""
    if kind in ("head", "n_kv"):
        return swatch(_line(kind, QColor(colours.text), height, ratio), width, height)
    found, colour_of = np.array(codes, np.uint16), colour_table(mode, colours)
    if kind == "ramp":
        argb = colour_of[found[None]]
    else:  # a cell of the map, as the map draws it, without the grid
        found |= marks << MARK_SHIFT
        layer = Layer(found[:1], found[1:2] if kind == "split" else None)
        cell = picture(layer, 1, Part(0, 1, 0, 1), round(height * ratio) + 1, colour_of)
        argb = np.ascontiguousarray(cell[:-1, :-1])
    image = QImage(argb.data, argb.shape[1], argb.shape[0], 4 * argb.shape[1], QImage.Format.Format_RGB32)
    return swatch(image, width, height)


def _line(kind: Kind, ink: QColor, side: int, ratio: float) -> QImage:
    """What is drawn over the cells."""
    n = round(side * ratio)
    image = QImage(n, n, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    if kind == "head":
        painter.setPen(QPen(ink, 1.5))
        painter.drawRect(QRectF(1.5, 1.5, side - 3, side - 3))
    else:
        pen = QPen(ink, 1)
        pen.setDashPattern([3, 2])
        painter.setPen(pen)
        painter.drawLine(0, side // 2, side, side // 2)
    painter.end()
    return image
