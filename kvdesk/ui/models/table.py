"""The rows of models as Qt's table model, sorted and filtered, favourites first."""

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QColor

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.models import ModelRow, columns

SORT_ROLE: Final = Qt.ItemDataRole.UserRole
NUMBERS: Final = (2, 4, 5, 6, 7)
"""Columns that are right-aligned."""
Index = QModelIndex | QPersistentModelIndex


class ModelTable(QAbstractTableModel):
    """One line for each model, in the order that was given."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._columns = columns()
        self.rows: tuple[ModelRow, ...] = ()

    def set_rows(self, rows: Sequence[ModelRow]) -> None:
        self.beginResetModel()
        self.rows = tuple(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._columns[section][0]
            case Qt.ItemDataRole.ToolTipRole:
                return self._columns[section][1]
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
            case _:
                return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self.rows[index.row()], index.column()
        cell = row.cells[column]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return f"★ {cell.text}" if row.favourite and column == 0 else cell.text
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(cell.tip) if cell.tip else None
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case Qt.ItemDataRole.ForegroundRole:
                colours = self._theme.colours
                if row.problem or (column == 6 and not row.fits):
                    return QColor(colours.danger if column in (0, 6) else colours.secondary)
                return QColor(colours.text if column in (0, *NUMBERS) else colours.secondary)
            case Qt.ItemDataRole.AccessibleTextRole:
                said = f"{self._columns[column][0]}: {cell.text}"
                return tr("{text}, a favourite").format(text=said) if row.favourite and column == 0 else said
            case _ if role == SORT_ROLE:
                return cell.value
            case _:
                return None


class SortedModels(QSortFilterProxyModel):
    """Until a column is chosen the order is that of the rows."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._words = ""
        self.setSortRole(SORT_ROLE)

    def set_words(self, words: str) -> None:
        self.beginFilterChange()
        self._words = words
        self.endFilterChange()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:  # noqa: ARG002 - Qt's signature
        return self._source().rows[source_row].matches(self._words)

    def row_at(self, index: Index) -> ModelRow | None:
        """The model of a line."""
        source = self.mapToSource(index)
        return self._source().rows[source.row()] if source.isValid() else None

    def _source(self) -> ModelTable:
        source = self.sourceModel()
        assert isinstance(source, ModelTable)
        return source


def _alignment(column: int) -> int:
    across = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return int(across | Qt.AlignmentFlag.AlignVCenter)
