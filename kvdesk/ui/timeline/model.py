"""The operations of a recording as a list model: only what is seen is unpacked, what is new is counted in slices."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QTextLayout
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView, QWidget

from kvdesk.cache.journal.packing import REQUEST, Entry
from kvdesk.cache.journal.recording import Recording
from kvdesk.quantities import cells_text
from kvdesk.translation import tr
from kvdesk.ui.timeline.rows import DECODE, Row, Shown, TimelineRows
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.icons import line_icon
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every
from kvdesk.viewmodel.cells.effect_text import took

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE: Final = Qt.ItemDataRole.UserRole
ROW_PX: Final = 22
_ROLES: Final = frozenset(
    (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole, ROW_ROLE)
)
_ELIDE: Final = Qt.TextElideMode.ElideRight
_PAGE: Final = 512  # operations unpacked at once for what is seen
_PAGES: Final = 8
_SLICE: Final = 1024  # operations counted at once
_SLICE_S: Final = 0.008


class TimelineModel(QAbstractListModel):
    """Rows from the oldest to the newest."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._recording: Recording | None = None
        self.rows = TimelineRows()
        self.shown = Shown.FOLDED
        self._n = 0  # rows that the view knows of
        self._counted = 0  # the last operation that has been counted in
        self._pages: dict[int, dict[int, Entry]] = {}
        self._timer = every(self, 0, self._on_timer)

    def show_recording(self, recording: Recording | None) -> None:
        """A newer state of the same recording, or None before another one."""
        old = self._recording
        self._recording = recording
        goes_on = (
            recording is not None
            and old is not None
            and recording.shape == old.shape
            and recording.first >= self.rows.first  # the oldest may have been dropped: their rows stay, empty
            and recording.last >= self._counted
        )
        if not goes_on:
            self.beginResetModel()
            self.rows.clear()
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
        self.shown = shown
        self._n = self.rows.count(shown)
        self.endResetModel()

    def toggle(self, row: int) -> bool:
        """Unfold a group, or fold it again. Whether the row is one."""
        if self.shown is not Shown.FOLDED or not 0 <= row < self._n or not self.rows.toggle(row):
            return False
        more = self.rows.count(self.shown) - self._n
        if more > 0:
            self.beginInsertRows(QModelIndex(), row + 1, row + more)
            self._n += more
            self.endInsertRows()
        else:
            self.beginRemoveRows(QModelIndex(), row + 1, row - more)
            self._n += more
            self.endRemoveRows()
        self.dataChanged.emit(self.index(row), self.index(row))
        return True

    def entry(self, number: int) -> Entry | None:
        """One operation, None if it is not remembered."""
        if self._recording is None:
            return None
        page = number // _PAGE
        if page not in self._pages:
            found = self._recording.operations(page * _PAGE, page * _PAGE + _PAGE - 1)
            if len(self._pages) >= _PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[page] = {entry.operation.number: entry for entry in found}
        return self._pages[page].get(number)

    def _on_timer(self) -> None:
        """Count a slice in; the window stays alive while a long recording is read."""
        recording = self._recording
        until = time.perf_counter() + _SLICE_S
        while recording is not None and self._counted < recording.last and time.perf_counter() < until:
            end = min(self._counted + _SLICE, recording.last)
            self.rows.add(recording.operations(self._counted + 1, end))
            self._counted = end
        if recording is None or self._counted >= recording.last:
            self._timer.stop()
        n = self.rows.count(self.shown)
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
        row = self.rows.row(self.shown, index.row())
        if role == ROW_ROLE:
            return row, self.entry(row.main)
        if role == Qt.ItemDataRole.ToolTipRole:
            words = f"{row.main:,}: {_words(row, self.entry(row.main))}"
            timed, untimed = tr("{words}\nCells changed: {n_cells}, in {took}"), tr("{words}\nCells changed: {n_cells}")
            said = timed if row.ms else untimed
            return plain_tip(said.format(words=words, n_cells=f"{row.n_cells:,}", took=took(row.ms)))
        words = _words(row, self.entry(row.main))
        n_cells = cells_text(row.n_cells)
        group = ", " + (tr("unfolded group") if row.opened else tr("folded group")) if row.n > 1 or row.opened else ""
        return tr(", ").join(filter(None, (f"{row.main:,} {words}", took(row.ms), f"{n_cells}{group}")))


class Columns(NamedTuple):
    """Where the parts of a row are."""

    number: QRect
    fold: QRect  # the arrow of a group
    dot: QRect  # of the conversation
    words: QRect
    cells: QRect
    time: QRect

    @classmethod
    def of(cls, theme: Theme, rect: QRect, last: int) -> Columns:
        """In a row of this rectangle, where `last` is the highest number."""
        digit = QFontMetrics(theme.mono_small).horizontalAdvance("0")
        top, height, gap = rect.top(), rect.height(), theme.px(8)

        def part(left: int, width: int) -> QRect:
            return QRect(left, top, width, height)

        number = part(rect.left() + 4, digit * max(4, len(f"{last:,}")))
        fold = part(number.right() + 1, theme.px(16))
        dot = part(fold.right() + 1, theme.px(14))
        time = part(rect.right() - 4 - 8 * digit, 8 * digit)
        cells = part(time.left() - gap - 6 * digit, 6 * digit)
        left = dot.right() + 1
        return cls(number, fold, dot, part(left, cells.left() - gap - left), cells, time)


