"""What a search found in all chats: a list in the place of the conversations, with the words marked."""

from collections.abc import Mapping
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QItemSelectionModel, QModelIndex, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter, QPen, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from kvdesk import folding
from kvdesk.graphemes import boundary
from kvdesk.message import ConversationId
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.chat_list.conversation_model import Index
from kvdesk.ui.markdown.offsets import utf16
from kvdesk.ui.widgets.access.typing import passes_typing_on
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.chat.found import FoundRow

_ROW_ROLE: Final = Qt.ItemDataRole.UserRole
_COLOUR_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_LINES: Final = 3  # of an excerpt
_AT_ONCE: Final = 40  # rows
_LEFT: Final = 28
_PAD: Final = 6


class SearchResults(QListView):
    """A row that becomes the current one is gone to; so is the next one by `step`."""

    chosen = Signal()  # a row, by a click or Enter

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._rows = _Model()
        self._silent = False
        self.setModel(self._rows)
        self.setItemDelegate(_Delegate(theme, self))
        self.setAccessibleName(tr("Search results"))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setLayoutMode(QListView.LayoutMode.Batched)  # those that are seen first
        self.setBatchSize(_AT_ONCE)
        self.setMouseTracking(True)
        passes_typing_on(self)
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        self.clicked.connect(self._on_chosen)

    @property
    def words(self) -> tuple[str, ...]:
        """What was looked for."""
        return self._rows.words

    @property
    def rows(self) -> tuple[FoundRow, ...]:
        return self._rows.rows

    def show_rows(
        self, words: tuple[str, ...], rows: tuple[FoundRow, ...], colours: Mapping[ConversationId, int]
    ) -> None:
        """What was found for the words; none of them is the current one. `colours`: of the conversations."""
        self._silent = True
        self._rows.show_rows(words, rows, colours)
        self._silent = False

    def step(self, by: int) -> None:
        """Go to the next hit (1) or the one before (-1), round and round."""
        hits = [number for number, row in enumerate(self.rows) if row.is_hit]
        if not hits:
            return
        current = self.currentIndex().row()
        beyond = [n for n in (hits if by > 0 else reversed(hits)) if (n > current if by > 0 else 0 <= n < current)]
        target = beyond[0] if beyond else hits[0 if by > 0 else -1]
        index = self._rows.index(target)
        if index == self.currentIndex():
            self._on_clicked(index)
        else:
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.scrollTo(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._on_chosen(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _on_current_changed(self, current: QModelIndex) -> None:
        if current.isValid() and not self._silent:
            self._on_clicked(current)

    def _on_chosen(self, index: QModelIndex) -> None:
        self._on_clicked(index)
        self.chosen.emit()

    def _on_clicked(self, index: QModelIndex) -> None:
        row: FoundRow = index.data(_ROW_ROLE)
        self._commands.open_found(row.conversation, row.message)


class _Model(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.words: tuple[str, ...] = ()
        self.rows: tuple[FoundRow, ...] = ()
        self._colours: Mapping[ConversationId, int] = {}

    def show_rows(
        self, words: tuple[str, ...], rows: tuple[FoundRow, ...], colours: Mapping[ConversationId, int]
    ) -> None:
        self.beginResetModel()
        self.words, self.rows, self._colours = words, rows, colours
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.text or tr("New chat")
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(row.text)
            case Qt.ItemDataRole.AccessibleTextRole:
                kind = tr("Chat: {text}") if row.message is None else tr("Message: {text}")
                return kind.format(text=row.text)
            case _:
                return {_ROW_ROLE: row, _COLOUR_ROLE: self._colours.get(row.conversation, 0)}.get(role)


class _Delegate(QStyledItemDelegate):
    """A chat as in the list of conversations; a message as an excerpt of at most three lines."""

    def __init__(self, theme: Theme, view: SearchResults) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        layout = self._laid_out(index, self._view.viewport().width() - _LEFT - _PAD)
        return QSize(120, round(layout.boundingRect().height()) + 2 * _PAD)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, row = self._theme.colours, index.data(_ROW_ROLE)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(QColor(colours.hover if selected else colours.raised))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 6, 6)
        if selected and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect.adjusted(1, 2, -1, -2), 6, 6)
            painter.setPen(Qt.PenStyle.NoPen)
        if row.message is None:
            painter.setBrush(self._theme.conversation_colour(int(index.data(_COLOUR_ROLE))))
            painter.drawEllipse(QPointF(rect.left() + 14, rect.center().y() + 1), 4, 4)
        painter.setPen(QColor(colours.text if row.message is None else colours.secondary))
        text = self._laid_out(index, rect.width() - _LEFT - _PAD)
        text.draw(painter, QPointF(rect.left() + _LEFT, rect.top() + _PAD))
        painter.restore()

    def _laid_out(self, index: Index, width: int) -> QTextLayout:
        """The text in lines of this width, the words in it marked."""
        row: FoundRow = index.data(_ROW_ROLE)
        font, n_lines = (self._theme.strong, 2) if row.message is None else (self._theme.small, _LINES)
        text = str(index.data())
        layout, end = self._lines(text, font, width, n_lines)
        if end < len(text):  # what has no room ends in …
            layout, _ = self._lines(f"{text[: boundary(text, end - 3) or 1].rstrip()}…", font, width, n_lines)
        return layout

    def _lines(self, text: str, font: QFont, width: int, n_lines: int) -> tuple[QTextLayout, int]:
        """The first lines of a text, and how many characters are in them."""
        layout = QTextLayout(text, font)
        places = folding.places(text, self._view.words)
        layout.setFormats([self._mark(utf16(text[:first]), utf16(text[:last])) for first, last in places])
        layout.beginLayout()
        y, end = 0.0, 0
        for _ in range(n_lines):
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(max(width, 1))
            line.setPosition(QPointF(0, y))
            y += line.height()
            end = line.textStart() + line.textLength()
        layout.endLayout()
        return layout, end

    def _mark(self, first: int, last: int) -> QTextLayout.FormatRange:
        mark = QTextLayout.FormatRange()
        mark.start, mark.length = first, last - first
        look = QTextCharFormat()
        look.setForeground(QColor(self._theme.colours.text))
        look.setBackground(QColor(self._theme.colours.selection))
        look.setFontWeight(QFont.Weight.DemiBold)
        mark.format = look
        return mark
