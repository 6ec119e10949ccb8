"""How a row of the list of conversations is drawn."""

from typing import Final

from PySide6.QtCore import QEvent, QPersistentModelIndex, QPoint, QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from kvdesk.translation import tr
from kvdesk.ui.chat_list.conversation_model import BRANCHES_ROLE, CELLS_ROLE, COLOUR_ROLE, ROW_ROLE, RUNNING_ROLE, Index
from kvdesk.ui.widgets.access.direction import drawing_flags
from kvdesk.ui.widgets.controls import two_lines
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.chat.conversation_rows import Row
from kvdesk.viewmodel.palette import branch_index

ROW_PX: Final = 32  # of a title of one line
_MORE_PX: Final = 24  # room for "…" at the right of each row
_TITLE_X: Final = 28
_FOLDER_PX: Final = 12  # indent of chats below the head of their folder
_FURTHER_DOTS: Final = 2
_PIN_PX: Final = 14
_RUNNING: Final = "▍"
_MOST_BROKEN: Final = 10_000
_FILLED: Final = "filled"
_MIDDLE: Final = (Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter).value


class ConversationDelegate(QStyledItemDelegate):
    """A chat: a dot (a ring: nothing is in the cache), small ones in the shades of further branches, the title; a pin
    where it is pinned. A folder: an arrow, its name, how many chats are in it. "…" is at the row under the pointer and
    at the current one.
    """

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view
        self.pointed = QPersistentModelIndex()
        """The row whose "…" the pointer is over."""
        self._broken: dict[tuple[str, int, int], tuple[str, ...]] = {}  # titles in lines: Qt asks for all at each order

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_ground(painter, option)
        row: Row = index.data(ROW_ROLE)
        self._paint_more(painter, option, index)
        state: QStyle.StateFlag = option.state
        colours = self._theme.colours
        ink = QColor(colours.text if state & QStyle.StateFlag.State_Selected else colours.secondary)
        if row.conversation is None:
            self._paint_folder(painter, option.rect, row, ink)
        else:
            self._paint_chat(painter, option.rect, index, row, ink)
        painter.restore()

    def more_rect(self, row: QRect) -> QRect:
        """Where "…" is in the rectangle of a row."""
        width = self._theme.px(_MORE_PX)
        return QRect(row.right() + 1 - width, row.top(), width, row.height())

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        lines = self._lines(index, self._view.viewport().width())
        return QSize(120, self._theme.px(ROW_PX) + (len(lines) - 1) * QFontMetrics(self._theme.text).lineSpacing())

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Once: what is typed stays, also when the row changes meanwhile."""
        if not editor.property(_FILLED):
            editor.setProperty(_FILLED, True)
            super().setEditorData(editor, index)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        editor.setGeometry(rect.adjusted(self._left(index) + self._theme.px(_TITLE_X) - 4, 0, 0, 0))

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        colours, rect = self._theme.colours, option.rect
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.selection if selected else colours.raised))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 6, 6)
        if selected and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect.adjusted(1, 2, -1, -2), 6, 6)

    def _paint_more(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        state: QStyle.StateFlag = option.state
        if not state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            return
        box, is_pointed = self.more_rect(option.rect), self.pointed.isValid() and self.pointed == index
        side = self._theme.px(16)
        at = box.center() - QPoint(side // 2 + 1, side // 2)
        if is_pointed:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.colours.line))
            painter.drawRoundedRect(QRect(at - QPoint(3, 3), QSize(side + 6, side + 6)), 4, 4)
        ink = self._theme.colours.text if is_pointed else self._theme.colours.secondary
        self._theme.icon("more", ink).paint(painter, QRect(at, QSize(side, side)))

    def helpEvent(self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index) -> bool:
        if event.type() == QEvent.Type.ToolTip and self.more_rect(option.rect).contains(event.pos()):
            QToolTip.showText(event.globalPos(), tr("Rename, move, export, delete … (menu key)"), view)
            return True
        return super().helpEvent(event, view, option, index)

    def _paint_folder(self, painter: QPainter, rect: QRect, row: Row, ink: QColor) -> None:
        arrow = self._theme.icon("chevron-down" if row.is_open else "chevron-right", ink.name())
        side = self._theme.px(16)
        arrow.paint(painter, QRect(rect.left() + self._theme.px(6), rect.center().y() + 1 - side // 2, side, side))
        self._paint_number(painter, rect, f"{row.n:,}", ink)
        painter.setFont(self._theme.text)
        painter.setPen(ink)
        room = rect.adjusted(self._theme.px(_TITLE_X), 0, -self._right_px("888"), 0)
        metrics = QFontMetrics(self._theme.text)
        name = metrics.elidedText(row.folder, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, _MIDDLE | drawing_flags(name), name)

    def _paint_chat(self, painter: QPainter, rect: QRect, index: Index, row: Row, ink: QColor) -> None:
        cells, number = int(index.data(CELLS_ROLE)), int(index.data(COLOUR_ROLE))
        inner, scale = rect.adjusted(self._left(index), 0, 0, 0), self._theme.scale
        colour = self._theme.conversation_colour(number)
        painter.setPen(QPen(colour, 1.5 * scale))
        painter.setBrush(colour if cells else Qt.BrushStyle.NoBrush)
        middle = inner.center().y() + 1
        painter.drawEllipse(QPointF(inner.left() + 14 * scale, middle), 4 * scale, 4 * scale)
        painter.setPen(Qt.PenStyle.NoPen)
        for place, branch in enumerate(index.data(BRANCHES_ROLE)[1 : 1 + _FURTHER_DOTS]):
            painter.setBrush(self._theme.branch_colour(branch_index(number, branch)))
            at = QPointF(inner.left() + 21.5 * scale, middle + (5 * place - 2.5) * scale)
            painter.drawEllipse(at, 2 * scale, 2 * scale)
        held = _RUNNING if index.data(RUNNING_ROLE) else ""  # how many cells is in the tip
        more = self._theme.px(_MORE_PX)
        self._paint_number(painter, rect, held, ink)
        if row.conversation is not None and row.conversation.pinned:
            room = QFontMetrics(self._theme.mono_small).horizontalAdvance(f"{held} ") if held else 0
            side = self._theme.px(_PIN_PX)
            pin = QRect(rect.right() - more - room - side, rect.center().y() - side // 2, side, side)
            self._theme.icon("pin", ink.name()).paint(painter, pin)
        painter.setFont(self._theme.text)
        painter.setPen(QColor(self._theme.colours.text) if index.data(Qt.ItemDataRole.EditRole) else ink)
        title = "\n".join(self._lines(index, rect.width()))
        painter.drawText(inner.adjusted(self._theme.px(_TITLE_X), 0, -8, 0), _MIDDLE | drawing_flags(title), title)

    def _paint_number(self, painter: QPainter, rect: QRect, number: str, ink: QColor) -> None:
        painter.setFont(self._theme.mono_small)
        painter.setPen(ink)
        right = rect.adjusted(0, 0, -self._theme.px(_MORE_PX), 0)
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, number)

    def _right_px(self, widest: str) -> int:
        """The room for what is at the right, always as for the widest, and for "…"."""
        return QFontMetrics(self._theme.mono_small).horizontalAdvance(widest) + 8 + self._theme.px(_MORE_PX)

    def _lines(self, index: Index, width: int) -> tuple[str, ...]:
        """The title in a row of this width."""
        row: Row = index.data(ROW_ROLE)
        if row.conversation is None:
            return (row.folder,)
        pin = self._theme.px(_PIN_PX) if row.conversation.pinned else 0
        room = width - self._left(index) - self._theme.px(_TITLE_X) - self._right_px(_RUNNING) - pin
        key = (str(index.data()), room, self._theme.text.pixelSize())
        if key not in self._broken:
            if len(self._broken) >= _MOST_BROKEN:
                self._broken.clear()
            self._broken[key] = two_lines(key[0], QFontMetrics(self._theme.text), room)
        return self._broken[key]

    def _left(self, index: Index) -> int:
        """Indent of a row, in pixels."""
        row: Row = index.data(ROW_ROLE)
        return self._theme.px(_FOLDER_PX) if row.conversation is not None and row.folder else 0
