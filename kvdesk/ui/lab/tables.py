"""A table of a result, under its title."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from kvdesk.protocol.experiment import Table
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.grid import Grid
from kvdesk.ui.widgets.style.theme import Theme

_ROW_PX: Final = 24
_GAP_PX: Final = 12  # between columns
WIDEST_PX: Final = 300  # of a column; the whole text is its tooltip


class ResultTable(QWidget):
    """A `Table` under its title."""

    def __init__(self, theme: Theme, table: Table) -> None:
        super().__init__()
        self._view = _Cells(theme, _ROW_PX)
        self._view.setAccessibleName(table.title)
        self._view.show_table(table)
        boxes.column(label(table.title, weight="strong"), self._view, on=self, margins=0, spacing=4)


class _Cells(Grid):
    """Columns as wide as their texts, and wider if a person draws them so. If they have no room side by side, titles
    get several lines, and so do texts in the widest columns.
    """

    _titles: tuple[str, ...] = ()
    _is_narrow = False

    def show_table(self, table: Table) -> None:
        head = self.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setMaximumSectionSize(2 * WIDEST_PX)
        self._titles = table.columns
        self.setRowCount(len(table.rows))
        self.setColumnCount(len(table.columns))
        for i, row in enumerate(table.rows):
            for j, text in enumerate(row):
                self.put(i, j, text, text)
        self._fit()

    def _fit(self) -> None:
        head, room, columns = self.horizontalHeader(), self.viewport().width(), range(self.columnCount())
        self.setHorizontalHeaderLabels(list(self._titles))
        texts = [self.sizeHintForColumn(column) for column in columns]
        titles = [head.sectionSizeHint(column) for column in columns]
        widths = _widths(texts, titles)
        self._is_narrow = sum(widths) > room
        if self._is_narrow:
            wide = head.fontMetrics().horizontalAdvance
            words = [max(map(wide, title.split()), default=0) for title in self._titles]
            edges = [whole - wide(title) for whole, title in zip(titles, self._titles, strict=True)]
            least = [word + edge for word, edge in zip(words, edges, strict=True)]
            widths = fitted(fitted(widths, _widths(texts, least), room), least, room)
            rooms = [width - edge for width, edge in zip(widths, edges, strict=True)]
            self.setHorizontalHeaderLabels(
                [wrapped(title, wide, px) for title, px in zip(self._titles, rooms, strict=True)]
            )
        for column, width in enumerate(widths):
            self.setColumnWidth(column, width)
        self.fit_height()

    def _fit_rows(self, px: int) -> None:
        self.setWordWrap(self._is_narrow)
        around = px - self.fontMetrics().height()
        for i in range(self.rowCount()):
            self.setRowHeight(i, max(px, self.sizeHintForRow(i) + around) if self._is_narrow else px)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._fit()


def _widths(texts: Sequence[int], titles: Sequence[int]) -> list[int]:
    return [min(max(text, title) + _GAP_PX, WIDEST_PX) for text, title in zip(texts, titles, strict=True)]


def fitted(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths with the widest made narrower until they fit into `room`, none below its `least`."""

    def none_above(most: int) -> list[int]:
        return [max(low, min(width, most)) for width, low in zip(widths, least, strict=True)]

    limits = range(max(widths, default=0) + 1)
    return none_above(max(bisect_right(limits, room, key=lambda most: sum(none_above(most))) - 1, 0))


def wrapped(text: str, wide: Callable[[str], int], room: int) -> str:
    """The text in lines that fit into `room`, as far as its words do."""
    lines: list[str] = []
    for word in text.split():
        if lines and wide(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)
