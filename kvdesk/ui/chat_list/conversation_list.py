"""The left pane: New chat, search, the conversations in their folders, and the archive."""

from collections.abc import Callable
from functools import partial
from typing import Final

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QStackedWidget, QWidget

from kvdesk.chat import Conversation
from kvdesk.protocol import calls
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.features import Feature
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.chat_list.chat_files import export_chats, export_folder
from kvdesk.ui.chat_list.conversation_model import ROW_ROLE, ConversationModel
from kvdesk.ui.chat_list.conversation_view import ConversationView
from kvdesk.ui.chat_list.folder_field import FolderField
from kvdesk.ui.chat_list.search_results import SearchResults
from kvdesk.ui.operations.menus import fill_menu
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.controls import IconButton, has_focus, label, on_ground, pop_up, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.search_field import clearable
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.undo_notice import UndoNotice
from kvdesk.viewmodel.chat.conversation_rows import Row
from kvdesk.viewmodel.chat.found import FoundRow

_CHATS: Final = Changed.CONVERSATIONS | Changed.SELECTED
_BRANCHES: Final = Changed.NUMBERS | Changed.CONTEXT
_SHOWN: Final = _CHATS | _BRANCHES | Changed.CELLS | Changed.RUNNING | Changed.DELETED
_FORGET_CALL: Final = calls.seq_rm("seq_id", -1, -1)


