"""The controls above the cell map: what it is coloured by, the size of a page, zoom; and the pages in words."""

from collections.abc import Callable, Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from kvdesk.cache.pages import PAGE_SIZES
from kvdesk.translation import tr
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import OPTIONAL, ColourBy
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import small_choice
from kvdesk.ui.widgets.controls import label, show_text, tab_button


class MapBar(QWidget):
    """Leads what a person chooses to `cells`."""

    def __init__(self, cells: CellMapView, others: Iterable[str] = ()) -> None:
        """`others`: modes that slices bring."""
        super().__init__()
        self._cells = cells
        self.mode = small_choice(tr("Colour the cell map by"))
        for mode in (mode for mode in ColourBy if mode not in OPTIONAL or mode in others):
            self.mode.addItem(tr("By {property}").format(property=_inside(tr(mode.value))), mode)
            self.mode.setItemData(
                self.mode.count() - 1, tr("Colour: {meaning}").format(meaning=mode.meaning), Qt.ItemDataRole.ToolTipRole
            )
        self.mode.currentIndexChanged.connect(self._on_mode)
        self.page_size = small_choice(tr("Tokens to a page"))
        for size in PAGE_SIZES:
            self.page_size.addItem(str(size), size)
        self.page_size.setToolTip(tr("Tokens to a page of the simulated allocator"))
        self.page_size.currentIndexChanged.connect(lambda: cells.set_page_size(self.page_size.currentData()))
        self.page_size.hide()
        self._pages = label("", tone="secondary", scale="small", wrap=True)
        self._pages.hide()
        row = boxes.row(self.mode, self.page_size, boxes.Stretch(1), spacing=4)
        for text, name, keys, slot in (
            ("−", tr("Zoom out"), "-", cells.zoom_out),
            ("+", tr("Zoom in"), "+", cells.zoom_in),
            (tr("Fit"), tr("Show all cells"), "0", cells.reset_zoom),
        ):
            row.addWidget(_button(text, name, keys, slot))
        boxes.column(row, self._pages, on=self, margins=0, spacing=4)
        cells.pages_told.connect(self._on_pages_told)

    def _on_mode(self) -> None:
        mode = ColourBy(self.mode.currentData())
        self.mode.setToolTip(tr("Colour: {meaning}").format(meaning=mode.meaning))
        self.page_size.setVisible(mode is ColourBy.PAGE)
        if mode is not ColourBy.PAGE:
            self._pages.hide()
        self._cells.set_colour_by(mode)

    def _on_pages_told(self, words: str) -> None:
        show_text(self._pages, words)
        self._pages.setToolTip(tr("A simulation: llama.cpp has no pages."))


def _inside(name: str) -> str:
    """A name inside a sentence."""
    return name[0].lower() + name[1:]


def _button(text: str, name: str, keys: str, slot: Callable[[], None]) -> QToolButton:
    button = tab_button(text, name=name, tip=tr("{name} ({keys} in the map)").format(name=name, keys=keys))
    button.setCheckable(False)
    button.setProperty("scale", "small")
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.clicked.connect(slot)
    return button
