"""The tree of blocks as rows of squares: a chain of blocks is a row, and each fork a line down to another row."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from kvdesk.blocks.tree import EMPTY, BlockMap
from kvdesk.translation import tr
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.block_readout import BlockColour, describe, shades

SIDE_PX: Final = 11
"""From one block to the next, in both directions."""
_MARGIN: Final = 4


class BlockMapWidget(QWidget):
    """As large as the tree, to be scrolled; paints only what is in sight. The arrow keys go from block to block; each
    is described as under the pointer.
    """

    reached = Signal(QRect)
    """A key has chosen a block: where it is drawn."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._map, self._by = EMPTY, BlockColour.AGE
        self.chosen = -1
        """The number of the block that is chosen; -1: none."""
        self._shades: NDArray[np.float64] = np.zeros(0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Map of the blocks"))
        theme.follow(self._fit)

    def show_map(self, blocks: BlockMap, by: BlockColour) -> None:
        """Draw these. The chosen block stays chosen while it is there."""
        key = self._map.blocks[self.chosen].key if self.chosen >= 0 else None
        self._map, self._by = blocks, by
        self._shades = shades(blocks, by)
        self._choose(next((i for i, block in enumerate(blocks.blocks) if block.key == key), -1) if key else -1)
        self._fit()

    def sizeHint(self) -> QSize:
        deepest = int(self._map.depth.max(initial=-1)) + 1
        side = self._side
        return QSize(2 * _MARGIN + deepest * side, 2 * _MARGIN + self._map.n_rows * side)

    def rect_of(self, index: int) -> QRect:
        """Where a block is drawn."""
        side = self._side
        x, y = int(self._map.depth[index]), int(self._map.row[index])
        return QRect(_MARGIN + x * side, _MARGIN + y * side, side - 1, side - 1)

    def block_at(self, point: QPoint) -> int:
        """The number of the block under a point; -1: none."""
        depth, row = ((value - _MARGIN) // self._side for value in (point.x(), point.y()))
        first, last = np.searchsorted(self._map.row, (row, row + 1))
        found = np.flatnonzero(self._map.depth[first:last] == depth)
        return int(first + found[0]) if len(found) else -1

    # --- events -------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        if not len(self._map.blocks):
            return
        painter = QPainter(self)
        top, bottom = ((y - _MARGIN) // self._side for y in (event.rect().top(), event.rect().bottom()))
        self._draw_forks(painter, top, bottom)
        first, last = np.searchsorted(self._map.row, (top, bottom + 1))
        colours = [QColor(colour) for colour in self._scale()]
        steps = self._steps(len(colours))
        for i in range(int(first), int(last)):
            painter.fillRect(self.rect_of(i), colours[steps[i]])
        if self.chosen >= 0:
            pen = QPen(QColor(self._theme.colours.text), 2 if self.hasFocus() else 1)
            painter.setPen(pen)
            painter.drawRect(self.rect_of(self.chosen).adjusted(-1, -1, 0, 0))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self.block_at(event.pos())
            if index >= 0:
                QToolTip.showText(event.globalPos(), plain_tip(describe(self._map, index)), self, self.rect_of(index))
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._choose(self.block_at(event.position().toPoint()))
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        n, at = len(self._map.blocks), self.chosen
        steps = {Qt.Key.Key_Right: at + 1, Qt.Key.Key_Left: at - 1, Qt.Key.Key_Home: 0, Qt.Key.Key_End: n - 1}
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and n:
            row = int(self._map.row[max(at, 0)]) + (1 if key == Qt.Key.Key_Down else -1)
            to = int(np.searchsorted(self._map.row, row)) if 0 <= row < self._map.n_rows else at
        elif key in steps and n:
            to = min(max(steps[key], 0), n - 1)
        else:
            super().keyPressEvent(event)
            return
        self._choose(to)
        self._tell()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self.chosen < 0 and len(self._map.blocks) and event.reason() != Qt.FocusReason.MouseFocusReason:
            self._choose(0)
            self._tell()
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _side(self) -> int:
        return self._theme.px(SIDE_PX)

    def _scale(self) -> list[str]:
        """The colours that blocks can have."""
        dark = self._theme.colours.dark
        match self._by:
            case BlockColour.TIER:
                return [palette.conversation_colour(i, dark) for i in range(palette.N_COLOURS)]
            case BlockColour.AGE:
                return [palette.ramp_colour(i / 20, dark) for i in range(21)]
            case BlockColour.SHARED | BlockColour.USED:
                rest = [palette.ramp_colour(0.3 + 0.7 * i / 19, dark) for i in range(20)]
                return [self._theme.colours.cell_span, *rest]

    def _steps(self, n: int) -> NDArray[np.int64]:
        """Each block's place among `n` colours."""
        if self._by is BlockColour.TIER:
            return self._shades.astype(np.int64) % n
        return np.ceil(self._shades * (n - 1)).astype(np.int64)

    def _draw_forks(self, painter: QPainter, top: int, bottom: int) -> None:
        """Lines from a block to its children in rows below, as far as they cross what is painted."""
        shown, side = self._map, self._side
        rows, parents = shown.row, shown.parent
        above = np.where(parents >= 0, rows[np.maximum(parents, 0)], rows)
        lines = np.flatnonzero((above < rows) & (rows >= top) & (above <= bottom))
        painter.setPen(QColor(self._theme.colours.secondary))
        half = side // 2
        for i in lines.tolist():
            parent, child = self.rect_of(int(parents[i])), self.rect_of(i)
            x = parent.left() + half
            painter.drawLine(x, parent.bottom() + 1, x, child.top() + half)
            painter.drawLine(x, child.top() + half, child.left() - 1, child.top() + half)

    def _choose(self, index: int) -> None:
        self.chosen = index
        words = describe(self._map, index) if index >= 0 else ""
        if words != self.accessibleDescription():
            self.setAccessibleDescription(words)

    def _tell(self) -> None:
        """A key has chosen it."""
        self.update()
        if self.chosen < 0:
            return
        place, words = self.rect_of(self.chosen), self.accessibleDescription()
        self.reached.emit(place)
        announce(self, words)
        QToolTip.showText(self.mapToGlobal(place.bottomLeft()), plain_tip(words), self, place)

    def _fit(self) -> None:
        self.setMinimumSize(self.sizeHint())
        self.resize(self.sizeHint())
        self.update()
