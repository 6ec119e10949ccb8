"""The menus of a message and of a conversation: what can be done with the text, and with its cells."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QPoint, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from kvdesk.chat import ConversationId, MessageId
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.viewmodel.cache_state import CacheState


class Menus(QObject):
    """Makes a menu when it is asked for; what concerns the cache is added by the controller of operations."""

    regenerate_clicked = Signal(int)

    def __init__(self, parent: QWidget, chat: ChatPane, operations: OperationsController, state: CacheState) -> None:
        super().__init__(parent)
        self._parent, self._chat, self._operations, self._state = parent, chat, operations, state

    @Slot(str)
    def start_edit(self, message: str) -> None:
        """Bring a message of a person back into the composer."""
        widget = self._chat.view.widget_of(MessageId(message))
        can = self._chat.can_chat and not self._busy
        if can and widget is not None and widget.message.role == "user":
            self._chat.start_edit(widget.message)

    def message_menu(self, message: MessageId) -> QMenu | None:
        """The menu of a message; None where it is not shown."""
        widget = self._chat.view.widget_of(message)
        if widget is None:
            return None
        menu = QMenu(self._parent)
        menu.setToolTipsVisible(True)
        clipboard = QGuiApplication.clipboard()
        selected, text = widget.selected_text, widget.message.text
        if selected:
            menu.addAction("Copy the selection", lambda: clipboard.setText(selected))
        menu.addAction("Copy the message", lambda: clipboard.setText(text))
        if widget.message.role == "user":
            edit = menu.addAction("Edit…", lambda: self.start_edit(message))
            edit.setToolTip("Puts it into the message box; what you send becomes a new branch, this one stays")
            edit.setEnabled(not self._busy and self._chat.can_chat)
        elif message == self._chat.view.last:
            for n, name in ((1, "Answer again"), (3, "Three more answers at once")):
                again = menu.addAction(name, partial(self.regenerate_clicked.emit, n))
                again.setEnabled(not self._busy and self._chat.can_chat and not self._state.dead)
                again.setToolTip("Each answer becomes a branch; the question is prefilled only once")
        menu.addSeparator()
        self._operations.fill_message_menu(menu, widget.message.conversation, message)
        return menu

    @Slot(str, QPoint)
    def show_message_menu(self, message: str, at: QPoint) -> None:
        if (menu := self.message_menu(MessageId(message))) is not None:
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(at)

    @Slot(str, object)
    def fill_conversation_menu(self, conversation: str, menu: QMenu) -> None:
        """The cells of a conversation, below what the list itself offers."""
        self._operations.fill_menu(menu, ConversationId(conversation))

    @property
    def _busy(self) -> bool:
        return self._state.selected in self._state.running
