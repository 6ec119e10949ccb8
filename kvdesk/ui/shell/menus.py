"""The menus of a message and of a conversation: what can be done with the text, and with its cells."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QPoint, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from kvdesk.chat import ConversationId, Message, MessageId, ended_early
from kvdesk.translation import tr
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.markdown.plain_text import plain_text
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.viewmodel.cache_state import CacheState


class Menus(QObject):
    """Makes a menu when it is asked for; what concerns the cache is added by the controller of operations."""

    regenerate_clicked = Signal(int)
    continue_clicked = Signal(str)  # message
    pin_clicked = Signal(str, bool)  # message, whether it is to be pinned
    delete_clicked = Signal(str, bool)  # message, whether its question or answer goes too

    def __init__(self, parent: QWidget, chat: ChatPane, operations: OperationsController, state: CacheState) -> None:
        super().__init__(parent)
        self._parent, self._chat, self._operations, self._state = parent, chat, operations, state

    @Slot(str)
    def start_edit(self, message: str) -> None:
        """Edit a message in its place."""
        known = self._chat.view.message(MessageId(message))
        if known is not None and not self._busy and (self._chat.can_chat or known.role == "assistant"):
            self._chat.view.start_edit(known.id)

    def message_menu(self, message: MessageId) -> QMenu | None:
        """The menu of a message; None where it is not shown."""
        widget = self._chat.view.widget_of(message)
        if widget is None:
            return None
        menu = QMenu(self._parent)
        menu.setToolTipsVisible(True)
        self._add_copies(menu, widget)
        self._add_changes(menu, widget)
        if widget.message.role == "assistant" and message == self._chat.view.last:
            for n, name in ((1, tr("Answer again")), (3, tr("Three more answers at once"))):
                again = menu.addAction(name, partial(self.regenerate_clicked.emit, n))
                again.setEnabled(not self._busy and self._chat.can_chat and not self._state.dead)
                again.setToolTip(tr("Each answer becomes a branch; the question is prefilled only once"))
        menu.addSeparator()
        self._operations.fill_message_menu(menu, widget.message.conversation, message)
        self._add_deletions(menu, widget.message)
        return menu

    def _add_copies(self, menu: QMenu, widget: MessageWidget) -> None:
        clipboard, message = QGuiApplication.clipboard(), widget.message
        if selected := widget.selected_text:
            menu.addAction(tr("Copy the selection"), lambda: clipboard.setText(selected))
        if message.role != "assistant":
            menu.addAction(tr("Copy the message"), lambda: clipboard.setText(message.text))
            return
        menu.addAction(tr("Copy as Markdown"), lambda: clipboard.setText(message.text))
        menu.addAction(tr("Copy as plain text"), lambda: clipboard.setText(plain_text(message.text)))

    def _add_changes(self, menu: QMenu, widget: MessageWidget) -> None:
        """Edit, continue, pin."""
        message = widget.message
        if message.role == "user":
            edit = menu.addAction(tr("Edit…"), partial(self.start_edit, message.id))
            edit.setToolTip(tr("Edit it here, and have that answered in a new branch; this one stays"))
            edit.setEnabled(not self._busy and self._chat.can_chat)
        elif message.role == "assistant" and message.text:
            edit = menu.addAction(tr("Edit the answer…"), partial(self.start_edit, message.id))
            edit.setToolTip(tr("Your text becomes a version beside this one; the model can continue it"))
            edit.setEnabled(not self._busy)
            go_on = menu.addAction(tr("Continue the answer"), partial(self.continue_clicked.emit, message.id))
            why, tip = self.why_not_continued(message), tr("Continue where it ended: only new tokens are computed")
            if message.id != self._chat.view.last:
                tip = tr("It goes on in a version beside it, on a branch of its own; what follows it here stays")
            go_on.setToolTip(why or tip)
            go_on.setEnabled(not why)
        pin = menu.addAction(tr("Pin") if not message.pinned else tr("Unpin"))
        pin.triggered.connect(lambda: self.pin_clicked.emit(message.id, not message.pinned))
        pin.setToolTip(tr("Pinned messages are listed over the chat. A pin does not keep a message in the context."))
        pin.setEnabled(message.state != "streaming")

    def _add_deletions(self, menu: QMenu, message: Message) -> None:
        menu.addSeparator()
        for with_pair, name, tip in (
            (False, tr("Delete this message"), tr("Only this one: what follows stays. It can be undone")),
            (True, tr("Delete question and answer"), tr("The question with all versions of its answer")),
        ):
            delete = menu.addAction(name, partial(self.delete_clicked.emit, message.id, with_pair))
            delete.setToolTip(tip)
            delete.setEnabled(not self._busy)

    @property
    def no_answer(self) -> str:
        """Said where there is nothing to continue."""
        return tr("This chat has no answer to continue.")

    def why_not_continued(self, message: Message) -> str:
        """Why this answer cannot be continued now; "" where it can."""
        if message.role != "assistant":
            return self.no_answer
        if self._busy:
            return tr("An answer is being written; stop it first.")
        if not ended_early(message):
            return tr("The model has ended this answer by itself.")
        return self._chat.view.why_not_continued

    @Slot(str, QPoint)
    def show_message_menu(self, message: str, at: QPoint) -> None:
        if (menu := self.message_menu(MessageId(message))) is not None:
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(at)

    @Slot(str, object)
    def fill_conversation_menu(self, conversation: str, menu: QMenu) -> None:
        """Operations on the cells of a conversation, below what the list itself offers."""
        self._operations.fill_menu(menu, ConversationId(conversation))

    @property
    def _busy(self) -> bool:
        return self._state.selected in self._state.running
