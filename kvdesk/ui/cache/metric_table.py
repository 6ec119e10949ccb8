"""A table of numbers: names left, values right-aligned in mono digits, units lighter; a definition for each row."""

from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFont
from PySide6.QtWidgets import QHeaderView, QTableWidgetItem, QToolTip

from kvdesk.ui.widgets.access.key_tips import is_by_tab
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.grid import Grid
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.graphs.metric_groups import Column, Group, Row

_ROW_PX: Final = 20
_MOST_PX: Final = 440  # wider, and the eye loses the line between name and value
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class MetricTable(Grid):
    """Shows one group. Definitions come on hover, and with the keyboard at the cell that one is at."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, _ROW_PX)
        self.group = Group("", (), ())
        self.setMaximumWidth(_MOST_PX)
        self.setMinimumWidth(240)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setMinimumSectionSize(0)
        self.currentCellChanged.connect(self._show_tip)
        theme.follow(self._fill)

    def show_group(self, group: Group) -> None:
        if group != self.group:
            self.group = group
            self.setAccessibleName(group.title)
            self.setAccessibleDescription("; ".join(spoken(row, group) for row in group.rows) or group.empty)
            self._fill()

    def _fill(self) -> None:
        group, rows = self.group, self.group.rows
        n = max((len(row.values) for row in rows), default=0)
        heads = group.columns or (Column(""),) * n
        has_unit = [any(row.values[i].unit for row in rows if i < len(row.values)) for i in range(n)]
        self.setRowCount(max(len(rows), 1))
        self.setColumnCount(1 + n + sum(has_unit))
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setVisible(bool(group.columns and rows))
        small, mono, colours = self._theme.small, self._theme.mono_small, self._theme.colours
        self._head(0, "", "")
        if not rows:
            self._write(0, 0, group.empty, "", small, colours.secondary, _LEFT)
        for line, row in enumerate(rows):
            tip = f"{spoken(row, group)}\n{row.definition}"
            self._write(line, 0, row.name, tip, small, colours.secondary, _LEFT)
            column = 1
            for i in range(n):
                text, unit = row.values[i] if i < len(row.values) else ("", "")
                self._write(line, column, text, tip, mono, colours.text, _RIGHT)
                self._head(column, heads[i].name, heads[i].definition)
                if has_unit[i]:
                    self._write(line, column + 1, unit, tip, small, colours.secondary, _LEFT)
                    self._head(column + 1, "", "")
                column += 1 + has_unit[i]
        self.fit_height()

    def _write(
        self, row: int, column: int, text: str, tip: str, font: QFont, ink: str, place: Qt.AlignmentFlag
    ) -> None:
        item = self.put(row, column, text, tip)
        item.setFont(font)
        item.setForeground(QColor(ink))
        item.setTextAlignment(place)

    def _head(self, column: int, name: str, definition: str) -> None:
        item = self.horizontalHeaderItem(column)
        if item is None:
            self.setHorizontalHeaderItem(column, item := QTableWidgetItem())
        item.setText(name)
        item.setToolTip(plain_tip(definition) if definition else "")
        item.setTextAlignment(_RIGHT)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if is_by_tab(event):
            self._show_tip()

    def _show_tip(self) -> None:
        """The definition of the row that one is at by key."""
        if self.currentRow() >= 0 and self.hasFocus():
            item = self.currentItem()
            at = self.visualItemRect(item).bottomLeft()
            QToolTip.showText(self.viewport().mapToGlobal(QPoint(0, at.y())), item.toolTip(), self)


def spoken(row: Row, group: Group) -> str:
    """A row as a phrase: "up to n_kv: K 2.3 MB, V 2.3 MB"."""
    names = [column.name + " " for column in group.columns] or [""] * len(row.values)
    values = [f"{name}{v.text} {v.unit}".strip() for name, v in zip(names, row.values, strict=False) if v.text]
    return f"{row.name}: {', '.join(values)}"
