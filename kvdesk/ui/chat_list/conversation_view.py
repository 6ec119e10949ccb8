"""The list of conversations as one works in it: keys, editing of names, dragging onto folders."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QListView

from kvdesk.chat import ConversationId
from kvdesk.translation import tr
from kvdesk.ui.chat_list.conversation_delegate import ConversationDelegate
from kvdesk.ui.chat_list.conversation_model import ID_ROLE, ROW_ROLE, ConversationModel
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.conversation_rows import Row


class ConversationView(QListView):
    """The head of a folder is opened and collapsed by a click, Enter, Space, Right and Left."""

    collapsed = Signal(str, bool)  # folder; whether its chats are to be listed no longer

    def __init__(self, theme: Theme, model: ConversationModel) -> None:
        super().__init__()
        self._conversations = model
        self.setModel(model)
        self.setItemDelegate(ConversationDelegate(theme, self))
        self.setAccessibleName(tr("Conversations"))
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)  # another width may break titles elsewhere
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDragDropOverwriteMode(True)  # onto rows, not between them

    @property
    def conversation(self) -> ConversationId | None:
        """That of the current row; None where that is the head of a folder, or there is none."""
        index = self.currentIndex()
        return index.data(ID_ROLE) if index.isValid() else None

    @property
    def folder(self) -> str:
        """The folder whose head is the current row; empty where it is a chat, or there is none."""
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
        super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        row = self._row(self.indexAt(event.position().toPoint()))
        if event.button() == Qt.MouseButton.LeftButton and row is not None and row.conversation is None:
            self.collapsed.emit(row.folder, row.is_open)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        row = self._row(self.indexAt(event.position().toPoint()))
        if row is None or row.conversation is not None:  # a folder is toggled twice, not renamed
            super().mouseDoubleClickEvent(event)

    @staticmethod
    def _row(index: QModelIndex) -> Row | None:
        return index.data(ROW_ROLE) if index.isValid() else None
