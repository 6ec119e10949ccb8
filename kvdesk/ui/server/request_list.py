"""The requests of other programs: a row each, and why so much of its prompt was in the cache, or so little."""

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from kvdesk.message import MessageId
from kvdesk.quantities import tokens_text
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, plain_tip
from kvdesk.ui.widgets.grid import make_plain
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.palette import request_index
from kvdesk.viewmodel.requests import RequestRow

COLUMNS: Final = (
    marked("Time"),
    marked("Program"),
    marked("Sequence"),
    marked("In the cache"),
    marked("Request"),
    marked("Answer"),
    marked("State"),
)
_PROGRAM, _SEQUENCE, _REQUEST = 1, 2, 4
Index = QModelIndex | QPersistentModelIndex


class RequestModel(QAbstractTableModel):
    """A sequence has the colour that it has in the map."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[RequestRow, ...] = ()

    def show_rows(self, rows: Sequence[RequestRow]) -> None:
        """The newest first. Rows are identified by their answers, so that the selected one stays selected."""
        rows, before = tuple(rows), self._rows
        names = [row.answer for row in rows]
        n_new = names.index(before[0].answer) if before and before[0].answer in names else 0
        if names[n_new:] != [row.answer for row in before[: len(rows) - n_new]] or not rows[n_new:]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        if n_new:
            self.beginInsertRows(QModelIndex(), 0, n_new - 1)
            self._rows = (*rows[:n_new], *before)
            self.endInsertRows()
        if len(self._rows) > len(rows):
            self.beginRemoveRows(QModelIndex(), len(rows), len(self._rows) - 1)
            self._rows = rows
            self.endRemoveRows()
        self._rows = rows
        self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(COLUMNS) - 1))

    def row(self, index: Index) -> RequestRow | None:
        return self._rows[index.row()] if 0 <= index.row() < len(self._rows) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return tr(COLUMNS[section])
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row(index)
        if row is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, index.column())
        if role == Qt.ItemDataRole.DecorationRole and index.column() == _SEQUENCE:
            return self._theme.branch_colour(request_index(row.seq_id)) if row.seq_id >= 0 else None
        if role == Qt.ItemDataRole.ToolTipRole:
            tips = {_PROGRAM: row.client, _REQUEST: row.asked}
            return plain_tip(tips.get(index.column(), row.explanation))
        return None

    @staticmethod
    def _text(row: RequestRow, column: int) -> str:
        texts = (
            row.time,
            row.client,
            f"{row.seq_id}" if row.seq_id >= 0 else "",
            row.cached_text,
            row.asked,
            tokens_text(row.n_generated),
            row.state_text,
        )
        return texts[column]


class RequestList(QWidget):
    """The table, and "Why?" of the row that is chosen; of the newest if none is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = RequestModel(theme, self)
        self._chosen: MessageId | None = None
        self.table = QTableView()
        self.table.setObjectName("rows")
        self.table.setModel(self._model)
        self.table.setAccessibleName(tr("Requests of other programs"))
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        make_plain(self.table)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        theme.give_font(self.table, "small")
        theme.give_font(header, "small")
        self.table.selectionModel().currentRowChanged.connect(self._on_row)
        self.score = label("", tone="secondary", scale="small", wrap=True)
        self.score.setAccessibleName(tr("What the cache saved all requests, and what it missed"))
        self._why_title = label(tr("Why?"), weight="strong")
        self._why = label("", tone="secondary", wrap=True, selectable=True)
        self._why.setTextInteractionFlags(
            self._why.textInteractionFlags() | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._why.setAccessibleName(tr("Why so much of the prompt was in the cache"))
        self._why.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._why.setMinimumHeight(theme.px(72))
        self.table.setMinimumHeight(theme.px(180))
        boxes.column(
            label(tr("Requests of other programs"), weight="strong"),
            self.score,
            (self.table, 1),
            self._why_title,
            self._why,
            on=self,
            margins=(0, 12, 0, 0),
            spacing=8,
        )
        self.show_rows(())

    def show_rows(self, rows: Sequence[RequestRow], score: str = "") -> None:
        """The newest first. `score`: of all, a sentence."""
        self._model.show_rows(rows)
        self.score.setText(score)
        for part in (self.score, self.table, self._why_title):
            part.setVisible(bool(rows))
        chosen = next((row for row in rows if row.answer == self._chosen), None)
        self._tell(chosen or (rows[0] if rows else None))

    def _tell(self, row: RequestRow | None) -> None:
        self._why.setText(row.explanation if row is not None else tr("No program has asked yet."))

    def _on_row(self, index: QModelIndex) -> None:
        row = self._model.row(index)
        self._chosen = row.answer if row is not None else None
        self._tell(row)
