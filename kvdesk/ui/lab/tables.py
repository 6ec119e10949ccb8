"""A table of a result, under its title."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from kvdesk.protocol.experiment import Table
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.grid import Grid
from kvdesk.ui.widgets.theme import Theme

_ROW_PX: Final = 24
WIDEST_PX: Final = 300  # of a column; the whole text is its tooltip


class ResultTable(QWidget):
    """A `Table` under its title."""

    def __init__(self, theme: Theme, table: Table) -> None:
        super().__init__()
        self._view = _Cells(theme, _ROW_PX)
        self._view.setAccessibleName(table.title)
        self._view.show_table(table)
        boxes.column(label(table.title, weight="strong"), self._view, on=self, margins=0, spacing=4)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        rows, columns = range(self._view.rowCount()), range(self._view.columnCount())
        return tuple(tuple(self._view.text(i, j) for j in columns) for i in rows)


class _Cells(Grid):
    """Columns as wide as their texts, and wider if a person draws them so."""

    def show_table(self, table: Table) -> None:
        head = self.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setMaximumSectionSize(2 * WIDEST_PX)
        self.setRowCount(len(table.rows))
        self.setColumnCount(len(table.columns))
        self.setHorizontalHeaderLabels(list(table.columns))
        for i, row in enumerate(table.rows):
            for j, text in enumerate(row):
                self.put(i, j, text, text)
        self._fit()

    def _fit(self) -> None:
        self.resizeColumnsToContents()
        for column in range(self.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column) + 12, WIDEST_PX))
        self.fit_height()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._fit()
