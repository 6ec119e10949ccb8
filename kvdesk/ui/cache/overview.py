"""The cache in four numbers with plain captions, and the way to the rest: what one sees on the first start."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from kvdesk.message import TurnStats
from kvdesk.translation import marked, tr
from kvdesk.ui.cache.figure import Figure
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.readout import Totals
from kvdesk.viewmodel.graphs.cell_metrics import GAPS, READ, USED

SHOW_ALL: Final = marked("Show more")
_NUMBERS: Final = (
    (USED, marked("Each holds one token that the model need not read again (llama.cpp's `used`)")),
    (
        marked("Reused last time"),
        marked("Tokens of this chat's last prompt that were in the cache already; the others had to be read"),
    ),
    (READ, marked("Cells that attention reads (`n_kv`), up to the dashed line in the map")),
    (GAPS, marked("Free cells before the last used one, in % of the cells up to there; attention reads them too")),
)


class Overview(QWidget):
    """Numbers in two columns, and one button."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._figures = tuple(Figure(kit.theme, tr(caption), tr(tip)) for caption, tip in _NUMBERS)
        grid = boxes.grid(16, 0)
        grid.setRowMinimumHeight(2, 12)
        for i, figure in enumerate(self._figures):
            figure.add_to(grid, i // 2 * 3, i % 2)  # caption, number, space
        self.all_button = push_button(
            tr(SHOW_ALL), scale="small", tip=f"{tr(SHOW_ALL)} (Ctrl+Shift+I)", clicked=kit.act("view.instruments")
        )
        more = (tr(page.label).lower() for part in kit.slices for page in part.pages if not page.replaces)
        shows = tr(", ").join((tr("Operations, positions, graphs, timeline, log"), *more))
        about = label(shows, tone="secondary", scale="small", wrap=True)
        boxes.column(
            grid,
            boxes.Gap(8),
            (self.all_button, 0, Qt.AlignmentFlag.AlignLeft),
            about,
            boxes.Stretch(1),
            on=self,
            margins=(0, 8, 0, 0),
            spacing=8,
        )

    def show_numbers(self, totals: Totals, turn: TurnStats | None) -> None:
        """The cache as it is, and what the last answer of the shown chat cost; None before the first."""
        reused = (
            ("–", "")
            if turn is None
            else (f"{turn.reused_tokens:,}", tr("of {n} tokens").format(n=f"{turn.prompt_tokens:,}"))
        )
        texts = (
            (f"{totals.used:,}", tr("of {capacity}").format(capacity=f"{totals.capacity:,}")),
            reused,
            (f"{totals.n_kv:,}", tr("cells")),
            (f"{100 * totals.hole_ratio:.1f}", "%"),
        )
        for figure, (number, unit) in zip(self._figures, texts, strict=True):
            figure.show(number, unit)
