"""The left pane: New chat, search, and the conversations with their colours and cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QItemSelectionModel, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from kvdesk.chat import Conversation, ConversationId
from kvdesk.protocol import calls
from kvdesk.ui.chat.conversation_model import ID_ROLE, ConversationDelegate, ConversationModel, SearchFilter
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.theme import Theme

FORGET = "Forget cells"
_FORGET_CALL: Final = calls.seq_rm("seq_id", -1, -1)


class ConversationList(QWidget):
    """Select, rename, export, delete, forget. Deleting asks inline."""

    new_clicked = Signal()
    settings_clicked = Signal()
    lab_clicked = Signal()
    search_changed = Signal(str)
    selected = Signal(str)
    renamed = Signal(str, str)
    deleted = Signal(str)
    forget_clicked = Signal(str)
    export_clicked = Signal(str)
    menu_shown = Signal(str, object)  # conversation, and the QMenu: others add to it

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("pane", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._model = ConversationModel()
        self._model.renamed.connect(self.renamed)
        self._filter = SearchFilter()
        self._filter.setSourceModel(self._model)
        self._asked: ConversationId | None = None
        self._silent = False
        new = IconButton(theme, "plus", "New chat", "New chat (Ctrl+N)")
        new.clicked.connect(self.new_clicked)
        settings = IconButton(theme, "settings", "Settings", "Settings (Ctrl+,)")
        settings.clicked.connect(self.settings_clicked)
        lab = IconButton(theme, "lab", "Lab", "Lab: questions about the cache, answered by experiments (Ctrl+Shift+L)")
        lab.clicked.connect(self.lab_clicked)
        head = QHBoxLayout()
        head.setSpacing(0)
        head.addWidget(label("Chats", weight="strong"), 1)
        head.addWidget(lab)
        head.addWidget(settings)
        head.addWidget(new)
        self._search = QLineEdit()
        self._search.setPlaceholderText("Search (Ctrl+K)")
        self._search.setAccessibleName("Search the conversations")
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(self._on_search_changed)
        self._list = self._make_list()
        self._none = label("", tone="secondary", scale="small")
        self._none.setWordWrap(True)
        self._none.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._none.setContentsMargins(4, 8, 4, 0)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._list)
        self._stack.addWidget(self._none)
        self._ask = _Ask(self._list.viewport())
        self._ask.confirmed.connect(self.confirm_delete)
        self._ask.refused.connect(self.refuse_delete)
        self._list.verticalScrollBar().valueChanged.connect(self._place_ask)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._search)
        column.addWidget(self._stack, 1)
        self._show_stack()

    @property
    def view(self) -> QListView:
        return self._list

    @property
    def search(self) -> QLineEdit:
        return self._search

    def show_conversations(self, conversations: Sequence[Conversation], selected: ConversationId | None) -> None:
        self._silent = True
        self._model.show_conversations(conversations)
        row = self._filter.mapFromSource(self._model.index_of(selected))
        flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
        if row.isValid():
            self._list.selectionModel().setCurrentIndex(row, flag)
        else:
            self._list.selectionModel().clear()
        self._silent = False
        self._show_stack()
        self._place_ask()

    def show_cells(self, cells: Mapping[ConversationId, int]) -> None:
        """How many cells each conversation holds; those not named hold none."""
        self._model.show_cells(cells)

    def show_branches(self, branches: Mapping[ConversationId, tuple[int, ...]]) -> None:
        """Numbers of the branches that have cells, of conversations with several of them."""
        self._model.show_branches(branches)

    def show_running(self, running: frozenset[ConversationId]) -> None:
        self._model.show_running(running)

    def refuse_forget(self, why: str) -> None:
        """Why no cells can be removed; empty where they can."""
        for action in self._list.actions():
            if action.text() == FORGET:
                action.setEnabled(not why)
                action.setToolTip(why or _FORGET_CALL)

    def show_found(self, text: str, conversations: Sequence[ConversationId]) -> None:
        """The result of the database for `text`; ignored when the typed text has changed since."""
        if text == self._search.text():
            self._filter.add_found(frozenset(conversations))
            self._show_stack()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        QTimer.singleShot(0, self, self._place_ask)

    def focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @Slot(str)
    def _on_search_changed(self, text: str) -> None:
        self._filter.look_for(text)
        self._show_stack()
        self.search_changed.emit(text)

    @Slot()
    def _on_current_changed(self) -> None:
        name = self._current()
        if name and not self._silent:
            self.selected.emit(name)

    @Slot(QPoint)
    def _on_menu_requested(self, at: QPoint) -> None:
        if self._current() is None:
            return
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        menu.addActions(self._list.actions())
        menu.addSeparator()
        self.menu_shown.emit(self._current(), menu)
        menu.exec(self._list.viewport().mapToGlobal(at))

    @Slot()
    def _on_rename(self) -> None:
        if self._list.currentIndex().isValid():
            self._list.edit(self._list.currentIndex())

    @Slot()
    def _on_forget(self) -> None:
        if name := self._current():
            self.forget_clicked.emit(name)

    @Slot()
    def _on_export(self) -> None:
        if name := self._current():
            self.export_clicked.emit(name)

    @Slot()
    def _on_delete(self) -> None:
        if name := self._current():
            self._asked = name
            self._ask.ask(str(self._list.currentIndex().data()))
            self._place_ask()

    @property
    def is_asking(self) -> bool:
        """Whether to delete a conversation."""
        return self._asked is not None

    @Slot()
    def confirm_delete(self) -> None:
        """Yes to the question that is being asked."""
        asked, self._asked = self._asked, None
        self._ask.hide()
        if asked:
            self.deleted.emit(asked)

    @Slot()
    def refuse_delete(self) -> None:
        """No to the question that is being asked."""
        self._asked = None
        self._list.setFocus()
        self._ask.hide()

    @Slot()
    def _place_ask(self) -> None:
        """The question lies over the row that it is about, whole; it goes where that row is no longer."""
        if self._asked is None:
            return
        row = self._filter.mapFromSource(self._model.index_of(self._asked))
        if not row.isValid():
            self.refuse_delete()
            return
        view = self._list.viewport()
        top = self._list.visualRect(row).top()
        height = self._ask.heightForWidth(view.width())
        self._ask.setGeometry(0, max(0, min(top, view.height() - height)), view.width(), height)

    def _make_list(self) -> QListView:
        view = QListView()
        view.setModel(self._filter)
        view.setItemDelegate(ConversationDelegate(self._theme, view))
        view.setAccessibleName("Conversations")
        view.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked | QAbstractItemView.EditTrigger.EditKeyPressed)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setResizeMode(QListView.ResizeMode.Adjust)  # another width may break titles elsewhere
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setMouseTracking(True)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_requested)
        view.selectionModel().currentChanged.connect(self._on_current_changed)
        for text, keys, slot, tip in (
            ("Rename", QKeySequence(Qt.Key.Key_F2), self._on_rename, ""),
            ("Export…", QKeySequence(), self._on_export, "Saves the shown branch as Markdown"),
            (FORGET, QKeySequence(), self._on_forget, _FORGET_CALL),
            ("Delete…", QKeySequence(QKeySequence.StandardKey.Delete), self._on_delete, ""),
        ):
            action = QAction(text, view)
            action.setShortcut(keys)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.setToolTip(tip)
            action.triggered.connect(slot)
            view.addAction(action)
        return view

    def _current(self) -> ConversationId | None:
        index = self._list.currentIndex()
        return index.data(ID_ROLE) if index.isValid() else None

    def _show_stack(self) -> None:
        if self._filter.rowCount():
            self._stack.setCurrentWidget(self._list)
            return
        self._none.setText(
            "Nothing found. Titles and texts are searched."
            if self._search.text()
            else "Your conversations are listed here. Send a message to start one."
        )
        self._stack.setCurrentWidget(self._none)


class _Ask(QFrame):
    """The question before a conversation is deleted, where its row is."""

    confirmed = Signal()
    refused = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", "ask")
        self._text = label("", scale="small")
        self._text.setWordWrap(True)
        self._delete, self._keep = QPushButton("Delete"), QPushButton("Cancel")
        self._delete.clicked.connect(self.confirmed)
        self._keep.clicked.connect(self.refused)
        self._keep.setToolTip("Cancel (Esc)")
        row = QHBoxLayout()
        row.setSpacing(4)
        for button in (self._delete, self._keep):
            button.setProperty("scale", "small")
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        column.addWidget(self._text)
        column.addLayout(row)
        self.hide()

    def ask(self, title: str) -> None:
        self._text.setText(f"Delete “{title}” and all its messages?")
        self.show()
        self._keep.setFocus()
