"""The cell map: every cell of every stream as a square. An index image is made when something changed, then only drawn.

Wheel zooms, dragging pans, double click and 0 show everything again; arrow keys move a cell cursor, so that what the
mouse reads the keyboard reads too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kvdesk.cache.snapshot import StreamMap
from kvdesk.messages import CacheView
from kvdesk.ui import raster
from kvdesk.ui.map_layout import StreamSize, Strip, lay_out, total_height
from kvdesk.ui.map_tints import tint_table
from kvdesk.ui.readout import describe_cell
from kvdesk.ui.theme import Look

REFRESH_MS: Final = 50
_FRESH_S: Final = 0.35
_FADING_S: Final = 0.8
_MAX_ZOOM: Final = 64.0
_LABEL_CELL_PX: Final = 44.0  # cells drawn larger than this show their token's text


class CellMapView(QWidget):
    """Draws a `CacheView`."""

    described = Signal(str, str)  # two lines about the cell under the mouse or the cursor; empty when there is none

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._view: CacheView | None = None
        self._colours: Mapping[int, int] = {}
        self._titles: Mapping[int, str] = {}
        self._texts: Mapping[int, str] = {}
        self._strips: tuple[Strip, ...] = ()
        self._images: list[tuple[np.ndarray, QImage]] = []
        self._runs: list[list[tuple[int, int, int]]] = []
        self._operations: deque[tuple[float, int]] = deque([(0.0, 0)], maxlen=256)
        self._zoom, self._offset = 1.0, QPointF()
        self._at: tuple[int, int] | None = None  # strip and cell that is described
        self._drag: QPointF | None = None
        self._stale = False
        self._room = 240
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Cell map of the KV cache")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(160)
        self.setFixedHeight(self._room)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self._on_timer)
        look.changed.connect(self._on_look_changed)

    @property
    def strips(self) -> tuple[Strip, ...]:
        return self._strips

    @property
    def zoom(self) -> float:
        return self._zoom

    def show_view(self, view: CacheView, colours: Mapping[int, int], titles: Mapping[int, str]) -> None:
        """Draw `view`; `colours` and `titles` are those of the conversations, by seq_id."""
        old = self._view.snapshot.operation if self._view else -1
        if view.snapshot.operation != old:
            self._operations.append((time.monotonic(), view.snapshot.operation))
        self._view, self._colours, self._titles = view, dict(colours), dict(titles)
        self._invalidate()

    def show_token_texts(self, texts: Mapping[int, str]) -> None:
        """The texts of token ids, by reference: the owner goes on adding to it."""
        self._texts = texts

    def set_room(self, height: int) -> None:
        """The most height the map may take; it takes what its cells need of it."""
        if height != self._room:
            self._room = height
            self._invalidate()

    def reset_zoom(self) -> None:
        self._zoom, self._offset = 1.0, QPointF()
        self.update()

    @Slot()
    def _on_timer(self) -> None:
        if self._stale and self.isVisible():
            self._stale = False
            self._make_images()
            self._describe()
            self.update()

    @Slot()
    def _on_look_changed(self) -> None:
        self._invalidate()

    def _invalidate(self) -> None:
        self._stale = True
        if not self._timer.isActive() and self.isVisible():
            self._timer.start()

    def _stream(self, strip: Strip) -> StreamMap | None:
        if self._view is None:
            return None
        return self._view.snapshot.maps[strip.map_index].streams[strip.stream_index]

    def _lay_out(self) -> None:
        maps = self._view.snapshot.maps if self._view else ()
        sizes = []
        for m, cache in enumerate(maps):
            for s, stream in enumerate(cache.streams):
                name = cache.name if len(maps) > 1 else ""
                where = f"stream {s}" if len(cache.streams) > 1 else ""
                sizes.append(StreamSize(m, s, ", ".join(part for part in (name, where) if part), stream.size))
        self._strips = lay_out(sizes, self.width(), self._room, self.devicePixelRatioF())
        self.setFixedHeight(max(total_height(self._strips), 64) if self._strips else self._room)

    def _make_images(self) -> None:
        self._lay_out()
        self._images.clear()
        self._runs.clear()
        if self._view is None:
            return
        fresh_after, fading_after = self._fresh_limits()
        table = tint_table(self._look.colours)
        snapshot = self._view.snapshot
        youngest = 0
        for strip in self._strips:
            stream = snapshot.maps[strip.map_index].streams[strip.stream_index]
            slots = raster.slot_table(self._colours, stream.seq_bits.shape[1] * 64)
            runs = raster.runs_of(stream)
            index = raster.index_image(stream, runs, slots, min(snapshot.n_kv, stream.size), fading_after, fresh_after)
            picture = raster.as_picture(index, strip.columns)
            image = QImage(picture.data, strip.columns, strip.rows, picture.shape[1], QImage.Format.Format_Indexed8)
            image.setColorTable(table)
            self._images.append((picture, image))  # the image reads the array's memory: both live together
            self._runs.append(raster.second_owner_runs(runs))
            youngest = max(youngest, int(stream.born[: stream.high_water].max(initial=0)))
        if youngest > fading_after:  # come back to let the just-written cells fade
            self._stale = True
            self._timer.start(120)
            self._timer.setInterval(REFRESH_MS)

    def _fresh_limits(self) -> tuple[int, int]:
        now = time.monotonic()
        fresh = fading = 0
        for at, operation in self._operations:
            if at <= now - _FRESH_S:
                fresh = operation
            if at <= now - _FADING_S:
                fading = operation
        return fresh, fading

    def _describe(self) -> None:
        if self._at is None or self._at[0] >= len(self._strips):
            self.described.emit("", "")
            return
        strip = self._strips[self._at[0]]
        stream = self._stream(strip)
        if stream is None or self._at[1] >= stream.size:
            self.described.emit("", "")
            return
        self.described.emit(*describe_cell(stream, self._at[1], strip.label, self._titles, self._texts))

    def _point_at(self, position: QPointF) -> None:
        x, y = (position.x() - self._offset.x()) / self._zoom, (position.y() - self._offset.y()) / self._zoom
        found = None
        for i, strip in enumerate(self._strips):
            cell = strip.cell_at(x, y)
            if cell is not None:
                found = (i, cell)
        if found != self._at:
            self._at = found
            self._describe()
            self.update()

    def _zoom_at(self, point: QPointF, factor: float) -> None:
        zoom = min(max(self._zoom * factor, 1.0), _MAX_ZOOM)
        self._offset = point - (point - self._offset) * (zoom / self._zoom)
        self._zoom = zoom
        self._clamp()
        self.update()

    def _clamp(self) -> None:
        width, height = self.width() * (1 - self._zoom), self.height() * (1 - self._zoom)
        self._offset = QPointF(min(0.0, max(self._offset.x(), width)), min(0.0, max(self._offset.y(), height)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._look.colours.panel))
        if not self._images:
            painter.setPen(QColor(self._look.colours.secondary))
            painter.setFont(self._look.small)
            text = "The cells of the cache appear here as soon as a model is open."
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap.value, text)
            return
        painter.translate(self._offset)
        painter.scale(self._zoom, self._zoom)
        for i, (strip, (_, image)) in enumerate(zip(self._strips, self._images, strict=False)):
            pixels = strip.cell * self._zoom * self.devicePixelRatioF()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, pixels < 1)
            painter.drawImage(QRectF(strip.x, strip.y, strip.width, strip.height), image)
            if strip.label:
                painter.setPen(QColor(self._look.colours.secondary))
                painter.setFont(self._look.small)
                painter.drawText(QPointF(strip.x, strip.y - 5), strip.label)
            self._draw_shared(painter, strip, self._runs[i], split=pixels >= 3)
            if pixels >= 4:
                self._draw_grid(painter, strip)
            self._draw_marks(painter, strip)
            if strip.cell * self._zoom >= _LABEL_CELL_PX:
                self._draw_texts(painter, strip)
        self._draw_cursor(painter)

    def _draw_shared(self, painter: QPainter, strip: Strip, runs: list[tuple[int, int, int]], split: bool) -> None:
        """The lower part of a shared cell has the colour of the second conversation that holds it.

        Cells too small to be split are dotted with it.
        """
        unknown = QColor(self._look.colours.secondary)
        cell, top = strip.cell, 0.55 if split else 0.0
        for first, length, seq in runs:
            colour = self._look.conversation_colour(self._colours[seq]) if seq in self._colours else unknown
            brush = QBrush(colour, Qt.BrushStyle.SolidPattern if split else Qt.BrushStyle.Dense5Pattern)
            for column, row, width, height in raster.row_boxes(first, length, strip.columns):
                for line in range(height) if split else range(1):
                    y, tall = (row + line + top) * cell, cell * (1 - top) if split else cell * height
                    painter.fillRect(QRectF(strip.x + column * cell, strip.y + y, width * cell, tall), brush)

    def _draw_grid(self, painter: QPainter, strip: Strip) -> None:
        pen = QPen(QColor(self._look.colours.panel), 0)
        if strip.cell * self._zoom >= 8:
            pen = QPen(QColor(self._look.colours.panel), 1 / self._zoom)
        painter.setPen(pen)
        cell = strip.cell
        columns, rows = self._visible(strip)
        x0, x1 = strip.x + columns.start * cell, strip.x + columns.stop * cell
        y0, y1 = strip.y + rows.start * cell, strip.y + rows.stop * cell
        points: list[QPointF] = []
        for column in range(columns.start, columns.stop + 1):
            points += (QPointF(strip.x + column * cell, y0), QPointF(strip.x + column * cell, y1))
        for row in range(rows.start, rows.stop + 1):
            points += (QPointF(x0, strip.y + row * cell), QPointF(x1, strip.y + row * cell))
        painter.drawLines(points)

    def _visible(self, strip: Strip) -> tuple[range, range]:
        """Columns and rows of a strip that can be seen at this zoom."""
        left, top = -self._offset.x() / self._zoom - strip.x, -self._offset.y() / self._zoom - strip.y
        right, bottom = left + self.width() / self._zoom, top + self.height() / self._zoom
        columns = range(max(0, int(left / strip.cell)), min(strip.columns, int(right / strip.cell) + 1))
        rows = range(max(0, int(top / strip.cell)), min(strip.rows, int(bottom / strip.cell) + 1))
        return columns, rows

    def _draw_marks(self, painter: QPainter, strip: Strip) -> None:
        """The n_kv boundary as a stepped line, the head as a frame around its cell."""
        stream = self._stream(strip)
        if stream is None or self._view is None:
            return
        ink = QColor(self._look.colours.text)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        end = self._view.snapshot.n_kv
        if 0 < end < strip.n_cells:
            pen = QPen(ink, 0)
            pen.setStyle(Qt.PenStyle.DashLine)
            painter.setPen(pen)
            x, y = strip.corner(end)
            step = [QPointF(x, y), QPointF(strip.x + strip.width, y)]
            if end % strip.columns:
                step = [QPointF(strip.x, y + strip.cell), QPointF(x, y + strip.cell), *step]
            painter.drawPolyline(QPolygonF(step))
        if 0 <= stream.head < strip.n_cells:
            x, y = strip.corner(stream.head)
            grow = 0.5 / self._zoom
            painter.setPen(QPen(ink, 1.5 / self._zoom))
            painter.drawRect(QRectF(x, y, strip.cell, strip.cell).adjusted(-grow, -grow, grow, grow))

    def _draw_texts(self, painter: QPainter, strip: Strip) -> None:
        """Token texts in cells that are large enough to read them. In widget coordinates, so that type stays sharp."""
        stream = self._stream(strip)
        if stream is None:
            return
        painter.save()
        painter.resetTransform()
        painter.setFont(self._look.mono_small)
        dark, light = QColor("#101216"), QColor("#ffffff")
        size = strip.cell * self._zoom
        columns, rows = self._visible(strip)
        for row in rows:
            for column in columns:
                cell = row * strip.columns + column
                if cell >= stream.high_water or not stream.seq_bits[cell].any():
                    continue
                x, y = strip.corner(cell)
                box = QRectF(x * self._zoom + self._offset.x(), y * self._zoom + self._offset.y(), size, size)
                text = self._texts.get(int(stream.token[cell]), "").strip() or "·"
                painter.setPen(dark if self._look.colours.dark else light)
                painter.drawText(box.adjusted(3, 3, -3, -3), Qt.AlignmentFlag.AlignCenter, text[:8])
        painter.restore()

    def _draw_cursor(self, painter: QPainter) -> None:
        if self._at is None or self._at[0] >= len(self._strips):
            return
        strip = self._strips[self._at[0]]
        if self._at[1] >= strip.n_cells:
            return
        x, y = strip.corner(self._at[1])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._look.colours.text), 2 / self._zoom))
        painter.drawRect(QRectF(x, y, strip.cell, strip.cell))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._clamp()
        self._invalidate()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._invalidate()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._offset += event.position() - self._drag
            self._drag = event.position()
            self._clamp()
            self.update()
        else:
            self._point_at(event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag = event.position()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self._drag = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self.reset_zoom()

    def leaveEvent(self, _event: object) -> None:
        if not self.hasFocus():
            self._point_at(QPointF(-1e9, -1e9))

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._zoom_at(event.position(), 1.0015 ** event.angleDelta().y())
        event.accept()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._at is None and event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._at = (0, 0)
            self._describe()
            self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        strip, cell = self._at or (0, 0)
        columns = self._strips[strip].columns if strip < len(self._strips) else 1
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -columns,
            Qt.Key.Key_Down: columns,
        }
        key = Qt.Key(event.key())
        if key in steps and strip < len(self._strips):
            cell = min(max(cell + steps[key], 0), self._strips[strip].n_cells - 1)
            self._at = (strip, cell)
            self._describe()
            self.update()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self._zoom_at(QPointF(self.rect().center()), 0.8 if key == Qt.Key.Key_Minus else 1.25)
        elif key == Qt.Key.Key_0:
            self.reset_zoom()
        else:
            super().keyPressEvent(event)
