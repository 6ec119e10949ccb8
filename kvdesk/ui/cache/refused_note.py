"""A batch that llama.cpp refused, explained under the ruler of its sequence: Y = X + 1, with both numbers."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from kvdesk.protocol.operations import BatchRefused
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.ruler_row import runs

_LINE_PX: Final = 18
_LEAST_SPAN: Final = 16


class RefusedScale(QWidget):
    """The ruler, magnified around X (the last position), X + 1 (the next legal one) and Y (where the batch began)."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._x, self._y = -1, -1
        self._ink = QColor()
        self._positions: NDArray[np.int32] = np.zeros(0, np.int32)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_positions(self, x: int, y: int, positions: NDArray[np.int32], ink: QColor) -> None:
        self._x, self._y, self._positions, self._ink = x, y, positions, ink
        self.setAccessibleName(
            tr("X {x}, next valid position {next}, Y {y}").format(x=f"{x:,}", next=f"{x + 1:,}", y=f"{y:,}")
        )
        self.update()

    @property
    def span(self) -> tuple[float, float]:
        """First and last position shown: X + 1 is a third from the side that Y is not on."""
        after = self._y > self._x
        width = max(_LEAST_SPAN, 1.7 * abs(self._y - self._x))
        begin = self._x + 1 - width * (0.36 if after else 0.64)
        return begin, begin + width

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * _LINE_PX + 14)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self._theme.colours
        begin, end = self.span
        scale = self.width() / (end - begin)
        top, bar = float(_LINE_PX), 8.0

        def at(position: float) -> float:
            return (position - begin) * scale

        painter.setPen(Qt.PenStyle.NoPen)
        start = max(at(0), 0.0)
        painter.fillRect(QRectF(start, top + 3, self.width() - start, bar), QColor(colours.cell_span))
        gap = 1.0 if scale >= 5 else 0.0  # one box per position if there is room
        for first, stop in runs(self._positions):
            low, high = max(first, int(begin) - 1), min(stop, int(end) + 1)
            if gap:
                for position in range(low, high):
                    painter.fillRect(QRectF(at(position), top + 3, scale - gap, bar), self._ink)
            elif high > low:
                painter.fillRect(QRectF(at(low), top + 3, (high - low) * scale, bar), self._ink)
        next_x, y = at(self._x + 1), at(self._y + 0.5)
        text, danger = QColor(colours.text), QColor(colours.danger)
        painter.fillRect(QRectF(next_x - 1, top - 1, 2, bar + 8), text)
        painter.setBrush(danger)
        below = top + bar + 4
        painter.drawPolygon(QPolygonF([QPointF(y, below), QPointF(y - 5, below + 8), QPointF(y + 5, below + 8)]))
        painter.setFont(self._theme.mono_small)
        metrics = QFontMetricsF(self._theme.mono_small)
        painter.setPen(text)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if self._x >= 0:
            painter.drawText(QRectF(0, 0, next_x - 6, _LINE_PX), right, f"X = {self._x:,}")
        painter.drawText(
            QRectF(next_x + 6, 0, self.width(), _LINE_PX), Qt.AlignmentFlag.AlignVCenter, f"X + 1 = {self._x + 1:,}"
        )
        painter.setPen(danger)
        words = f"Y = {self._y:,}"
        width = metrics.horizontalAdvance(words) + 2
        left = y + 10 if y + 10 + width <= self.width() else y - 10 - width
        painter.drawText(QRectF(left, below - 4, width, _LINE_PX), Qt.AlignmentFlag.AlignVCenter, words)


class RefusedNote(QFrame):
    """Sentence, magnified ruler, and a button that takes both away."""

    dismissed = Signal(int)
    """The seq_id whose note was taken away by hand."""

    def __init__(self, theme: Theme, event: BatchRefused) -> None:
        super().__init__()
        self._theme = theme
        self.event_shown = event
        self.setProperty("card", "banner")
        self._sentence = label(_kept_together(event.sentence), scale="small", wrap=True, selectable=True)
        self._sentence.setAccessibleName(tr("Refused batch: {sentence}").format(sentence=event.sentence))
        self.scale = RefusedScale(theme)
        self.close_button = IconButton(
            theme, "close", tr("Dismiss this refused batch"), clicked=lambda: self.dismissed.emit(event.seq_id)
        )
        top = boxes.row((self._sentence, 1), (self.close_button, 0, Qt.AlignmentFlag.AlignTop), spacing=8)
        boxes.column(top, self.scale, on=self, margins=(12, 8, 4, 4), spacing=0)
        self.seen: tuple[int, int, int] | None = None  # the sequence as it was refused

    def still_holds(self, pos_min: int, pos_max: int, n_cells: int) -> bool:
        """Whether the sequence is as it was. A view from before the refusal, still under way, does not end it."""
        now = (pos_min, pos_max, n_cells)
        if self.seen is None and pos_max == self.event_shown.x:
            self.seen = now
        return self.seen is None or self.seen == now


def _kept_together(sentence: str) -> str:
    """Lines do not break inside "Y = X + 1"."""
    for sign in "=+":
        sentence = sentence.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return sentence
