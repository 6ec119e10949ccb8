"""The main window. It shows what is in the store, and calls the commands; a controller carries them out."""

from collections.abc import Sequence
from typing import cast

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QHideEvent,
    QKeyEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from kvdesk.session import Changed, Commands, Store
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.action_table import BUTTONS, widget_keys, window_actions
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.announcer import Announcer
from kvdesk.ui.shell.chat_parameters import ChatParameters
from kvdesk.ui.shell.field_keys import FieldKeys
from kvdesk.ui.shell.file_drops import FileDrops
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.numbers import Numbers
from kvdesk.ui.shell.panes import Panes
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.selection_links import SelectionLinks
from kvdesk.ui.shell.slices import SLICES
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from kvdesk.ui.shell.verbs import Verbs
from kvdesk.ui.shell.window import Window
from kvdesk.ui.shell.window_help import WindowHelp
from kvdesk.ui.shell.window_place import WindowPlacement
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.reading_order import focus_next
from kvdesk.ui.widgets.access.typing import is_menu_key, is_typing, open_menu_of, presses
from kvdesk.ui.widgets.actions import ActionSet
from kvdesk.ui.widgets.controls import Rule
from kvdesk.ui.widgets.floating import Floating
from kvdesk.ui.widgets.kit import Kit, Slice
from kvdesk.ui.widgets.style.icons import application_icon
from kvdesk.ui.widgets.style.theme import Theme


class MainWindow(Window):
    """Three panes and a status line; two panes can be hidden.

    `verbs`, `shown_settings` and `chat_parameters` do what takes several parts; `help` shows the actions of `kit`.
    """

    def __init__(
        self,
        app: QApplication,
        store: Store | None = None,
        commands: Commands | None = None,
        slices: Sequence[Slice] = SLICES,
    ) -> None:
        super().__init__()
        store = store or Store()
        self.setWindowTitle("kvdesk")
        self.setWindowIcon(application_icon())
        self.setAcceptDrops(True)
        self._watched: bool | None = None
        self.asks_before_closing = True
        """Whether closing asks while messages are not saved. Not when the system ends the session."""
        settings = store.settings.current
        theme = Theme(app, self, settings.theme, unstyled=True)
        theme.set_size(settings.zoom, settings.font_px)
        QApplication.sendEvent(self, QEvent(QEvent.Type.ApplicationFontChange))  # Qt does so in its event loop only
        self.kit = kit = Kit(theme, store, commands or Commands(), ActionSet(self, store.notify), tuple(slices))
        self.conversations, self.chat, self.inspector = ConversationList(kit), ChatPane(kit), Inspector(kit)
        self.activity, self.unsaved = ActivityStrip(theme, store, kit.commands), UnsavedStrip(kit)
        self.status = StatusBar(kit)
        self.panes = Panes(kit, self.conversations, self.chat, self.inspector)
        self.rooms = Rooms(kit, self.panes)
        self._lay_out()
        self.shown_settings = WindowSettings(self)
        self.chat_parameters = ChatParameters(self)
        self.help = WindowHelp(self, widget_keys)
        self.verbs = Verbs(self, self.shown_settings, self.chat_parameters)
        kit.actions.add(*window_actions(self, self.verbs, self.shown_settings, self.help))
        for button, action in BUTTONS.items():
            kit.actions.name_button(cast("QWidget", self.findChild(QWidget, button)), action)
        self.drops = FileDrops(self)
        self._placement = WindowPlacement(self, self.panes, store.settings)
        self._announcer = Announcer(store, self.chat)
        self._field_keys = FieldKeys(self)
        self._numbers = Numbers(self, store)
        self._links = SelectionLinks(self, store, self.chat.view, self.inspector)
        self.rooms.switched.connect(self._on_room_switched)
        self.inspector.tab_shown.connect(self._tell_watched)
        self.panes.folded.connect(self._tell_watched)
        self.help.explaining.connect(self._tell_watched)
        self.destroyed.connect(store.listen(lambda *_: self._tell_watched(), Changed.SERVED))
        self.shown_settings.show_changed(frozenset())
        theme.style()
        self._placement.restore()
        self.chat.composer.focus_edit()

    @property
    def action_set(self) -> ActionSet:
        return self.kit.actions

    def _lay_out(self) -> None:
        centre = QWidget()
        boxes.column((self.rooms, 1), Rule(), self.unsaved, self.status, on=centre, margins=0, spacing=0)
        over = self.rooms, self.inspector, self.chat.messages
        self._floating = Floating(self.activity, centre, over, self._under_notices)
        self.rooms.switched.connect(self._floating.place)
        self.setCentralWidget(centre)
        self.setAnimated(False)  # there are no docks; a new size of the status line is no reason to animate anything

    def _under_notices(self) -> QWidget:
        """What notices float over: the inspector, the messages without it, or another room."""
        if not self.rooms.shows_chats:
            return self.rooms
        return self.chat.messages if self.inspector.isHidden() else self.inspector

    def _on_room_switched(self) -> None:
        self._tell_watched()
        if self.rooms.shows_chats:
            self.chat.composer.focus_edit()

    def _tell_watched(self) -> None:
        serves = self.rooms.shown == "settings" and bool(self.store.served.address)  # what programs keep is shown there
        read = serves or self.help.explained is not None
        shown = self.isVisible() and not self.isMinimized() and (self.rooms.shows_chats or read)
        watched = shown and (read or (not self.inspector.isHidden() and self.inspector.shows_cache))
        if watched != self._watched and (shown or self._watched):
            self._watched = watched
            if not watched:
                self.store.count()
                self.store.forget_view()
            self.commands.watch(watched)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        """Tab. Qt asks too when what has the focus is hidden or disabled: one then goes on in the composer, in another
        room where one began, not on whatever comes next.
        """
        now = cast("QWidget | None", self.focusWidget())
        leaving = now is not None and not (now.isVisible() and now.isEnabled())
        if leaving and self.chat.composer.isVisible():
            self.chat.composer.focus_edit()
            return True
        if leaving and not self.rooms.shows_chats:
            self.rooms.focus_first()
            return True
        return focus_next(self, forward=next)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What nothing in the window has taken: typing goes to the message field, Enter presses a button, Shift+F10,
        which Qt does not know everywhere, opens the menu of what has the focus.
        """
        composer, focus = self.chat.composer, cast("QWidget | None", self.focusWidget())
        if focus is not None and is_menu_key(event):
            open_menu_of(focus)
        elif presses(focus, event):
            pass
        elif is_typing(event) and self.rooms.shows_chats and not composer.isHidden():
            self.panes.show_chat()
            composer.focus_edit()
            QApplication.sendEvent(composer.edit, event)
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self, self._tell_watched)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tell_watched()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self._tell_watched()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self.drops.enter(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self.drops.move(event)

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.drops.leave()

    def dropEvent(self, event: QDropEvent) -> None:
        self.drops.drop(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.asks_before_closing and not self.unsaved.may_close(self):
            event.ignore()
            return
        self.chat.drafts.keep()
        self._placement.keep()
        self.closing.emit()
        event.accept()
