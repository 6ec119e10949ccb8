"""The main window as its helpers see it: its parts, and what they are made with."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMainWindow

from kvdesk.session import Commands, Store
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.panes import Panes
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme


class Window(QMainWindow):
    """Made by `MainWindow`, once, before whoever works on several of them."""

    closing = Signal()
    """The window is being closed; nothing is asked for after it."""
    kit: Kit
    conversations: ConversationList
    chat: ChatPane
    inspector: Inspector
    panes: Panes
    rooms: Rooms
    activity: ActivityStrip
    unsaved: UnsavedStrip
    status: StatusBar

    @property
    def theme(self) -> Theme:
        return self.kit.theme

    @property
    def store(self) -> Store:
        return self.kit.store

    @property
    def commands(self) -> Commands:
        return self.kit.commands
