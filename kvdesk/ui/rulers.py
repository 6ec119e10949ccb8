"""A ruler per conversation: which positions its sequence holds, where its holes are, and the next legal position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from kvdesk.ui.theme import Look

ROW_PX: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class RulerRow:
    """One sequence. `positions` are all positions it holds, in any order."""

    title: str
    colour: int | None  # None: no conversation leases it
    seq_id: int
    pos_min: int
    pos_max: int
    n_cells: int
    n_shared: int
    positions: NDArray[np.int32] = field(repr=False)


class Rulers(QWidget):
    """As many rows as there are sequences in the cache."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._rows: tuple[RulerRow, ...] = ()
        self._limit = 1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Positions of each conversation")
        look.changed.connect(self.update)

    @property
    def rows(self) -> tuple[RulerRow, ...]:
        return self._rows

    def show_rows(self, rows: Sequence[RulerRow], limit: int) -> None:
        """`limit` positions are the whole width of a ruler."""
        changed = len(rows) != len(self._rows)
        self._rows, self._limit = tuple(rows), max(limit, 1)
        self.setAccessibleDescription("; ".join(f"{row.title}: {_range(row)}" for row in rows))
        if changed:
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, max(1, len(self._rows)) * ROW_PX)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _bar(self) -> tuple[float, float]:
        """Left end and width of the rulers."""
        right = QFontMetrics(self._look.mono_small).horizontalAdvance("8,888–8,888")
        left = min(132.0, self.width() * 0.3)
        return left, max(self.width() - left - right - 12, 8)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self._look.colours
        if not self._rows:
            painter.setFont(self._look.small)
            painter.setPen(QColor(colours.secondary))
            text = "Each conversation in the cache gets a ruler of its positions."
            text = QFontMetrics(self._look.small).elidedText(text, Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, text)
            return
        left, width = self._bar()
        for i, row in enumerate(self._rows):
            self._draw_row(painter, row, i * ROW_PX, left, width)

    def _draw_row(self, painter: QPainter, row: RulerRow, top: int, left: float, width: float) -> None:
        colours = self._look.colours
        ink = QColor(colours.secondary) if row.colour is None else self._look.conversation_colour(row.colour)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        painter.drawEllipse(QRectF(0, top + ROW_PX / 2 - 4, 8, 8))
        painter.setFont(self._look.small)
        painter.setPen(QColor(colours.text))
        title = QFontMetrics(self._look.small).elidedText(row.title, Qt.TextElideMode.ElideRight, int(left) - 24)
        painter.drawText(QRectF(16, top, left - 20, ROW_PX), Qt.AlignmentFlag.AlignVCenter, title)
        middle = top + ROW_PX / 2
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(QRectF(left, middle - 3, width, 6), QColor(colours.cell_span))
        for start, stop in runs(row.positions):
            x = left + width * start / self._limit
            painter.fillRect(QRectF(x, middle - 3, max(width * (stop - start) / self._limit, 1.0), 6), ink)
        next_x = left + width * (row.pos_max + 1) / self._limit
        painter.fillRect(QRectF(next_x, middle - 6, 2, 12), QColor(colours.text))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setFont(self._look.mono_small)
        painter.setPen(QColor(colours.secondary))
        box = QRectF(left + width, top, self.width() - left - width, ROW_PX)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, _range(row))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            i = event.pos().y() // ROW_PX
            if 0 <= i < len(self._rows):
                QToolTip.showText(event.globalPos(), _tip(self._rows[i]), self)
            return True
        return super().event(event)


def runs(positions: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Maximal runs of positions as half-open intervals, rising."""
    if positions.size == 0:
        return []
    distinct = np.unique(positions)
    breaks = np.flatnonzero(np.diff(distinct) != 1)
    starts = np.concatenate((distinct[:1], distinct[breaks + 1]))
    stops = np.concatenate((distinct[breaks], distinct[-1:])) + 1
    return [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _range(row: RulerRow) -> str:
    return f"{row.pos_min:,}–{row.pos_max:,}" if row.n_cells else "empty"


def _tip(row: RulerRow) -> str:
    found = runs(row.positions)
    holes = sum(b[0] - a[1] for a, b in pairwise(found))
    return (
        f"{row.title}\nsequence {row.seq_id}, {row.n_cells:,} cells, {row.n_shared:,} of them shared\n"
        f"positions [{max(row.pos_min, 0):,}, {row.pos_max + 1:,}), {holes:,} missing between\n"
        f"next legal position {row.pos_max + 1:,}"
    )
