"""The cell map: every cell of every stream as a square. A frame is made when something changed, then only drawn.

Wheel zooms, dragging pans, double click and 0 show everything again; arrow keys move a cell cursor, so that what the
mouse reads the keyboard reads too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPointF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kvdesk.messages import CacheView
from kvdesk.ui.map_frame import MapFrame, Viewport, make_frame, strips_of
from kvdesk.ui.map_layout import Strip, total_height
from kvdesk.ui.map_painter import MapPainter
from kvdesk.ui.map_tints import tint_table
from kvdesk.ui.readout import describe_cell
from kvdesk.ui.theme import Look

REFRESH_MS: Final = 50
_FADE_STEP_MS: Final = 120
_FRESH_S: Final = 0.35
_FADING_S: Final = 0.8
_MAX_ZOOM: Final = 64.0


class CellMapView(QWidget):
    """Draws a `CacheView`."""

    described = Signal(str, str)  # two lines about the cell under the mouse or the cursor; empty when there is none

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._painter = MapPainter(look)
        self._view: CacheView | None = None
        self._frame: MapFrame | None = None
        self._colours: Mapping[int, int] = {}
        self._titles: Mapping[int, str] = {}
        self._texts: Mapping[int, str] = {}
        self._operations: deque[tuple[float, int]] = deque([(0.0, 0)], maxlen=256)
        self._viewport = Viewport(self.width(), self.height())
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
        self._timer.timeout.connect(self._on_timer)
        look.changed.connect(self._on_look_changed)

    @property
    def strips(self) -> tuple[Strip, ...]:
        return tuple(part.strip for part in self._frame.strips) if self._frame else ()

    @property
    def zoom(self) -> float:
        return self._viewport.zoom

    def show_view(self, view: CacheView, colours: Mapping[int, int], titles: Mapping[int, str]) -> None:
        """Draw `view`; `colours` and `titles` are those of the conversations, by seq_id."""
        if self._view is None or view.snapshot.operation != self._view.snapshot.operation:
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

    def zoom_at(self, point: QPointF, factor: float) -> None:
        """Zoom, the point staying where it is."""
        self._viewport = self._viewport.zoomed(point, factor, _MAX_ZOOM)
        self.update()

    def reset_zoom(self) -> None:
        self._viewport = Viewport(self.width(), self.height(), self.devicePixelRatioF())
        self.update()

    @Slot()
    def _on_timer(self) -> None:
        if self._stale and self.isVisible():
            self._stale = False
            self._make_frame()
            self._describe()
            self.update()

    @Slot()
    def _on_look_changed(self) -> None:
        self._invalidate()

    def _invalidate(self) -> None:
        self._stale = True
        if not self._timer.isActive() and self.isVisible():
            self._timer.start(REFRESH_MS)

    def _make_frame(self) -> None:
        if self._view is None:
            return
        limits = self._limits()
        strips = strips_of(self._view, self.width(), self._room, self.devicePixelRatioF())
        tints = tint_table(self._look.colours)
        self._frame = make_frame(self._view, strips, tints, self._colours, self._titles, limits)
        self.setFixedHeight(max(total_height(strips), 64) if strips else self._room)
        if self._frame.youngest > limits[0]:  # come back to let the just-written cells fade
            self._stale = True
            self._timer.start(_FADE_STEP_MS)

    def _limits(self) -> tuple[int, int]:
        """Operations after which a cell is fading, and fresh."""
        now = time.monotonic()
        fading = fresh = 0
        for at, operation in self._operations:
            if at <= now - _FADING_S:
                fading = operation
            if at <= now - _FRESH_S:
                fresh = operation
        return fading, fresh

    def _describe(self) -> None:
        lines = ("", "")
        if self._frame is not None and self._at is not None and self._at[0] < len(self._frame.strips):
            part = self._frame.strips[self._at[0]]
            if self._at[1] < part.strip.n_cells:
                lines = describe_cell(part.stream, self._at[1], part.strip.label, self._frame.titles, self._texts)
        self.described.emit(*lines)

    def _set_at(self, at: tuple[int, int] | None) -> None:
        if at != self._at:
            self._at = at
            self._describe()
            self.update()

    def _cell_under(self, position: QPointF) -> tuple[int, int] | None:
        point = self._viewport.to_map(position)
        for i, strip in enumerate(self.strips):
            cell = strip.cell_at(point.x(), point.y())
            if cell is not None:
                return i, cell
        return None

    def _step(self, columns: int, rows: int) -> None:
        """Move the cursor; at the end of a strip it goes on in the next."""
        strips = self.strips
        number, cell = self._at or (0, 0)
        if number >= len(strips):
            return
        cell += columns + rows * strips[number].columns
        if cell >= strips[number].n_cells and number + 1 < len(strips):
            number, cell = number + 1, 0
        elif cell < 0 and number > 0:
            number, cell = number - 1, strips[number - 1].n_cells - 1
        self._set_at((number, min(max(cell, 0), strips[number].n_cells - 1)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._look.colours.panel))
        if self._frame is not None and self._frame.strips:
            self._painter.paint(painter, self._frame, self._viewport, self._texts, self._at)
            return
        painter.setPen(QColor(self._look.colours.secondary))
        painter.setFont(self._look.small)
        if self._view is None:
            text = "The cells of the cache appear here as soon as a model is open."
        else:
            text = "This model keeps no attention cache: there are no cells."
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap.value, text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._viewport = self._viewport.resized(self.width(), self.height(), self.devicePixelRatioF())
        self._invalidate()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._invalidate()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._viewport = self._viewport.moved(event.position() - self._drag)
            self._drag = event.position()
            self.update()
        else:
            self._set_at(self._cell_under(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag = event.position()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self._drag = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self.reset_zoom()

    def leaveEvent(self, _event: object) -> None:
        self._set_at(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoom_at(event.position(), 1.0015 ** event.angleDelta().y())
        event.accept()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._step(0, 0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._set_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        steps = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        centre = QPointF(self.rect().center())
        if key in steps:
            self._step(*steps[Qt.Key(key)])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_at(centre, 1.25)
        elif key == Qt.Key.Key_Minus:
            self.zoom_at(centre, 0.8)
        elif key == Qt.Key.Key_0:
            self.reset_zoom()
        else:
            super().keyPressEvent(event)
