"""A table of numbers: names left, values right-aligned in mono digits, units lighter; a definition for each row."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QFontMetricsF, QHelpEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.metric_groups import Group, Row, Value

ROW_PX: Final = 20
_GAP: Final = 12
_MOST_PX: Final = 440  # wider, and the eye loses the line between name and value
_UNIT_GAP: Final = 4


class MetricTable(QWidget):
    """Shows one group. Definitions come on hover, or with the keyboard: Up and Down choose a row."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._group = Group("", (), ())
        self._current = 0
        self._lefts: list[float] = []  # left end of every column, for hover
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaximumWidth(_MOST_PX)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme.changed.connect(self.update)
        theme.changed.connect(self.updateGeometry)

    @property
    def group(self) -> Group:
        return self._group

    def show_group(self, group: Group) -> None:
        if group == self._group:
            return
        if self._n_lines(group) != self._n_lines(self._group):
            self.updateGeometry()
        self._group = group
        self._current = min(self._current, max(len(group.rows) - 1, 0))
        self.setAccessibleName(group.title)
        self.setAccessibleDescription("; ".join(spoken(row, group) for row in group.rows) or group.empty)
        self.update()

    def tip(self, row: int, column: int = -1) -> str:
        """The definition shown for a row, -1 the captions; `column` counts values from 0."""
        columns = self._group.columns
        if row < 0:
            return columns[column].definition if 0 <= column < len(columns) else ""
        if row >= len(self._group.rows):
            return ""
        return f"{spoken(self._group.rows[row], self._group)}\n{self._group.rows[row].definition}"

    def sizeHint(self) -> QSize:
        return QSize(240, self._n_lines(self._group) * self._theme.px(ROW_PX))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        colours = self._theme.colours
        text, secondary = QColor(colours.text), QColor(colours.secondary)
        group = self._group
        if not group.rows:
            painter.setFont(self._theme.small)
            painter.setPen(secondary)
            metrics = QFontMetrics(self._theme.small)
            shown = metrics.elidedText(group.empty, Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, shown)
            return
        widths, units = self._widths()
        self._lefts = []
        right = float(self.width())
        for width, unit in zip(reversed(widths), reversed(units), strict=True):
            self._lefts.insert(0, right - width - unit)
            right -= width + unit + _GAP
        top = 0
        if group.columns:
            painter.setFont(self._theme.small)
            painter.setPen(secondary)
            for i, column in enumerate(group.columns):
                box = QRectF(self._lefts[i] - _GAP, 0, widths[i] + _GAP, self._theme.px(ROW_PX))
                painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, column.name)
            top = self._theme.px(ROW_PX)
        names = QFontMetrics(self._theme.small)
        for n, row in enumerate(group.rows):
            line = QRectF(0, top + n * self._theme.px(ROW_PX), self.width(), self._theme.px(ROW_PX))
            if self.hasFocus() and n == self._current:
                painter.fillRect(line, QColor(colours.hover))
            painter.setFont(self._theme.small)
            painter.setPen(secondary)
            name = names.elidedText(row.name, Qt.TextElideMode.ElideRight, int(max(right, 0)))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, name)
            for i, value in enumerate(row.values[: len(widths)]):
                self._draw_value(
                    painter,
                    value,
                    QRectF(self._lefts[i], line.top(), widths[i], self._theme.px(ROW_PX)),
                    text,
                    secondary,
                )

    def _draw_value(self, painter: QPainter, value: Value, box: QRectF, text: QColor, secondary: QColor) -> None:
        painter.setFont(self._theme.mono_small)
        painter.setPen(text)
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, value.text)
        if value.unit:
            painter.setFont(self._theme.small)
            painter.setPen(secondary)
            left = box.right() + _UNIT_GAP
            painter.drawText(
                QRectF(left, box.top(), 200, self._theme.px(ROW_PX)), Qt.AlignmentFlag.AlignVCenter, value.unit
            )

    def _widths(self) -> tuple[list[float], list[float]]:
        """Widths of the values of every column, and of their units with the gap before them, whatever they are now."""
        mono, small = QFontMetricsF(self._theme.mono_small), QFontMetricsF(self._theme.small)
        group = self._group
        n = max((len(row.values) for row in group.rows), default=0)
        widths, units = [], []
        for i in range(n):
            values = [row.values[i] for row in group.rows if i < len(row.values)]
            least = [mono.horizontalAdvance("8,888")]
            if i < len(group.columns):
                least.append(small.horizontalAdvance(group.columns[i].name))
            widths.append(max(*least, *(mono.horizontalAdvance(value.text) for value in values)))
            unit = max(small.horizontalAdvance(value.unit) for value in values)
            units.append(unit + _UNIT_GAP if unit else 0.0)
        return widths, units

    def _n_lines(self, group: Group) -> int:
        return len(group.rows) + bool(group.columns) if group.rows else 1

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            row = event.pos().y() // self._theme.px(ROW_PX) - bool(self._group.columns)
            column = sum(event.pos().x() >= left - _GAP for left in self._lefts) - 1
            QToolTip.showText(event.globalPos(), plain_tip(self.tip(row, column)), self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if step is None or not 0 <= self._current + step < len(self._group.rows):
            super().keyPressEvent(event)
            return
        self._current += step
        self._tell()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._tell()

    def _tell(self) -> None:
        tip = self.tip(self._current)
        self.setAccessibleDescription(tip)
        line = self._current + 1 + bool(self._group.columns)
        if tip:
            QToolTip.showText(self.mapToGlobal(QPoint(0, line * self._theme.px(ROW_PX))), plain_tip(tip), self)
        self.update()


def spoken(row: Row, group: Group) -> str:
    """A row as a phrase: "up to n_kv: K 2.3 MB, V 2.3 MB"."""
    names = [column.name + " " for column in group.columns] or [""] * len(row.values)
    values = [f"{name}{v.text} {v.unit}".strip() for name, v in zip(names, row.values, strict=False) if v.text]
    return f"{row.name}: {', '.join(values)}"
