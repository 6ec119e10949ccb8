"""The conversations as a list model, what the search finds among them, and how a row is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from kvdesk.chat import Conversation, ConversationId
from kvdesk.ui.widgets.controls import plain_tip, two_lines
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.palette import branch_index

ID_ROLE: Final = Qt.ItemDataRole.UserRole
COLOUR_ROLE: Final = Qt.ItemDataRole.UserRole + 1
CELLS_ROLE: Final = Qt.ItemDataRole.UserRole + 2
RUNNING_ROLE: Final = Qt.ItemDataRole.UserRole + 3
TEXT_ROLE: Final = Qt.ItemDataRole.UserRole + 4
BRANCHES_ROLE: Final = Qt.ItemDataRole.UserRole + 5
Index = QModelIndex | QPersistentModelIndex
_FURTHER_DOTS: Final = 2
NEW_CHAT: Final = "New chat"  # stands where a conversation has no title yet


class ConversationModel(QAbstractListModel):
    """Conversations in the order they are given."""

    renamed = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Conversation, ...] = ()
        self._cells: Mapping[ConversationId, int] = {}
        self._branches: Mapping[ConversationId, tuple[int, ...]] = {}
        self._running: frozenset[ConversationId] = frozenset()

    def show_conversations(self, conversations: Sequence[Conversation]) -> None:
        if [c.id for c in conversations] == [c.id for c in self._rows]:
            self._rows = tuple(conversations)
            self._redraw()
            return
        self.beginResetModel()
        self._rows = tuple(conversations)
        self.endResetModel()

    def show_cells(self, cells: Mapping[ConversationId, int]) -> None:
        """Numbers of cells; those of conversations that are being answered are not drawn, and change all the time."""
        before, self._cells = self._cells, dict(cells)
        for row, conversation in enumerate(self._rows):
            name = conversation.id
            if name not in self._running and before.get(name, 0) != cells.get(name, 0):
                self.dataChanged.emit(self.index(row), self.index(row))

    def show_branches(self, branches: Mapping[ConversationId, tuple[int, ...]]) -> None:
        """Numbers of the branches that have cells, of conversations with several of them."""
        if branches != self._branches:
            self._branches = dict(branches)
            self._redraw()

    def show_running(self, running: frozenset[ConversationId]) -> None:
        if running != self._running:
            self._running = running
            self._redraw()

    def index_of(self, name: ConversationId | None) -> QModelIndex:
        for row, conversation in enumerate(self._rows):
            if conversation.id == name:
                return self.index(row)
        return QModelIndex()

    def _redraw(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.EditRole:
                return row.title
            case Qt.ItemDataRole.DisplayRole:
                return row.title or NEW_CHAT
            case Qt.ItemDataRole.ToolTipRole:
                n = len(self._branches.get(row.id, ()))
                return plain_tip(f"{row.title or NEW_CHAT}{f'{chr(10)}{n} branches are in the cache' if n else ''}")
            case Qt.ItemDataRole.AccessibleTextRole:
                cells, n = self._cells.get(row.id, 0), len(self._branches.get(row.id, ()))
                branches = f", {n} branches" if n else ""
                return f"{row.title or NEW_CHAT}, {f'{cells} cells{branches}' if cells else 'not'} in the cache"
            case _:
                return self._own_data(row, role)

    def _own_data(self, row: Conversation, role: int) -> Any:
        if role == ID_ROLE:
            return row.id
        if role == COLOUR_ROLE:
            return row.colour
        if role == CELLS_ROLE:
            return self._cells.get(row.id, 0)
        if role == RUNNING_ROLE:
            return row.id in self._running
        if role == BRANCHES_ROLE:
            return self._branches.get(row.id, ())
        if role == TEXT_ROLE:
            return "\n".join((row.title, *(message.text for message in row.messages)))
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        title = " ".join(str(value).split())
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.EditRole and title and title != row.title:
            self.renamed.emit(row.id, title)
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable


class SearchFilter(QSortFilterProxyModel):
    """Keeps the conversations whose title or texts contain what is typed, and those the database found."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._found: frozenset[ConversationId] = frozenset()
        self.setFilterRole(TEXT_ROLE)
        self.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)

    def look_for(self, text: str) -> None:
        """Filter by the typed text; the database has not answered yet."""
        self._found = frozenset()
        self.setFilterFixedString(text)

    def add_found(self, conversations: frozenset[ConversationId]) -> None:
        """Filter by the result of the database for the typed text."""
        self._found = conversations
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        if super().filterAcceptsRow(source_row, source_parent):
            return True
        return self.sourceModel().index(source_row, 0).data(ID_ROLE) in self._found


ROW_PX: Final = 32  # of a title of one line
_TITLE_X: Final = 28


class ConversationDelegate(QStyledItemDelegate):
    """A dot (a ring: nothing is in the cache), small ones in the shades of further branches, the title, the cells."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours = self._theme.colours
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.hover if selected else colours.raised))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 6, 6)
        if selected and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect.adjusted(1, 2, -1, -2), 6, 6)
        cells = int(index.data(CELLS_ROLE))
        colour = self._theme.conversation_colour(int(index.data(COLOUR_ROLE)))
        painter.setPen(QPen(colour, 1.5))
        painter.setBrush(colour if cells else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(rect.left() + 14, rect.center().y() + 1), 4, 4)
        painter.setPen(Qt.PenStyle.NoPen)
        for place, branch in enumerate(index.data(BRANCHES_ROLE)[1 : 1 + _FURTHER_DOTS]):
            painter.setBrush(self._theme.branch_colour(branch_index(int(index.data(COLOUR_ROLE)), branch)))
            painter.drawEllipse(QPointF(rect.left() + 22.5, rect.center().y() - 2 + 6 * place), 2.5, 2.5)
        count = "…" if index.data(RUNNING_ROLE) else f"{cells:,}" if cells else ""
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(colours.secondary))
        right = rect.adjusted(0, 0, -8, 0)
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, count)
        painter.setFont(self._theme.text)
        painter.setPen(QColor(colours.text if index.data(Qt.ItemDataRole.EditRole) else colours.secondary))
        title = "\n".join(self._lines(index, rect.width()))
        painter.drawText(rect.adjusted(_TITLE_X, 0, -8, 0), Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        lines = self._lines(index, self._view.viewport().width())
        return QSize(120, ROW_PX + (len(lines) - 1) * QFontMetrics(self._theme.text).lineSpacing())

    def _lines(self, index: Index, width: int) -> tuple[str, ...]:
        """The title in a row of this width. The room for the number is the same whatever the number."""
        number = QFontMetrics(self._theme.mono_small).horizontalAdvance("8,888") + 16
        return two_lines(str(index.data()), QFontMetrics(self._theme.text), width - _TITLE_X - number)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, _index: Index) -> None:
        rect: QRect = option.rect
        editor.setGeometry(rect.adjusted(24, 0, 0, 0))
