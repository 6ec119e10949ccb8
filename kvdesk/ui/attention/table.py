"""The cells that got most of the attention, as a table."""

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QItemSelectionModel, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidgetItem

from kvdesk.translation import marked, tr
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.grid import Grid
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.attention import Shown, column_words, percent, token_words

_ROW_PX: Final = 20
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
HEADS: Final = (
    (marked("Token"), marked("The text of the token in the cell")),
    (marked("Position"), marked("Its position (pos) in the sequence")),
    (marked("Cell"), marked("The cell that it is in")),
    (marked("Weight"), marked("The attention that it got, added up over the tokens that are looked from")),
    (marked("Share"), marked("Its part of the attention that goes to no sink")),
    (marked("Indexer"), marked("For how many of these tokens and layers the indexer chose the cell")),
)
_INDEXER: Final = 5  # the column that only models with an indexer have


class AttendedTable(Grid):
    """The most first. Rows are selected, copied with Ctrl+C, and read by a screen reader."""

    chosen = Signal(int)
    """The position of the row that a person selected."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, _ROW_PX)
        self._shown: Shown | None = None
        self._rows: list[int] = []
        self.setAccessibleName(tr("Most attended cells"))
        self.horizontalHeader().setAccessibleName(tr("Columns of the most attended cells"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setColumnCount(len(HEADS))
        for i, (name, meaning) in enumerate(HEADS):
            self.setHorizontalHeaderItem(i, item := QTableWidgetItem(tr(name)))
            item.setToolTip(plain_tip(tr(meaning)))
            item.setTextAlignment(_RIGHT if i else _LEFT)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.setColumnHidden(_INDEXER, True)
        self.itemSelectionChanged.connect(self._on_selected)
        theme.changed.connect(self._dress)

    @property
    def positions(self) -> list[int]:
        """Of the rows, from above."""
        return (
            [int(self._shown.attended.columns.pos[column]) for column in self._rows] if self._shown is not None else []
        )

    def show_rows(self, shown: Shown | None, texts: Mapping[int, str]) -> None:
        """What is known; None: nothing."""
        self._shown = shown
        self._rows = shown.rows() if shown is not None else []
        self.setColumnHidden(_INDEXER, shown is None or shown.chosen is None)
        with QSignalBlocker(self):
            self.clearSelection()
            self.setRowCount(len(self._rows))
            for row, column in enumerate(self._rows):
                self._write(row, column, texts)
        self._dress()
        self.fit_height()

    def show_range(self, p0: int, p1: int) -> None:
        """Select the rows of these positions; nothing is sent."""
        wanted = {row for row, pos in enumerate(self.positions) if p0 <= pos < p1}
        if wanted == {index.row() for index in self.selectionModel().selectedRows()}:
            return
        flags = QItemSelectionModel.SelectionFlag
        with QSignalBlocker(self):
            self.clearSelection()
            for row in wanted:
                index = self.model().index(row, 0)
                self.selectionModel().select(index, flags.Select | flags.Rows)
        self.viewport().update()

    def _write(self, row: int, column: int, texts: Mapping[int, str]) -> None:
        shown = self._shown
        assert shown is not None
        columns, (_, cell) = shown.attended.columns, shown.cell(column)
        tip = column_words(shown, column, texts)
        share = tr("sink") if shown.sinks[column] else percent(shown.share(column))
        values = (
            token_words(int(columns.token[column]), texts),
            f"{int(columns.pos[column]):,}",
            f"{cell:,}" if cell >= 0 else "–",
            weight_words(float(shown.weights[column])),
            share,
            percent(float(shown.chosen[column])) if shown.chosen is not None else "",
        )
        for i, value in enumerate(values):
            self.put(row, i, value, tip).setTextAlignment(_RIGHT if i else _LEFT)

    def _dress(self) -> None:
        """Digits in the mono font; sinks in a lighter tone."""
        colours, shown = self._theme.colours, self._shown
        for row, column in enumerate(self._rows):
            is_sink = shown is not None and bool(shown.sinks[column])
            for i in range(len(HEADS)):
                if (item := self.item(row, i)) is not None:
                    item.setFont(self._theme.mono_small)
                    item.setForeground(QColor(colours.secondary if is_sink else colours.text))

    def _on_selected(self) -> None:
        rows = [index.row() for index in self.selectionModel().selectedRows()]
        if rows and self._shown is not None:
            row = self.currentRow() if self.currentRow() in rows else rows[-1]
            self.chosen.emit(self.positions[row])


def weight_words(weight: float) -> str:
    """As many digits as tell it from others, and points in one line."""
    return f"{weight:.4f}" if weight < 10 else f"{weight:.1f}"
