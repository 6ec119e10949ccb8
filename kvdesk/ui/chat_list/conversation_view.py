"""The list of conversations as one works in it: keys, menus, editing of names, dragging onto folders."""

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

from kvdesk.message import ConversationId
from kvdesk.translation import tr
from kvdesk.ui.chat_list.conversation_delegate import ConversationDelegate
from kvdesk.ui.chat_list.conversation_model import ID_ROLE, ROW_ROLE, ConversationModel
from kvdesk.ui.widgets.access.typing import passes_typing_on
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.chat.conversation_rows import Row


class ConversationView(QListView):
    """The head of a folder is opened and collapsed by a click, Enter, Space, Right and Left. The menu of a row opens at
    its "…", by a right click, or by the menu key; none of these selects the row.
    """

    collapsed = Signal(str, bool)  # folder; whether its chats are to be listed no longer
    chosen = Signal()  # a chat, by a click or Enter
    menu_requested = Signal(QModelIndex, QPoint)  # where, on the screen

    def __init__(self, theme: Theme, model: ConversationModel) -> None:
        super().__init__()
        self.setViewport(QWidget())  # PySide6 takes 20 ms to find out what one of Qt's own is
        self._conversations = model
        self.setModel(model)
        self._delegate = ConversationDelegate(theme, self)
        self.setItemDelegate(self._delegate)
        self.setAccessibleName(tr("Conversations"))
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)  # another width may break titles elsewhere
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        passes_typing_on(self)
        self._asked = False  # the button that is down asked for a menu
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDragDropOverwriteMode(True)  # onto rows, not between them

    @property
    def conversation(self) -> ConversationId | None:
        """That of the current row; None if that is the head of a folder, or there is none."""
        index = self.currentIndex()
        return index.data(ID_ROLE) if index.isValid() else None

    @property
    def folder(self) -> str:
        """The folder whose head is the current row; empty if it is a chat, or there is none."""
        row = self._row(self.currentIndex())
        return row.folder if row is not None and row.conversation is None else ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self._row(self.currentIndex()) if self.hasFocus() else None  # a name that is edited ignores Enter
        key = event.key()
        if row is not None and row.conversation is None:
            opens = key == Qt.Key.Key_Right
            toggles = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
            if toggles or (opens and not row.is_open) or (key == Qt.Key.Key_Left and row.is_open):
                self.collapsed.emit(row.folder, row.is_open)
                return
        elif row is not None and row.folder and key == Qt.Key.Key_Left:
            self.setCurrentIndex(self._conversations.index_of_folder(row.folder))
            return
        elif row is not None and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.chosen.emit()
        super().keyPressEvent(event)

    def more_rect(self, index: QModelIndex) -> QRect:
        """Where the "…" of a row is."""
        return self._delegate.more_rect(self.visualRect(index))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        if index.isValid():
            at = self.viewport().mapToGlobal(self.more_rect(index).bottomLeft()) if by_key else event.globalPos()
            self.menu_requested.emit(index, at)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        index = self.indexAt(at)
        self._asked = index.isValid() and self.more_rect(index).contains(at)
        self._asked = self._asked or event.button() != Qt.MouseButton.LeftButton
        if not self._asked:
            super().mousePressEvent(event)
        elif event.button() == Qt.MouseButton.LeftButton:
            self.menu_requested.emit(index, self.viewport().mapToGlobal(self.more_rect(index).bottomLeft()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._show_more(event.position().toPoint())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.forget_pointer()

    def forget_pointer(self) -> None:
        """The pointer is over no "…", or nobody knows: a menu was open."""
        self._show_more(QPoint(-1, -1))

    def _show_more(self, at: QPoint) -> None:
        index = self.indexAt(at)
        over = index if index.isValid() and self.more_rect(index).contains(at) else QModelIndex()
        if self._delegate.pointed != over:
            self._delegate.pointed = QPersistentModelIndex(over)
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._asked:
            self._asked = False
            return
        super().mouseReleaseEvent(event)
        row = self._row(self.indexAt(event.position().toPoint()))
        if event.button() != Qt.MouseButton.LeftButton or row is None:
            return
        if row.conversation is None:
            self.collapsed.emit(row.folder, row.is_open)
        else:
            self.chosen.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        row = self._row(index)
        if index.isValid() and self.more_rect(index).contains(event.position().toPoint()):
            self.mousePressEvent(event)
        elif row is None or row.conversation is not None:  # a folder is toggled twice, not renamed
            super().mouseDoubleClickEvent(event)

    @staticmethod
    def _row(index: QModelIndex) -> Row | None:
        return index.data(ROW_ROLE) if index.isValid() else None