class TimelineHead(QWidget):
    """The names of the columns, over the list."""

    def __init__(self, theme: Theme, model: TimelineModel, view: QTableView) -> None:
        super().__init__()
        self._theme, self._model, self._view = theme, model, view
        self.setAccessibleName(tr("Columns: number, operation and reason, cells changed, time"))
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        return QSize(120, self._theme.px(ROW_PX))

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._theme
        rect = QRect(0, 0, self._view.viewport().width(), self.height())
        columns = Columns.of(theme, rect, self._model.rows.last)
        painter = QPainter(self)
        painter.setFont(theme.small)
        painter.setPen(QColor(theme.colours.secondary))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        left = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(columns.number, right, tr("No."))
        for place, how, text in (
            (columns.words, left, tr("Operation and reason")),
            (columns.cells.adjusted(-8, 0, 0, 0), right, tr("Cells")),
            (columns.time, right, tr("Time")),
        ):
            painter.drawText(place, how, painter.fontMetrics().elidedText(text, _ELIDE, place.width()))
        painter.setPen(QColor(theme.colours.line))
        painter.drawLine(0, self.height() - 1, rect.right(), self.height() - 1)
        painter.end()


class TimelineDelegate(QStyledItemDelegate):
    """Number, the arrow of a group, the conversation's dot, what it was and why, cells changed, time."""

    folded = Signal(int)  # row

    def __init__(self, theme: Theme, colour_of: Callable[[str], int | None], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._colour_of = colour_of

    def editorEvent(self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index) -> bool:
        """A click on the arrow folds."""
        if event.type() == QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            row, _ = index.data(ROW_ROLE)
            columns = Columns.of(self._theme, option.rect, _last(index))
            if (row.n > 1 or row.opened) and columns.fold.contains(event.position().toPoint()):
                self.folded.emit(index.row())
                return True
        return super().editorEvent(event, model, option, index)

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
        columns = Columns.of(theme, rect, _last(index))
        first = theme.px(ROW_PX)  # height of the first line
        painter.setFont(theme.mono_small)
        painter.setPen(QColor(colours.text if selected else colours.secondary))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        n_cells = f"{row.n_cells:,}" if row.n_cells else ""
        for place, said in ((columns.number, f"{row.main:,}"), (columns.time, took(row.ms)), (columns.cells, n_cells)):
            line = QRect(place.left() - 8, place.top(), place.width() + 8, first)
            painter.drawText(line, right, said)
        if row.n > 1 or row.opened:
            icon = line_icon("chevron-down" if row.opened else "chevron-right", colours.secondary)
            side = theme.px(12)
            icon.paint(painter, columns.fold.left() + 2, rect.top() + (first - side) // 2, side, side)
        colour = self._colour_of(entry.operation.conversation) if entry else None
        if colour is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.conversation_colour(colour))
            painter.drawEllipse(columns.dot.left() + 2, rect.top() + first // 2 - 3, 6, 6)
        painter.setFont(theme.small)
        plain = not selected and (entry is None or entry.operation.name == DECODE)
        painter.setPen(QColor(colours.secondary if plain else colours.text))
        indent = theme.px(10) if row.inner else 0
        self._draw_words(painter, columns.words.adjusted(indent, 0, 0, 0), _words(row, entry))
        painter.restore()

    def _draw_words(self, painter: QPainter, room: QRect, words: str) -> None:
        """In as many lines as the row is high; what does not fit even so is elided at its end."""
        metrics = QFontMetrics(self._theme.small)
        first = self._theme.px(ROW_PX)
        n_lines = 1 + max(0, (room.height() - first) // metrics.lineSpacing())
        layout = QTextLayout(words, self._theme.small)
        layout.beginLayout()
        lines = []
        while (line := layout.createLine()).isValid():
            line.setLineWidth(room.width())
            lines.append((line.textStart(), line.textLength()))
        layout.endLayout()
        shown = [words[start : start + n] for start, n in lines[:n_lines]]
        if len(lines) > n_lines:
            shown[-1] = metrics.elidedText(words[lines[n_lines - 1][0] :], _ELIDE, room.width())
        top = room.top() + (first - metrics.lineSpacing()) // 2
        for i, text in enumerate(shown):
            place = QRect(room.left(), top + i * metrics.lineSpacing(), room.width(), metrics.lineSpacing())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(120, self._theme.px(ROW_PX))


def _last(index: Index) -> int:
    """The highest number in the model of a row."""
    model = index.model()
    return model.rows.last if isinstance(model, TimelineModel) else 0


def _words(row: Row, entry: Entry | None) -> str:
    """The text of a row."""
    if entry is None:
        return tr("no longer recorded")
    operation = entry.operation
    if row.n > 1 and row.main < row.last:
        said = tr("{name}  {reason} (+{n} to compare)")
        return said.format(name=operation.name, reason=operation.reason, n=f"{row.n - 1:,}")
    if row.n > 1:
        return f"{operation.name} ×{row.n:,}"
    said = operation.call if operation.name == REQUEST else operation.reason
    return f"{operation.name}  {said}" if said else operation.name