class ConversationList(QWidget):
    """Select, rename, arrange, export, delete, forget. A menu is of the row where it is asked for."""

    chosen = Signal()  # a chat, or a place in one, by a click or Enter

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme = kit.theme
        self._kit, self._store, self._commands = kit, kit.store, kit.commands
        on_ground(self, "panel")
        self._silent = False
        self._found_for = ""
        self._model = ConversationModel(kit.commands)
        self.search = QLineEdit(placeholderText=tr("Search (Ctrl+K)"))
        self.search.setAccessibleName(tr("Search the chats"))
        clearable(self.search)
        self.search.textChanged.connect(self._on_search_changed)
        composes(self.search)
        self.view = ConversationView(theme, self._model)
        self.view.collapsed.connect(self._on_collapsed)
        self.view.menu_requested.connect(self._on_menu_requested)
        self.view.selectionModel().currentChanged.connect(self._on_current_changed)
        self.view.chosen.connect(self.chosen)
        self._add_keys()
        self._none = label("", tone="secondary", scale="small", wrap=True)
        self._none.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._none.setContentsMargins(4, 8, 4, 0)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._none)
        self.results = SearchResults(theme, kit.commands)
        self.results.chosen.connect(self.chosen)
        self.search.returnPressed.connect(lambda: self.results.step(1))
        self._stack.addWidget(self.results)
        self.folder_field = FolderField(self, kit.commands)  # over the list, at the row of its chat
        self.view.verticalScrollBar().valueChanged.connect(self._place_folder_field)
        self.folder_field.left.connect(self.view.setFocus)
        self.undo = UndoNotice(theme, kit.commands.undo_delete)
        self.archive = push_button("", quiet=True, scale="small", clicked=self._on_archive_clicked)
        boxes.column(
            self._make_head(theme),
            self.search,
            (self._stack, 1),
            self.undo,
            self.archive,
            on=self,
            margins=(12, 8, 8, 8),
            spacing=8,
        )
        self.destroyed.connect(kit.store.listen(self._on_changed, _SHOWN))
        self.destroyed.connect(kit.store.settings.listen(self._on_settings_changed))
        self.show_all()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show_all(self) -> None:
        """Everything as the store has it."""
        self._on_settings_changed(frozenset(("collapsed_folders",)))
        self._on_changed(_SHOWN, None)

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "collapsed_folders" in changed:
            folders = self._store.settings.current.collapsed_folders
            for folder in self._model.collapsed.symmetric_difference(folders):
                self._change_rows(partial(self._model.collapse, folder, folder in folders))

    def _on_changed(self, changed: Changed, _update: Update | None) -> None:
        store = self._store
        if changed & _CHATS:
            self._change_rows(partial(self._model.show_conversations, tuple(store.conversations.values())))
            folder = store.shown.folder if store.shown is not None else ""
            if changed & Changed.SELECTED and folder in self._model.collapsed:
                self._on_collapsed(folder, False)
        if changed & Changed.CELLS:
            self._model.show_cells(store.cells)
        if changed & _BRANCHES:
            self._model.show_branches(store.branches())
        if changed & Changed.RUNNING:
            self._model.show_running(store.running)
        if changed & Changed.DELETED:
            said, titles = "", store.deleted
            if titles:
                several = tr("Deleted: “{title}” and {n} more") if len(titles) > 1 else ""
                said = (several or tr("Deleted: “{title}”")).format(title=titles[-1], n=f"{len(titles) - 1:,}")
            if said != self.undo.text:
                self.undo.show_text(said)

    def show_found(self, text: str, words: tuple[str, ...], rows: tuple[FoundRow, ...]) -> None:
        """What was found for `text`, which consists of these words; ignored when the typed text has changed since."""
        if text == self.search.text():
            self._found_for = text
            self.results.show_rows(words, rows, {known.id: known.colour for known in self._model.conversations})
            self._show_parts()

    # --- what a person does -------------------------------------------------------------------------------------------

    def focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def rename_shown(self) -> None:
        """Edit the title of the conversation that is shown."""
        row = self.list_shown()
        if row.isValid():
            self.view.setFocus()
            self.view.setCurrentIndex(row)
            self.view.edit(row)

    def list_shown(self) -> QModelIndex:
        """Bring the row of the conversation that is shown into sight, whatever is searched, listed or collapsed."""
        self.search.clear()
        if (shown := self._store.shown) is not None:
            if self._model.shows_archived != shown.archived:
                self._on_archive_clicked()
            if not shown.archived and shown.folder in self._model.collapsed:
                self._on_collapsed(shown.folder, False)
        row = self._model.index_of(self._store.selected)
        self.view.scrollTo(row)
        return row

    def choose_folder(self, known: Conversation) -> None:
        """Open the menu of folders for the conversation that is shown, at its row."""
        menu = QMenu(self)
        self.fill_folder_menu(menu, known)
        row = self.view.visualRect(self.list_shown())
        pop_up(menu, self.view.viewport().mapToGlobal(row.bottomLeft()))
        menu.setActiveAction(menu.actions()[0])

    def menu(self, index: QModelIndex | None = None) -> QMenu | None:
        """What can be done with a row, the current one if none is given; None without a row."""
        index = self.view.currentIndex() if index is None else index
        row: Row | None = index.data(ROW_ROLE) if index.isValid() else None
        if row is None:
            return None
        kept = QPersistentModelIndex(index)  # rows may change while the menu is open

        def rename() -> None:
            self.view.edit(self._model.index(kept.row()))

        return self._chat_menu(row.conversation, rename) if row.conversation else self._folder_menu(row.folder, rename)

    def fill_folder_menu(self, menu: QMenu, known: Conversation) -> None:
        """The folders into which a conversation can go."""
        names = {one.folder for one in self._model.conversations if one.folder}
        for name in ("", *sorted(names, key=str.casefold)):
            action = menu.addAction(name or tr("No folder"), partial(self._commands.move, known.id, name))
            action.setCheckable(True)
            action.setChecked(known.folder == name)
        menu.addSeparator()
        menu.addAction(tr("New folder…"), partial(self._ask_folder, known))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _chat_menu(self, known: Conversation, rename: Callable[[], object]) -> QMenu:
        menu = QMenu(self)
        show_tips_of(menu)
        caption = tr("Rename")
        menu.addAction(f"{caption}\tF2", rename)
        menu.addAction(
            tr("Unpin") if known.pinned else tr("Pin"),
            lambda: self._commands.conversations.arrangement.pin(known.id, pinned=not known.pinned),
        )
        self.fill_folder_menu(menu.addMenu(tr("Move to folder")), known)
        put_away = tr("Take out of the archive") if known.archived else tr("Archive")
        menu.addAction(put_away, lambda: self._commands.archive(known.id, archived=not known.archived))
        export = menu.addAction(tr("Export…"), partial(export_chats, self, self._kit, [known.id]))
        export.setToolTip(tr("Saves it as Markdown, HTML, or JSON with everything"))
        menu.addSeparator()
        self._fill_cache_menu(menu.addMenu(tr("Cache")), known)
        menu.addSeparator()
        caption = tr("Delete")
        menu.addAction(f"{caption}\tDel", partial(self._commands.delete, known.id))
        return menu

    def _fill_cache_menu(self, menu: QMenu, known: Conversation) -> None:
        show_tips_of(menu)
        store = self._store
        why = tr("The engine has stopped.") if store.dead else store.missing(Feature.CACHE_OPERATIONS)
        forget = menu.addAction(tr("Forget cells"), partial(self._commands.submit, Forget(known.id)))
        allow(forget, why, _FORGET_CALL)
        fill_menu(menu, self._kit, known.id)

    def _folder_menu(self, folder: str, rename: Callable[[], object]) -> QMenu:
        menu = QMenu(self)
        show_tips_of(menu)
        caption = tr("Rename the folder")
        menu.addAction(f"{caption}\tF2", rename)
        menu.addAction(tr("Export the chats in it…"), partial(export_folder, self, self._kit, folder))
        arrangement = self._commands.conversations.arrangement
        remove = menu.addAction(tr("Remove the folder"), partial(arrangement.rename_folder, folder, ""))
        remove.setToolTip(tr("Its chats stay, in no folder"))
        return menu

    def _ask_folder(self, known: Conversation) -> None:
        """Ask for the name of a new folder at the row of a chat."""
        self.folder_field.ask(known.id, known.title or tr("New chat"))
        index = self._model.index_of(known.id)
        self.view.scrollTo(index)
        self._place_folder_field()
        self.folder_field.raise_()

    def _place_folder_field(self) -> None:
        """Below its row, or above it if there is no room; at the top if the chat has no row."""
        field, view = self.folder_field, self.view
        if field.isHidden():
            return
        box = view.viewport().geometry().translated(view.mapTo(self, QPoint(0, 0)))
        row = view.visualRect(self._model.index_of(field.conversation)).translated(box.topLeft())
        height = max(field.heightForWidth(box.width()), field.sizeHint().height())
        top = row.bottom() + 1 if row.height() else box.top()
        if top + height > self.height():
            top = row.top() - height
        field.setGeometry(box.left(), max(top, 0), box.width(), height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_folder_field()

    def _make_head(self, theme: Theme) -> QHBoxLayout:
        new = IconButton(theme, "plus", tr("New chat"), clicked=self._kit.act("chat.new"))
        new.setObjectName("newButton")
        settings = IconButton(theme, "settings", tr("Settings"), clicked=self._kit.act("settings.open"))
        settings.setObjectName("settingsButton")
        others = [one.sidebar(self._kit) for one in self._kit.slices if one.sidebar is not None]
        return boxes.row((label(tr("Chats"), weight="strong"), 1), *others, settings, new, spacing=0)

    def _add_keys(self) -> None:
        """Keys that count while the list, or the field above it, has the focus."""
        below = QAction(tr("Go to the list"), self.search, shortcut=QKeySequence(Qt.Key.Key_Down))
        below.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        below.triggered.connect(self._on_search_left)
        self.search.addAction(below)
        for text, keys, slot in (
            (tr("Rename"), QKeySequence(Qt.Key.Key_F2), self._on_rename),
            (tr("Delete"), QKeySequence(QKeySequence.StandardKey.Delete), self._on_delete),
        ):
            action = QAction(text, self.view, shortcut=keys, shortcutContext=Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(lambda _checked, slot=slot: slot())
            self.view.addAction(action)

    def _change_rows(self, change: Callable[[], None]) -> None:
        """Rows change; the conversation that is shown stays the current one, or the folder where somebody is."""
        folder = self.view.folder if has_focus(self.view) else ""
        before = self.view.currentIndex().row()
        self._silent = True
        change()
        row = self._model.index_of_folder(folder) if folder else QModelIndex()
        row = row if row.isValid() else self._model.index_of(self._store.selected)
        if row.isValid():
            self.view.selectionModel().setCurrentIndex(row, QItemSelectionModel.SelectionFlag.ClearAndSelect)
            if row.row() != before:
                self.view.scrollTo(row)
        else:
            self.view.selectionModel().clear()
        self._silent = False
        self._show_parts()

    def _show_parts(self) -> None:
        archived = self._model.shows_archived
        n = sum(known.archived for known in self._model.conversations)
        self.archive.setText(tr("Back to the chats") if archived else tr("Archived ({n})").format(n=f"{n:,}"))
        self.archive.setVisible(n > 0)
        if self.search.text().strip():
            self._none.setText(tr("Nothing found. Titles and texts are searched."))
            if self.results.rows:
                self._stack.setCurrentWidget(self.results)
            elif self._found_for == self.search.text():  # else the database has not answered yet
                self._stack.setCurrentWidget(self._none)
        else:
            self._none.setText(tr("Your chats are listed here. Send a message to start one."))
            self._stack.setCurrentWidget(self.view if self._model.rowCount() else self._none)

    def _on_search_changed(self, text: str) -> None:
        """What was found before stays until something else is found."""
        if not text.strip():
            self.results.show_rows((), (), {})
        self._show_parts()
        self._commands.search(text)

    def _on_search_left(self) -> None:
        """Down: from the field into what is below it."""
        (self.results if self.results.isVisible() else self.view).setFocus()

    def _on_current_changed(self) -> None:
        name = self.view.conversation
        if name and not self._silent:
            self._commands.select(name)

    def _on_collapsed(self, folder: str, collapsed: bool) -> None:
        self._change_rows(partial(self._model.collapse, folder, collapsed))
        self._store.settings.change(collapsed_folders=tuple(sorted(self._model.collapsed)))

    def _on_archive_clicked(self) -> None:
        self._change_rows(partial(self._model.show_archived, not self._model.shows_archived))

    def _on_menu_requested(self, index: QModelIndex, at: QPoint) -> None:
        if (menu := self.menu(index)) is not None:
            menu.aboutToHide.connect(self.view.forget_pointer)
        pop_up(menu, at)

    def _on_rename(self) -> None:
        if self.view.currentIndex().isValid():
            self.view.edit(self.view.currentIndex())

    def _on_delete(self) -> None:
        if name := self.view.conversation:
            self._commands.delete(name)
