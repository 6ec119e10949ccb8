"""The conversations as a list model: rows of chats and of folders, which can be dragged onto each other."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QPersistentModelIndex, Qt

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId
from kvdesk.session import Commands
from kvdesk.translation import plural, tr
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.viewmodel.chat.conversation_rows import Row, conversation_rows

ID_ROLE: Final = Qt.ItemDataRole.UserRole  # of a chat; None for a folder
COLOUR_ROLE: Final = Qt.ItemDataRole.UserRole + 1
CELLS_ROLE: Final = Qt.ItemDataRole.UserRole + 2
RUNNING_ROLE: Final = Qt.ItemDataRole.UserRole + 3
ROW_ROLE: Final = Qt.ItemDataRole.UserRole + 4  # the `Row`
BRANCHES_ROLE: Final = Qt.ItemDataRole.UserRole + 5
Index = QModelIndex | QPersistentModelIndex
_MIME: Final = "application/x-kvdesk-conversation"


class ConversationModel(QAbstractListModel):
    """See `conversation_rows` for their order."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self.conversations: tuple[Conversation, ...] = ()
        """All of them, those that have no row too."""
        self._rows: tuple[Row, ...] = ()
        self.collapsed: frozenset[str] = frozenset()
        """The folders whose chats are not listed."""
        self.shows_archived = False
        """Whether the archive is listed, else all others."""
        self._cells: Mapping[ConversationId, int] = {}
        self._branches: Mapping[ConversationId, tuple[int, ...]] = {}
        self._running: frozenset[ConversationId] = frozenset()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show_conversations(self, conversations: Sequence[Conversation]) -> None:
        self.conversations = tuple(conversations)
        self.shows_archived = self.shows_archived and any(known.archived for known in conversations)
        self._make_rows()

    def collapse(self, folder: str, collapsed: bool) -> None:
        """List the chats of a folder, or only its head."""
        self.collapsed = self.collapsed | {folder} if collapsed else self.collapsed - {folder}
        self._make_rows()

    def show_archived(self, archived: bool) -> None:
        """List the archive, or all others."""
        self.shows_archived = archived
        self._make_rows()

    def show_cells(self, cells: Mapping[ConversationId, int]) -> None:
        """Numbers of cells; those of conversations that are being answered are not drawn, and change all the time."""
        before, self._cells = self._cells, dict(cells)
        for number, row in enumerate(self._rows):
            name = row.conversation.id if row.conversation is not None else ConversationId("")
            if name not in self._running and before.get(name, 0) != cells.get(name, 0):
                self.dataChanged.emit(self.index(number), self.index(number))

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
        """The row of a conversation; an invalid index if it has none."""
        return self._index_of(("chat", name or ""))

    def index_of_folder(self, folder: str) -> QModelIndex:
        """The head of a folder; an invalid index if it does not exist."""
        return self._index_of(("folder", folder))

    # --- Qt's model ---------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        if role == ROW_ROLE:
            return row
        return self._folder_data(row, role) if row.conversation is None else self._chat_data(row.conversation, role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        name = " ".join(str(value).split())
        row = self._rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or not name:
            return False
        if row.conversation is None:
            if name != row.folder:
                self._commands.conversations.arrangement.rename_folder(row.folder, name)
        elif name != row.conversation.title:
            self._commands.conversations.rename(row.conversation.id, name)
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if not index.isValid():
            return flags | Qt.ItemFlag.ItemIsDropEnabled
        drag = Qt.ItemFlag.ItemIsDragEnabled if self.data(index, ID_ROLE) else Qt.ItemFlag.NoItemFlags
        return flags | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsDropEnabled | drag

    # --- dragging -----------------------------------------------------------------------------------------------------

    def mimeTypes(self) -> list[str]:
        return [_MIME]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        dragged = QMimeData()
        dragged.setData(_MIME, "".join(index.data(ID_ROLE) or "" for index in indexes).encode())
        return dragged

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def dropMimeData(self, data: QMimeData, _action: Qt.DropAction, _row: int, _column: int, parent: Index) -> bool:
        """Dropped on a folder, or a chat that is in one: into that folder; elsewhere: out of its folder."""
        name = bytes(data.data(_MIME).data()).decode("utf-8", "replace")
        onto: Row | None = parent.data(ROW_ROLE) if parent.isValid() else None
        if name:
            self._commands.move(ConversationId(name), onto.target_folder if onto is not None else "")
        return False  # Qt moves no rows

    # --- inside -------------------------------------------------------------------------------------------------------

    def _make_rows(self) -> None:
        rows = conversation_rows(self.conversations, self.collapsed, archived=self.shows_archived)
        if [row.key for row in rows] == [row.key for row in self._rows]:
            self._rows = rows
            self._redraw()
            return
        self.layoutAboutToBeChanged.emit()  # not a reset, which would end the editing of a name
        before = self.persistentIndexList()
        keys = [self._rows[index.row()].key for index in before]
        self._rows = rows
        self.changePersistentIndexList(before, [self._index_of(key) for key in keys])
        self.layoutChanged.emit()

    def _redraw(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def _index_of(self, key: tuple[str, str]) -> QModelIndex:
        found = (self.index(number) for number, row in enumerate(self._rows) if row.key == key)
        return next(found, QModelIndex())

    def _folder_data(self, row: Row, role: int) -> Any:
        match role:
            case Qt.ItemDataRole.EditRole | Qt.ItemDataRole.DisplayRole:
                return row.folder
            case Qt.ItemDataRole.AccessibleTextRole:
                how = tr("open") if row.is_open else tr("collapsed")
                return tr("Folder {name}, {state}, chats: {n}").format(name=row.folder, state=how, n=f"{row.n:,}")
            case _:
                return None

    def _chat_data(self, chat: Conversation, role: int) -> Any:
        match role:
            case Qt.ItemDataRole.EditRole:
                return chat.title
            case Qt.ItemDataRole.DisplayRole:
                return _title(chat)
            case Qt.ItemDataRole.ToolTipRole:
                n = len(self._branches.get(chat.id, ()))
                branches = plural("1 branch is in the cache", "%n branches are in the cache", n) if n else ""
                return plain_tip(f"{_title(chat)}\n{branches}".rstrip())
            case Qt.ItemDataRole.AccessibleTextRole:
                cells, n = self._cells.get(chat.id, 0), len(self._branches.get(chat.id, ()))
                held = (
                    plural("1 cell in the cache", "%n cells in the cache", cells) if cells else tr("not in the cache")
                )
                branches = plural("1 branch in the cache", "%n branches in the cache", n) if cells and n else ""
                parts = (_title(chat), tr("pinned") if chat.pinned else "", held, branches)
                return tr(", ").join(part for part in parts if part)
            case _:
                return self._own_data(chat, role)

    def _own_data(self, chat: Conversation, role: int) -> Any:
        if role == ID_ROLE:
            return chat.id
        if role == COLOUR_ROLE:
            return chat.colour
        if role == CELLS_ROLE:
            return self._cells.get(chat.id, 0)
        if role == RUNNING_ROLE:
            return chat.id in self._running
        if role == BRANCHES_ROLE:
            return self._branches.get(chat.id, ())
        return None


def _title(chat: Conversation) -> str:
    """What stands for it in the list."""
    return chat.title or tr("New chat")
