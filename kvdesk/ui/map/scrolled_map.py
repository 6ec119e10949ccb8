"""A part of the cell map: scrolled, zoomed and dragged."""

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from kvdesk.translation import tr
from kvdesk.ui.map.layout import Strip, total_height
from kvdesk.ui.map.viewport import Viewport

_WHEEL_STEP: Final = 60  # eighths of a degree


class ScrolledMap(QWidget):
    """Shows `strips` through its viewport. A scroll bar appears if they are higher than the widget."""

    def __init__(self) -> None:
        super().__init__()
        self.strips: tuple[Strip, ...] = ()
        self._viewport = Viewport(self.width(), self.height())
        self._wheel = 0
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName(tr("Scroll the cell map"))
        self._bar.hide()
        self._bar.valueChanged.connect(self._on_scrolled)

    @property
    def zoom(self) -> float:
        return self._viewport.zoom

    def zoom_at(self, point: QPointF, factor: float) -> None:
        """Zoom, the point staying where it is."""
        if self.strips:
            self._look(self._viewport.zoomed(point, factor, self.strips[0].cell))

    def move_by(self, by: QPointF) -> None:
        """Move what is seen by `by` pixels."""
        self._look(self._viewport.moved(by))

    def reset_zoom(self) -> None:
        self._look(self._fitted(Viewport(self.width(), self.height())))

    def _fitted(self, viewport: Viewport) -> Viewport:
        return viewport.resized(self.width(), self.height(), self.devicePixelRatioF(), total_height(self.strips))

    def _look(self, viewport: Viewport) -> None:
        """Show another part of the map; the scroll bar follows."""
        if viewport == self._viewport:
            return
        self._viewport = viewport
        hidden = round(viewport.hidden_height)
        with QSignalBlocker(self._bar):
            self._bar.setPageStep(self.height())
            self._bar.setSingleStep(24)
            self._bar.setRange(0, hidden)
            self._bar.setValue(round(-viewport.offset.y()))
        self._bar.setVisible(hidden > 0)
        self.update()

    def _on_scrolled(self, value: int) -> None:
        self.move_by(QPointF(0, -value - self._viewport.offset.y()))

    def _cell_under(self, position: QPointF) -> tuple[int, int] | None:
        point = self._viewport.to_map(position)
        for i, strip in enumerate(self.strips):
            cell = strip.cell_at(point.x(), point.y())
            if cell is not None and position.x() >= strip.x:  # left of it are the numbers of rows
                return i, cell
        return None

    def _bring_into_view(self, number: int, cell: int) -> None:
        strip = self.strips[number]
        self._look(self._viewport.showing(QRectF(*strip.corner(cell), strip.cell, strip.cell), strip.x))

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._wheel += turned
            if abs(self._wheel) >= _WHEEL_STEP:
                self.zoom_at(event.position(), 1.0019**self._wheel)
                self._wheel = 0
            event.accept()
            return
        before = self._viewport.offset
        self.move_by(QPointF(event.pixelDelta()) if not event.pixelDelta().isNull() else QPointF(0, turned / 2))
        event.setAccepted(self._viewport.offset != before)  # at its end what is around the map scrolls

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._bar.setGeometry(
            self.width() - self._bar.sizeHint().width(), 0, self._bar.sizeHint().width(), self.height()
        )
        self._look(self._fitted(self._viewport))
