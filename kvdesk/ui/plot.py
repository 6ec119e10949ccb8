"""Plots as kvdesk draws them: axes, inks and curves without pyqtgraph's own chrome."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPixmap, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsView, QHBoxLayout, QLabel

from kvdesk.ui import palette
from kvdesk.ui.controls import NumberLabel, label
from kvdesk.ui.series import Series, round_up
from kvdesk.ui.theme import Look

LEFT_PX: Final = 44
TICKS_PX: Final = 20
AS_PATHS: Final = {"useCache": False}
"""For symbols: drawn as paths, not copied from a picture. Sharp in an SVG, and fast enough for some hundreds."""
_LOW_PX: Final = 40  # a lower plot has room for two numbers beside it


@dataclass(frozen=True, slots=True)
class Curve:
    """A series as it is drawn. `ink` is (dark, light); style "dots": line and points; "points": no line."""

    name: str
    series: Series
    ink: tuple[str, str]
    style: Literal["line", "dots", "points"] = "line"


@dataclass(frozen=True, slots=True)
class RowSpec:
    """One graph: curves of one unit. `top`: a fixed end of the axis, None for as high as the values are."""

    unit: str
    curves: tuple[Curve, ...]
    top: float | None = None

    @property
    def title(self) -> str:
        return " and ".join(curve.name for curve in self.curves)


class Plot(pg.PlotWidget):  # type: ignore[misc]
    """A plot that leaves keys and the plain wheel to what it stands in.

    Signals: Ctrl and the wheel, Shift and the wheel or a sideways wheel, a drag. `x` in axis units.
    """

    painted = Signal(float)  # milliseconds it took
    zoomed = Signal(float, float)  # factor, around x
    panned = Signal(float)  # by a share of the width, later when positive
    hovered = Signal(object)  # x, None: outside

    def __init__(self, name: str, *, x_values: bool, movable: bool) -> None:
        self._picture: QPixmap | None = None
        super().__init__()
        self._movable = movable
        self._drag_x: float | None = None
        self._keeping = False
        self._scale: tuple[object, ...] = ()  # what the vertical axis shows
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)  # a cached background is pixels in an SVG
        self.setMenuEnabled(False)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        left, bottom = self.getAxis("left"), self.getAxis("bottom")
        left.setWidth(LEFT_PX)
        left.enableAutoSIPrefix(False)
        left.setStyle(tickLength=-4, tickTextOffset=4, hideOverlappingLabels=False)
        bottom.enableAutoSIPrefix(False)
        bottom.setStyle(showValues=x_values, tickLength=-4, tickTextOffset=4, hideOverlappingLabels=False)
        bottom.setHeight(TICKS_PX if x_values else 4)
        bottom.setTicks([[]])  # else pyqtgraph looks for some at every paint
        self.getViewBox().setDefaultPadding(0)

    def set_colours(self, look: Look) -> None:
        self.setBackground(look.colours.panel)
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setPen(pg.mkPen(look.colours.line))
            axis.setTextPen(pg.mkPen(look.colours.secondary))
            axis.setTickFont(look.mono_small)

    def set_top(self, highest: float, *, known: bool, top: float | None = None) -> float:
        """The vertical axis goes from 0 to an even number; its ticks are empty while nothing is known."""
        top = round_up(highest) if top is None else top
        height = max(self.inside.height(), 16.0)
        if (top, height, known) == self._scale:
            return top  # pyqtgraph would draw the axis anew
        self._scale = top, height, known
        self.setYRange(0, top * (1 + max(0.12, 8 / (height - 8))), padding=0)  # half a number fits above its line
        shares = (0.0, 0.5, 1.0) if height >= _LOW_PX else (0.0, 1.0)
        ticks = [(top * share, f"{top * share:,.0f}") for share in shares] if known else []
        self.getAxis("left").setTicks([ticks])
        return top

    @property
    def inside(self) -> QRectF:
        """Where the curves are, in pixels of the widget."""
        return QRectF(self.getPlotItem().getViewBox().sceneBoundingRect())

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture is not None:
            with QPainter(self.viewport()) as painter:
                painter.fillRect(event.rect(), self.backgroundBrush())
                painter.drawPixmap(0, 0, self._picture)
            return
        begun = time.perf_counter()
        super().paintEvent(event)
        if not self._keeping:
            self.painted.emit((time.perf_counter() - begun) * 1e3)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._picture is not None:
            QTimer.singleShot(0, self, self.keep_picture)  # until then the old one is shown

    def keep_picture(self) -> None:
        """Draw now, and show just that until `drop_picture`: a plot that is moved or uncovered is not drawn again."""
        self._picture, self._keeping = None, True
        picture = self.viewport().grab()
        self._picture, self._keeping = picture, False

    def drop_picture(self) -> None:
        """Draw again what is shown."""
        if self._picture is not None:
            self._picture = None
            self.viewport().update()

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


class Captions(QHBoxLayout):
    """Name and value of every curve in its own ink, and the unit, in one line over a graph."""

    def __init__(self, look: Look, spec: RowSpec) -> None:
        super().__init__()
        self._look, self._spec = look, spec
        self.setSpacing(8)
        self.setContentsMargins(0, 4, 0, 0)
        self._values: list[QLabel] = []
        for n, curve in enumerate(spec.curves):
            self.addSpacing(8 if n else 0)
            self.addWidget(label(curve.name, tone="secondary", scale="small"))
            value = NumberLabel("–", widest="8,888")
            value.setFont(look.mono_small)
            self._values.append(value)
            self.addWidget(value)
        self.addStretch(1)
        self.addWidget(label(spec.unit, tone="secondary", scale="small"))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(value.text() for value in self._values)

    def set_colours(self) -> None:
        for curve, value in zip(self._spec.curves, self._values, strict=True):
            value.setStyleSheet(f"color: {text_ink(self._look, curve.ink)}")

    def show_values(self, numbers: list[float | None]) -> None:
        for curve, value, number in zip(self._spec.curves, self._values, numbers, strict=True):
            text = written(number, self._spec.unit)
            if value.text() != text:
                value.setText(text)
                value.setAccessibleName(f"{curve.name} {text} {self._spec.unit}")


def ink_of(look: Look, ink: tuple[str, str]) -> str:
    return ink[0] if look.colours.dark else ink[1]


def text_ink(look: Look, ink: tuple[str, str]) -> str:
    """The curve's colour, mixed with text until it can be read."""
    colours = look.colours
    mixed = ink_of(look, ink)
    while palette.contrast(mixed, colours.panel) < 4.5:
        mixed = palette.mix(mixed, colours.text, 0.15)
    return mixed


def written(number: float | None, unit: str) -> str:
    """Cells are whole; other values have three digits as long as they are small."""
    if number is None:
        return "–"
    if unit == "cells" or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"
