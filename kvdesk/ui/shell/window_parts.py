"""The parts of the main window, for those that work on several of them."""

from __future__ import annotations

from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.event_router import EventRouter
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.menus import Menus
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.ui.shell.panes import Panes
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from kvdesk.ui.shell.window_signals import WindowSignals
from kvdesk.ui.widgets.theme import Theme
from kvdesk.values import dataclass
from kvdesk.viewmodel.cache_state import CacheState


@dataclass(frozen=True, slots=True)
class WindowParts:
    """Made by the main window, once. `window` is the window itself: what it sends, and the parent of its dialogs."""

    window: WindowSignals
    theme: Theme
    state: CacheState
    conversations: ConversationList
    chat: ChatPane
    inspector: Inspector
    panes: Panes
    rooms: Rooms
    activity: ActivityStrip
    unsaved: UnsavedStrip
    status: StatusBar
    operations: OperationsController
    menus: Menus
    events: EventRouter
