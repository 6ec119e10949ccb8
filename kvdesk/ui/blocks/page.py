"""The page of a server that tells of its blocks: numbers, the map, and what is known of it."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QScrollArea, QWidget

from kvdesk.protocol.blocks import BlockMapView
from kvdesk.translation import tr
from kvdesk.ui.blocks.block_map import BlockMapWidget
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.block_readout import BlockColour, heard, numbers, tiers

_COLUMNS: Final = 4


class BlocksPage(QWidget):
    """Passive: shows the views that it is given."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._view = BlockMapView()
        self._cells: list[tuple[QLabel, QLabel]] = []
        self._grid = boxes.grid(16, 2)
        self.colour = Choice(name=tr("Colour the blocks by"))
        for by in BlockColour:
            self.colour.addItem(tr("By {property}").format(property=tr(by.value)), by)
        self.colour.currentIndexChanged.connect(self._on_colour)
        self._legend = label("", tone="secondary", scale="small", wrap=True)
        self.map = BlockMapWidget(theme)
        scroll = QScrollArea()
        scroll.setWidget(self.map)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setCornerWidget(QWidget())
        self.map.reached.connect(
            lambda place: scroll.ensureVisible(place.center().x(), place.center().y(), place.width(), place.height())
        )
        self._heard = label("", tone="secondary", scale="small")
        self._problem = label("", tone="danger", scale="small")
        logical = label(
            tr("A logical map of hashed blocks, as the server's events tell: not its memory, and never verified."),
            tone="secondary",
            scale="small",
        )
        for text in (self._heard, self._problem, logical):
            text.setWordWrap(True)
        row = boxes.row(self.colour, (self._legend, 1), spacing=8)
        boxes.column(
            self._grid, row, (scroll, 1), self._problem, self._heard, logical, on=self, margins=(0, 0, 12, 0), spacing=8
        )
        self.take(self._view)

    def take(self, view: BlockMapView) -> None:
        """Show what is known now."""
        self._view = view
        self._show_numbers()
        self._heard.setText(heard(view))
        self._problem.setText(view.problem)
        self._problem.setVisible(bool(view.problem))
        self._on_colour()

    def _show_numbers(self) -> None:
        rows = numbers(self._view)
        while len(self._cells) < len(rows):
            caption, value = label("", tone="secondary", scale="small"), label("", weight="strong")
            at = len(self._cells)
            self._grid.addWidget(caption, 2 * (at // _COLUMNS), at % _COLUMNS)
            self._grid.addWidget(value, 2 * (at // _COLUMNS) + 1, at % _COLUMNS)
            self._cells.append((caption, value))
        for i, cells in enumerate(self._cells):
            for cell, text in zip(cells, rows[i][:2] if i < len(rows) else ("", ""), strict=True):
                cell.setVisible(i < len(rows))
                cell.setText(text)
                cell.setToolTip(rows[i][2] if i < len(rows) else "")

    def _on_colour(self) -> None:
        by = BlockColour(self.colour.currentData())
        self._legend.setText(by.meaning.format(tiers=", ".join(tiers(self._view.blocks)) or "–"))
        self.map.show_map(self._view.blocks, by)
