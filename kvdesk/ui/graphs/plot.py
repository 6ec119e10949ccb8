"""Plots as kvdesk draws them: axes, inks and curves without pyqtgraph's own chrome."""

import time
from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsView

from kvdesk.ui.graphs.graph import LEFT_PX, TICKS_PX, Scale
from kvdesk.ui.widgets.style.theme import Theme

AS_PATHS: Final = {"useCache": False}
"""For symbols: drawn as paths, not copied from a picture. Sharp in an SVG, and fast enough for some hundreds."""


class Plot(pg.PlotWidget):  # type: ignore[misc]
    """A plot that leaves keys and the plain wheel to its parent.

    Signals: Ctrl and the wheel, Shift and the wheel or a sideways wheel, a drag. `x` in axis units.
    """

    painted = Signal(float)  # milliseconds it took
    zoomed = Signal(float, float)  # factor, around x
    panned = Signal(float)  # by a share of the width, later when positive
    hovered = Signal(object)  # x, None: outside

    def __init__(
        self, theme: Theme, name: str, least_px: int, left_px: int = LEFT_PX, below_px: int = TICKS_PX, *, movable: bool
    ) -> None:
        """Pixels of a window without zoom: its least height, and the room for the numbers of its axes."""
        super().__init__()
        self._least_px, self._left_px, self._below_px = least_px, left_px, below_px
        self._theme, self._movable = theme, movable
        self._drag_x: float | None = None
        self._scale: tuple[object, ...] = ()  # what the vertical axis shows
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)  # a cached background is pixels in an SVG
        self.setMenuEnabled(False)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        left, bottom = self.getAxis("left"), self.getAxis("bottom")
        left.enableAutoSIPrefix(False)
        left.setStyle(tickLength=-4, tickTextOffset=4, hideOverlappingLabels=False)
        bottom.enableAutoSIPrefix(False)
        bottom.setStyle(tickLength=-4, tickTextOffset=4, hideOverlappingLabels=False)
        left.setTicks([[]])  # until the scale is known
        bottom.setTicks([[]])  # else pyqtgraph looks for some at every paint
        self.getViewBox().setDefaultPadding(0)

    def show_look(self) -> None:
        """Its colours and sizes are those of the theme."""
        theme = self._theme
        self.setMinimumHeight(theme.px(self._least_px + self._below_px))
        self.getAxis("left").setWidth(theme.px(self._left_px))
        self.getAxis("bottom").setHeight(theme.px(self._below_px))
        self.setBackground(theme.colours.panel)
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setPen(pg.mkPen(theme.colours.line))
            axis.setTextPen(pg.mkPen(theme.colours.secondary))
            axis.setTickFont(theme.mono_small)

    def set_top(self, highest: float, *, known: bool, top: float | None = None) -> float:
        """The vertical axis goes from 0 to an even number; its ticks are empty while nothing is known."""
        scale = Scale.of(highest, self.inside.height() / self._theme.scale, top)
        if (scale, known) != self._scale:  # pyqtgraph would draw the axis again
            self._scale = scale, known
            self.setYRange(0, scale.end, padding=0)
            self.getAxis("left").setTicks([list(scale.ticks) if known else []])
        return scale.top

    @property
    def inside(self) -> QRectF:
        """Where the curves are, in pixels of the widget."""
        return QRectF(self.getPlotItem().getViewBox().sceneBoundingRect())

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        begun = time.perf_counter()
        super().paintEvent(event)
        self.painted.emit((time.perf_counter() - begun) * 1e3)

    def wheelEvent(self, event: QWheelEvent) -> None:
        turn, modifiers = event.angleDelta(), event.modifiers()
        sideways = turn.x() or (turn.y() if modifiers & Qt.KeyboardModifier.ShiftModifier else 0)
        if self._movable and modifiers & Qt.KeyboardModifier.ControlModifier and turn.y():
            self.zoomed.emit(0.999 ** turn.y(), self._x_at(event.position().x()))
        elif self._movable and sideways:
            self.panned.emit(-sideways / 1200)
        else:
            event.ignore()
            return
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._movable and event.button() == Qt.MouseButton.LeftButton:
            self._drag_x = event.position().x()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self._drag_x = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if self._drag_x is not None and abs(x - self._drag_x) >= 2:
            self.panned.emit((self._drag_x - x) / max(self.inside.width(), 1.0))
            self._drag_x = x
        self.hovered.emit(self._x_at(x) if self.inside.contains(event.position()) else None)

    def leaveEvent(self, event: Any) -> None:
        super().leaveEvent(event)
        self.hovered.emit(None)

    def _x_at(self, pixels: float) -> float:
        return float(self.getPlotItem().getViewBox().mapSceneToView(self.mapToScene(round(pixels), 0)).x())
