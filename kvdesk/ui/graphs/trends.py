"""The graphs under the map: speeds now, and used and high-water cells, over the last two minutes."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel, link_button
from kvdesk.ui.widgets.kit import Kit


class Trends(QWidget):
    """Small graphs over one time axis, folded away until they are wanted: the tab Graphs has more of them, and larger.
    A line says what was done last, or at the time under the mouse.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._theme, self._measured = kit.theme, kit.store.measured
        self.stack: GraphStack | None = None  # made when it is unfolded: pyqtgraph takes 0.4 s to import
        self._note = ElidedLabel("", tone="secondary", scale="small")
        tip = tr("Only the cell map and four numbers (Ctrl+Shift+I)")
        less = link_button(tr("Show less"), tip=tip, clicked=kit.act("view.instruments"))
        less.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        body = QWidget()
        self._rows = boxes.column(self._note, on=body, margins=(0, 4, 0, 0), spacing=0)
        self.fold = Collapsible(self._theme, tr("Last two minutes"), body, less)
        self.fold.toggled.connect(self._make_stack)
        boxes.column(self.fold, on=self, margins=0)

    def draw_due(self) -> None:
        """As `GraphStack.draw_due`."""
        if self.stack is not None:
            self.stack.draw_due()

    def _make_stack(self) -> None:
        if self.stack is not None:
            return
        from kvdesk.ui.graphs.time_graph import TimePlot

        specs = [spec for spec in self._measured.graphs if spec.under_map]
        plots = [TimePlot(self._theme, spec, ticks=spec is specs[-1], movable=False) for spec in specs]
        self.stack = GraphStack(self._theme, self._measured, plots)
        self._note.setText(self.stack.note)
        self.stack.read.connect(self._note.setText)
        self._rows.insertWidget(0, self.stack, 1)
