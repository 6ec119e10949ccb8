"""The parts of the Cache tab beyond the map and four numbers."""

from typing import NamedTuple

from PySide6.QtWidgets import QPushButton, QWidget

from kvdesk.ui.cache.numbers_panel import NumbersPanel
from kvdesk.ui.cache.rulers import Rulers
from kvdesk.ui.graphs.trends import Trends
from kvdesk.ui.map.bar import MapBar
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.operations.compaction_card import CompactionCard
from kvdesk.ui.operations.effect_view import EffectView
from kvdesk.ui.operations.panel import OperationsPanel
from kvdesk.ui.operations.rebuild_question import RebuildQuestion
from kvdesk.ui.widgets.kit import Kit


class Instruments(NamedTuple):
    """From top to bottom."""

    bar: MapBar
    operations: OperationsPanel
    question: RebuildQuestion
    compaction: CompactionCard
    effect: EffectView
    numbers: NumbersPanel
    rulers: Rulers
    trends: Trends

    @property
    def lasting(self) -> tuple[QWidget, ...]:
        """Those that are always shown; the others appear when there is something to ask or to tell."""
        return self.bar, self.operations, self.numbers, self.rulers, self.trends


def make_instruments(kit: Kit, cells: CellMapView, forget: QPushButton, rebuild: QPushButton) -> Instruments:
    """forget, rebuild: buttons that stand with the operations by hand."""
    theme = kit.theme
    return Instruments(
        bar=MapBar(cells, [mode for part in kit.slices for mode in part.colours]),
        operations=OperationsPanel(kit, forget, rebuild),
        question=RebuildQuestion(kit),
        compaction=CompactionCard(kit),
        effect=EffectView(theme, kit.commands),
        numbers=NumbersPanel(theme, kit.store.measured),
        rulers=Rulers(theme),
        trends=Trends(kit),
    )
