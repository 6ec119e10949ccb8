"""The numbers of the cache: a headline that is always there, and every other metric in groups that fold away."""

from collections.abc import Mapping
from typing import Final

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from kvdesk.protocol.cache import CacheView
from kvdesk.translation import marked, tr
from kvdesk.ui.cache.figure import Figure
from kvdesk.ui.cache.metric_table import MetricTable
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.readout import Totals, totals
from kvdesk.viewmodel.graphs.cell_metrics import GAPS, HIGH_WATER, READ, SHARED, USED
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.graphs.metric_groups import metric_groups

_METRICS: Final = (
    (USED, marked("Cells that at least one sequence holds (the engine's `used`)")),
    (HIGH_WATER, marked("H, the high-water mark: index of the last non-empty cell + 1 (`used_max_p1`)")),
    (READ, marked("n_kv: the cells that attention reads: min(N, max(256, H rounded up to 256))")),
    (GAPS, marked("Hole ratio (H - U) / H: free cells below the high-water mark, which attention still reads")),
    (SHARED, marked("Cells that more than one sequence holds: stored once")),
)
_IN_A_ROW: Final = 3
_OPENED: Final = (marked("Cells"), marked("Speed"))


class NumbersPanel(QWidget):
    """Captions, numbers and units at fixed places, and under "All numbers" the tables of `metric_groups`.

    `show_view` is to be called at most a few times a second; folded or hidden tables cost nothing.
    """

    def __init__(self, theme: Theme, measured: Measurements | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._measured = measured or Measurements()
        self._view: CacheView | None = None
        self._titles: Mapping[int, str] = {}
        self._figures = {name: Figure(theme, tr(name), tr(tip)) for name, tip in _METRICS}
        self._tables: list[MetricTable] = []
        self._sections: list[Collapsible] = []
        groups = QWidget()
        inner = boxes.column(on=groups, margins=0, spacing=4)
        for group in metric_groups(self._measured, None, {}):
            table = MetricTable(theme)
            section = Collapsible(theme, group.title, _indented(table), opened=group.title in map(tr, _OPENED))
            section.toggled.connect(self.refresh)
            self._tables.append(table)
            self._sections.append(section)
            inner.addWidget(section)
        self.all_section = Collapsible(theme, tr("All numbers"), groups)
        self.all_section.toggled.connect(self.refresh)
        boxes.column(self._make_headline(), self.all_section, on=self, margins=0, spacing=4)

    def show_view(self, view: CacheView, titles: Mapping[int, str]) -> None:
        """The cache as it is; `titles` names sequences by seq_id."""
        self._view, self._titles = view, titles
        self.show_totals(totals(view.snapshot))
        self.refresh()

    def show_totals(self, totals: Totals) -> None:
        texts = {
            USED: (f"{totals.used:,}", tr("of {capacity}").format(capacity=f"{totals.capacity:,}")),
            HIGH_WATER: (f"{totals.high_water:,}", tr("cells")),
            READ: (f"{totals.n_kv:,}", tr("cells")),
            GAPS: (f"{100 * totals.hole_ratio:.1f}", tr("% of H")),
            SHARED: (f"{totals.shared:,}", tr("cells")),
        }
        for name, (text, unit) in texts.items():
            self._figures[name].show(text, unit)

    def refresh(self) -> None:
        """Fill the tables that can be seen from what is measured now."""
        if not (self.all_section.is_open and self.isVisible()):
            return
        groups = metric_groups(self._measured, self._view, self._titles)
        for group, section, table in zip(groups, self._sections, self._tables, strict=True):
            section.set_title(group.title)
            if section.is_open:
                table.show_group(group)

    def _make_headline(self) -> QGridLayout:
        grid = boxes.grid(12, 0, margins=0)
        grid.setRowMinimumHeight(2, 8)
        for i, figure in enumerate(self._figures.values()):
            figure.add_to(grid, i // _IN_A_ROW * 3, i % _IN_A_ROW)  # caption, number, space
        return grid

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


def _indented(table: MetricTable) -> QWidget:
    box = QWidget()
    boxes.row((table, 1), boxes.Stretch(), on=box, margins=(20, 0, 0, 4))
    return box
