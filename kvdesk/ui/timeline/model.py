"""The operations of a recording as a list model: only what is seen is unpacked, what is new is counted in slices."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from kvdesk.cache.packing import Entry
from kvdesk.cache.recording import Recording
from kvdesk.translation import tr
from kvdesk.ui.timeline.rows import DECODE, Row, Shown, TimelineRows
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.effect_text import took

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE: Final = Qt.ItemDataRole.UserRole
ROW_PX: Final = 22
_ROLES: Final = frozenset(
    (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole, ROW_ROLE)
)
_PAGE: Final = 512  # operations unpacked at once for what is seen
_PAGES: Final = 8
_SLICE: Final = 1024  # operations counted at once
_SLICE_S: Final = 0.008


class TimelineModel(QAbstractListModel):
    """Rows from the oldest to the newest."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._recording: Recording | None = None
        self._rows = TimelineRows()
        self._shown = Shown.FOLDED
        self._n = 0  # rows that the view knows of
        self._counted = 0  # the last operation that has been counted in
        self._pages: dict[int, dict[int, Entry]] = {}
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._on_timer)

    @property
    def rows(self) -> TimelineRows:
        return self._rows

    @property
    def shown(self) -> Shown:
        return self._shown

    @property
    def is_counting(self) -> bool:
        return self._timer.isActive()

    def show_recording(self, recording: Recording | None) -> None:
        """A newer state of the same recording, or None before another one."""
        old = self._recording
        self._recording = recording
        goes_on = (
            recording is not None
            and old is not None
            and recording.shape == old.shape
            and recording.first >= self._rows.first  # the oldest may have been dropped: their rows stay, empty
            and recording.last >= self._counted
        )
        if not goes_on:
            self.beginResetModel()
            self._rows.clear()
            self._pages.clear()
            self._n = 0
            self._counted = recording.start if recording is not None else 0
            self.endResetModel()
        self._pages.pop(self._counted // _PAGE, None)  # was not full
        if recording is not None and self._counted < recording.last:
            self._on_timer()
            if self._counted < recording.last:
                self._timer.start()

    def set_shown(self, shown: Shown) -> None:
        self.beginResetModel()
        self._shown = shown
        self._n = self._rows.count(shown)
        self.endResetModel()

    def entry(self, number: int) -> Entry | None:
        """One operation, None where it is not remembered."""
        if self._recording is None:
            return None
        page = number // _PAGE
        if page not in self._pages:
            found = self._recording.operations(page * _PAGE, page * _PAGE + _PAGE - 1)
            if len(self._pages) >= _PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[page] = {entry.operation.number: entry for entry in found}
        return self._pages[page].get(number)

    @Slot()
    def _on_timer(self) -> None:
        """Count a slice in; the window stays alive while a long recording is read."""
        recording = self._recording
        until = time.perf_counter() + _SLICE_S
        while recording is not None and self._counted < recording.last and time.perf_counter() < until:
            end = min(self._counted + _SLICE, recording.last)
            self._rows.add(recording.operations(self._counted + 1, end))
            self._counted = end
        if recording is None or self._counted >= recording.last:
            self._timer.stop()
        n = self._rows.count(self._shown)
        if self._n:
            self.dataChanged.emit(self.index(self._n - 1), self.index(self._n - 1))  # a fold may have grown
        if n > self._n:
            self.beginInsertRows(QModelIndex(), self._n, n - 1)
            self._n = n
            self.endInsertRows()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else self._n

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in _ROLES:
            return None
        row = self._rows.row(self._shown, index.row())
        if role == ROW_ROLE:
            return row, self.entry(row.last)
        if role == Qt.ItemDataRole.ToolTipRole:
            words = f"{row.last:,}: {_words(row, self.entry(row.last))}"
            return plain_tip(
                tr("{words}\nCells changed: {n_cells}, in {took}").format(
                    words=words, n_cells=f"{row.n_cells:,}", took=took(row.ms)
                )
            )
        entry = self.entry(row.last)
        name = entry.operation.name if entry else ""
        times = f" ×{row.n:,}" if row.n > 1 else ""
        n_cells = tr("{n} cells").format(n=f"{row.n_cells:,}")
        return f"{row.last:,} {name}{times}, {took(row.ms)}, {n_cells}"


class TimelineDelegate(QStyledItemDelegate):
    """Number, the conversation's dot, what it was, cells changed, time."""

    def __init__(self, theme: Theme, colour_of: Callable[[str], int | None], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._colour_of = colour_of

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row, entry = index.data(ROW_ROLE)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        theme, colours = self._theme, self._theme.colours
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.selection))
            painter.drawRoundedRect(rect.adjusted(0, 0, 0, -1), 4, 4)
        mono = QFontMetrics(theme.mono_small)
        digit = mono.horizontalAdvance("0")
        painter.setFont(theme.mono_small)
        painter.setPen(QColor(colours.text if selected else colours.secondary))
        middle = Qt.AlignmentFlag.AlignVCenter
        number = QRect(rect.left() + 4, rect.top(), 9 * digit, rect.height())
        painter.drawText(number, middle | Qt.AlignmentFlag.AlignRight, f"{row.last:,}")
        right = QRect(rect.right() - 4 - 9 * digit, rect.top(), 9 * digit, rect.height())
        painter.drawText(right, middle | Qt.AlignmentFlag.AlignRight, took(row.ms))
        cells = right.translated(-9 * digit - 4, 0)
        n_cells = f"{row.n_cells:,}" if row.n_cells else ""
        painter.drawText(cells, middle | Qt.AlignmentFlag.AlignRight, n_cells)
        left = number.right() + 12
        colour = self._colour_of(entry.operation.conversation) if entry else None
        if colour is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.conversation_colour(colour))
            painter.drawEllipse(left, rect.center().y() - 2, 6, 6)
        painter.setFont(theme.small)
        plain = not selected and (entry is None or entry.operation.name == DECODE)
        painter.setPen(QColor(colours.secondary if plain else colours.text))
        end = cells.right() - mono.horizontalAdvance(n_cells) - 8
        room = QRect(left + 14, rect.top(), end - left - 14, rect.height())
        text = QFontMetrics(theme.small).elidedText(_words(row, entry), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, middle, text)
        painter.restore()

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(120, self._theme.px(ROW_PX))


def _words(row: Row, entry: Entry | None) -> str:
    """The text of a row."""
    if entry is None:
        return tr("no longer recorded")
    operation = entry.operation
    if row.n > 1:
        return f"{operation.name} ×{row.n:,}"
    return f"{operation.name}  {operation.reason}" if operation.reason else operation.name
