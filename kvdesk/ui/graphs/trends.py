"""The graphs under the map: speeds now, and used and high-water cells, over the last two minutes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.graphs.trend import TrendPlot
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.measurements import Measurements


class Trends(QWidget):
    """Small graphs over one time axis, folded away until they are wanted: the tab Graphs has more of them, and larger.
    A line says what was done last, or at the time under the mouse.
    """

    less_clicked = Signal()  # to the map and four numbers

    def __init__(self, theme: Theme, measured: Measurements) -> None:
        super().__init__()
        specs = [spec for spec in measured.graphs if spec.under_map]
        self.stack = GraphStack(theme, measured, [TrendPlot(theme, spec, ticks=spec is specs[-1]) for spec in specs])
        self._note = ElidedLabel(self.stack.note)
        self._note.setProperty("tone", "secondary")
        self._note.setProperty("scale", "small")
        self.stack.read.connect(self._note.setText)
        less = QToolButton()
        less.setText(tr("Show less"))
        less.setToolTip(tr("Only the cell map and four numbers (Ctrl+Shift+I)"))
        less.setProperty("link", "true")
        less.setProperty("scale", "small")
        less.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        less.clicked.connect(self.less_clicked)
        body = QWidget()
        rows = QVBoxLayout(body)
        rows.setContentsMargins(0, 4, 0, 0)
        rows.setSpacing(0)
        rows.addWidget(self.stack, 1)
        rows.addWidget(self._note)
        self.fold = Collapsible(theme, tr("Last two minutes"), body, less)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.fold)
