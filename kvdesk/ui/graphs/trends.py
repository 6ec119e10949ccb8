"""The graphs under the map: speeds now, and used and high-water cells, over the last two minutes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from kvdesk.ui.graphs.graph import Curve, RowSpec
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.graphs.trend import TrendPlot
from kvdesk.ui.widgets.controls import ElidedLabel
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.measurements import Measurements


class Trends(QWidget):
    """Three small graphs over one time axis. A line says what was done last, or at the time under the mouse."""

    less_clicked = Signal()  # nobody needs all the instruments now

    def __init__(self, theme: Theme, measured: Measurements) -> None:
        super().__init__()
        rows = (*speed_rows(measured), cells_row(measured))
        self.stack = GraphStack(theme, measured, [TrendPlot(theme, row, ticks=row is rows[-1]) for row in rows])
        self._note = ElidedLabel(self.stack.note)
        self._note.setProperty("tone", "secondary")
        self._note.setProperty("scale", "small")
        self.stack.read.connect(self._note.setText)
        less = QToolButton()
        less.setText("Show less")
        less.setToolTip("Only the cell map and four numbers (Ctrl+Shift+I)")
        less.setProperty("link", "true")
        less.setProperty("scale", "small")
        less.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        less.clicked.connect(self.less_clicked)
        last = QHBoxLayout()
        last.setSpacing(8)
        last.addWidget(self._note, 1)
        last.addWidget(less)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.stack, 1)
        column.addLayout(last)


def speed_rows(measured: Measurements) -> tuple[RowSpec, ...]:
    return (
        RowSpec("tok/s", (Curve("prefill", measured.prefill.series, palette.ORANGE, "dots"),)),
        RowSpec("tok/s", (Curve("decode", measured.decode.series, palette.BLUE),)),
    )


def cells_row(measured: Measurements) -> RowSpec:
    used = Curve("used", measured.used, palette.GREEN)
    return RowSpec("cells", (used, Curve("high water", measured.high_water, palette.SILVER)))
