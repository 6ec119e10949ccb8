"""A table of a result: as high as its rows, scrolled sideways where it is wider than its room."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from kvdesk.protocol.experiment import Table
from kvdesk.ui.widgets.controls import label, plain_tip
from kvdesk.ui.widgets.theme import Theme

ROW_PX: Final = 24
WIDEST_PX: Final = 300  # of a column; the whole text is its tooltip


class ResultTable(QWidget):
    """A `Table` under its title. Ctrl+C copies the selected cells with tabs between them."""

    def __init__(self, theme: Theme, table: Table) -> None:
        super().__init__()
        self._view = _Grid(len(table.rows), len(table.columns))
        self._view.setAccessibleName(table.title)
        theme.give_font(self._view, "small")
        self._view.setHorizontalHeaderLabels(list(table.columns))
        for i, row in enumerate(table.rows):
            for j, text in enumerate(row):
                self._view.setItem(i, j, _cell(text))
        self._view.fit()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(label(table.title, weight="strong"))
        column.addWidget(self._view)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        rows, columns = range(self._view.rowCount()), range(self._view.columnCount())
        return tuple(tuple(self._view.text(i, j) for j in columns) for i in rows)


class _Grid(QTableWidget):
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_PX)
        head = self.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setHighlightSections(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        head.setMaximumSectionSize(2 * WIDEST_PX)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self._copy)

    def text(self, row: int, column: int) -> str:
        item = self.item(row, column)
        return item.text() if item is not None else ""

    def fit(self) -> None:
        """Columns as wide as their texts, the whole as high as its rows."""
        self.resizeColumnsToContents()
        for column in range(self.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column) + 12, WIDEST_PX))
        self._fit_height()

    def _fit_height(self) -> None:
        head = self.horizontalHeader()
        bar = self.horizontalScrollBar().sizeHint().height() if head.length() > self.width() else 0
        self.setFixedHeight(head.sizeHint().height() + ROW_PX * self.rowCount() + bar + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_height()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The plain wheel scrolls the page."""
        if event.angleDelta().x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            super().wheelEvent(event)
        else:
            event.ignore()

    def _copy(self) -> None:
        rows: dict[int, list[str]] = {}
        for index in sorted(self.selectedIndexes(), key=lambda i: (i.row(), i.column())):
            rows.setdefault(index.row(), []).append(self.text(index.row(), index.column()))
        QApplication.clipboard().setText("\n".join("\t".join(row) for row in rows.values()))


def _cell(text: str) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(plain_tip(text))
    return item
