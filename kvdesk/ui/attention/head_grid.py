"""Heads and layers: a small picture of each head, a row of them for each layer, as one image."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.head_pictures import Heads, Tiles, picture
from kvdesk.viewmodel.palette import ramp_colour

N_STEPS: Final = 48
_OPAQUE: Final = 0xFF000000
_NUMBERS_PX: Final = 26  # of the layers, left of the pictures
_TOP_PX: Final = 16  # numbers of the heads
_LEAST_PX: Final = 3  # of a picture
_HIGHEST_PX: Final = 18
_STEPS: Final = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}


class HeadGrid(QWidget):
    """The arrow keys go from head to head, Home and End to the ends of a layer; Enter or Space chooses one."""

    chosen = Signal(int, int)
    """Layer and head that a person chose."""
    described = Signal(str)
    """The head under the pointer or the cursor, in a sentence; "" for none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._heads: Heads | None = None
        self.tiles = Tiles(0, 0, _LEAST_PX, _LEAST_PX)
        self._image: QImage | None = None  # made when it is next painted
        self._at: tuple[int, int] | None = None  # row and head under the pointer or the cursor
        self._choice: tuple[int, int] | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Heads and layers"))
        theme.changed.connect(self._fit)

    @property
    def at(self) -> tuple[int, int] | None:
        """Layer and head of the picture that is looked at."""
        return self._named(self._at)

    @property
    def cursor_box(self) -> QRect | None:
        """Where that picture is; None if none is looked at."""
        return self.box_of(*self._at) if self._at is not None else None

    def show_heads(self, heads: Heads | None) -> None:
        """Draw these; None: none are known."""
        self._heads = heads
        if heads is None or (self._at is not None and not self._has(*self._at)):
            self._at = None
        self._fit()
        self._describe()

    def show_choice(self, layer: int | None, head: int | None) -> None:
        """The head that the rest of the page is about; None: all."""
        heads = self._heads
        is_one = heads is not None and layer in heads.layers and head is not None
        self._choice = (heads.layers.index(layer), head) if heads and is_one and head is not None else None
        self.update()

    def box_of(self, row: int, head: int) -> QRect:
        """Where a picture is drawn."""
        left, top, width, height = self.tiles.box(row, head)
        return QRect(self._left + left, self._top + top, width, height)

    # --- events -------------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._heads is None:
            return
        painter = QPainter(self)
        if self._image is None:
            self._image = self._make_image(self._heads)
        painter.drawImage(QPoint(self._left, self._top), self._image)
        self._draw_numbers(painter, self._heads)
        for at, width in ((self._choice, 2), (self._at, 1)):
            if at is not None:
                painter.setPen(QPen(QColor(self._theme.colours.text), width))
                painter.drawRect(self.box_of(*at).adjusted(-1, -1, 0, 0))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = self._under(event.pos())
            if at is not None:
                QToolTip.showText(event.globalPos(), plain_tip(self._words(at)), self, self.box_of(*at))
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._look_at(self._under(event.position().toPoint()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._under(event.position().toPoint())
        if at is not None and event.button() is Qt.MouseButton.LeftButton:
            self._look_at(at)
            self._choose()

    def leaveEvent(self, _event: QEvent) -> None:
        if not self.hasFocus():
            self._look_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, at = Qt.Key(event.key()), self._at or (0, 0)
        n_heads = self._heads.n_heads if self._heads is not None else 0
        if key in _STEPS:
            down, across = _STEPS[key]
            at = at[0] + down, at[1] + across
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            at = at[0], 0 if key == Qt.Key.Key_Home else n_heads - 1
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._at is not None:
            self._choose()
            return
        else:
            super().keyPressEvent(event)
            return
        if self._has(*at):
            self._look_at(at)
            announce(self, self.accessibleDescription())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._at is None and self._has(0, 0) and event.reason() != Qt.FocusReason.MouseFocusReason:
            self._look_at(self._choice or (0, 0))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._look_at(None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _left(self) -> int:
        return self._theme.px(_NUMBERS_PX)

    @property
    def _top(self) -> int:
        return self._theme.px(_TOP_PX)

    def _has(self, row: int, head: int) -> bool:
        heads = self._heads
        return heads is not None and 0 <= row < len(heads.layers) and 0 <= head < heads.n_heads

    def _named(self, at: tuple[int, int] | None) -> tuple[int, int] | None:
        return (self._heads.layers[at[0]], at[1]) if at is not None and self._heads is not None else None

    def _under(self, point: QPoint) -> tuple[int, int] | None:
        return self.tiles.at(point.x() - self._left, point.y() - self._top) if self._heads is not None else None

    def _look_at(self, at: tuple[int, int] | None) -> None:
        if at != self._at:
            self._at = at
            self._describe()
            self.update()

    def _describe(self) -> None:
        words = self._words(self._at) if self._at is not None else ""
        self.setAccessibleDescription(words)
        self.described.emit(words)

    def _words(self, at: tuple[int, int]) -> str:
        return self._heads.words(*at) if self._heads is not None else ""

    def _choose(self) -> None:
        if (named := self.at) is not None:
            self.chosen.emit(*named)

    def _fit(self) -> None:
        """Pictures as wide as there is room, and as high as all of them are wide together, within bounds."""
        heads = self._heads
        rows, columns = (len(heads.layers), heads.n_heads) if heads is not None else (0, 0)
        room = max(self.width() - self._left, 1)
        width = max(room // max(columns, 1) - 1, _LEAST_PX)
        height = min(max(round(0.7 * width), _LEAST_PX + 3), self._theme.px(_HIGHEST_PX))
        self.tiles = Tiles(columns, rows, width, height)
        self._image = None
        self.setFixedHeight(self._top + self.tiles.size[1] if rows else 0)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._left + self.tiles.columns * (_LEAST_PX + 1), self.minimumHeight())

    def _make_image(self, heads: Heads) -> QImage:
        codes = picture(heads, self.tiles, N_STEPS)
        argb = _table(self._theme.colours).take(codes)
        height, width = argb.shape
        return QImage(argb.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()

    def _draw_numbers(self, painter: QPainter, heads: Heads) -> None:
        """Of layers and heads, as many as have room."""
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(self._theme.colours.secondary))
        metrics = painter.fontMetrics()
        tiles = self.tiles
        down = -(-metrics.height() // (tiles.height + tiles.gap))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for row in range(0, tiles.rows, down):
            box = self.box_of(row, 0)
            centre = box.center().y()
            place = QRect(0, centre - metrics.height() // 2, self._left - 5, metrics.height())
            painter.drawText(place, right, str(heads.layers[row]))
        across = -(-metrics.horizontalAdvance("000") // (tiles.width + tiles.gap))
        for head in range(0, tiles.columns, across):
            centre = self.box_of(0, head).center().x()
            place = QRect(centre - 20, 0, 40, self._top - 2)
            painter.drawText(place, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, str(head))


@lru_cache(maxsize=4)
def _table(colours: Colours) -> NDArray[np.uint32]:
    """The colour of each step, and of what is between the pictures."""
    steps = [ramp_colour(i / (N_STEPS - 1), colours.dark) for i in range(N_STEPS)]
    return np.array([_OPAQUE | int(colour[1:], 16) for colour in (*steps, colours.panel)], np.uint32)
