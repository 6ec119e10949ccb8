"""The main window. Passive: it shows what its methods are told and says by its signals (`window_signals`) what a person
wants; a controller does the rest.

Methods (facts; main thread only)
    show_conversations(conversations, selected_id)   the list, top first; selected_id None for none
    show_messages(conversation_id, messages)         all its messages; ignored unless it is selected
    show_branches(conversation_id, branches)         messages with others at their place, and all of those by id in the
                                            order they were made; after `show_messages`, which forgets them
    show_embedded(available)                whether there is an embedded model to open
    show_serving(address, n_running)        other programs are served there, and so many requests of them now; "": none
    show_result(sentence, tone, file)       floats at the bottom, until dismissed; tone "good", "warning", "danger", "".
                                            file: what was saved, whose folder can be opened
    append_message(message), update_message(message) ignored for conversations that are not shown. For a turn append the
                                            typed message, then the answer with state "streaming" and no text
    remove_messages(conversation_id, deleted, messages)   they are no more; `messages` are all that are shown now
    apply_event(event)                      every event of `kvdesk.protocol.messages`, of any conversation. TextDelta
                                            adds to the text of the shown answer and TurnEnded sets its state, stats and
                                            note: an `update_message` with the same values afterwards changes nothing
    show_caption(text)                      the words of the guided tour, over everything; empty hides them
    show_error(sentence, detail)            inline, over the composer, until dismissed
    show_unsaved(sentence)                  over the status line until it is empty; closing asks meanwhile
    selected (property)                     ConversationId | None
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from PySide6.QtCore import QEvent, QTimer, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QHideEvent,
    QKeyEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from kvdesk.chat import Conversation, ConversationId, Message, MessageId
from kvdesk.protocol.messages import Event
from kvdesk.session import Store
from kvdesk.state_files.signs import looks_like_state
from kvdesk.ui.chat.caption import Caption
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.action_table import BUTTONS, widget_keys, window_actions
from kvdesk.ui.shell.actions import ActionSet
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.announcer import Announcer
from kvdesk.ui.shell.chat_parameters import ChatParameters
from kvdesk.ui.shell.event_router import EventRouter
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.intents import Intents
from kvdesk.ui.shell.menus import Menus
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.ui.shell.panes import Panes
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.selection_links import SelectionLinks
from kvdesk.ui.shell.setting_actions import setting_actions
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from kvdesk.ui.shell.window_help import WindowHelp
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.shell.window_place import WindowPlacement
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.ui.shell.window_signals import WindowSignals
from kvdesk.ui.widgets.controls import Rule
from kvdesk.ui.widgets.floating import Floating
from kvdesk.ui.widgets.icons import application_icon
from kvdesk.ui.widgets.reading_order import focus_next
from kvdesk.ui.widgets.theme import Theme
from kvdesk.ui.widgets.typing import is_menu_key, is_typing, open_menu_of
from kvdesk.viewmodel.cache_state import CacheState
from kvdesk.viewmodel.measurements import Measurements


class MainWindow(WindowSignals):
    """Three panes and a status line; two panes can be hidden. `session`: whose settings it shows and changes.

    What a person does goes by `intents` and `shown_settings` to the window's signals; `action_set` has all actions,
    `help` shows them.
    """

    def __init__(self, app: QApplication, session: Store | None = None) -> None:
        super().__init__()
        self.session = session or Store()
        self.setWindowTitle("kvdesk")
        self.setWindowIcon(application_icon())
        self.setAcceptDrops(True)
        self._app = app
        self._watched: bool | None = None
        self.asks_before_closing = True
        """Whether closing asks while messages are not saved. Not when the system ends the session."""
        self._state, self._measured, self._token_texts = CacheState(), Measurements(), dict[int, str]()
        self._placement = WindowPlacement(self, self.session.settings)
        self._make()
        self._placement.restore()
        self.destroyed.connect(self.session.settings.listen(self._on_settings_changed))
        self._chat.composer.focus_edit()

    def _make(self) -> None:
        """Everything that has texts, and what works with it."""
        settings = self.session.settings.current
        theme = Theme(self._app, self, settings.theme, unstyled=True)
        theme.set_size(settings.zoom, settings.font_px)
        QApplication.sendEvent(self, QEvent(QEvent.Type.ApplicationFontChange))  # Qt does so in its event loop only
        self._parts = parts = self._make_parts(theme)
        self._theme, self._events, self._menus = parts.theme, parts.events, parts.menus
        self._list, self._chat, self._inspector = parts.conversations, parts.chat, parts.inspector
        self._panes, self._rooms = parts.panes, parts.rooms
        self._strip, self._unsaved, self._status = parts.activity, parts.unsaved, parts.status
        self._lay_out()
        self.shown_settings = WindowSettings(parts, self.session.settings)
        self.chat_parameters = ChatParameters(parts, self.shown_settings, self.session.settings)
        self.intents = Intents(parts, self.shown_settings)
        self.help = WindowHelp(parts)
        self.action_set = ActionSet(
            self,
            window_actions(parts, self.intents, self.shown_settings, self.help),
            self.show_result,
        )
        for button, action in BUTTONS.items():
            self.action_set.name_button(cast("QWidget", self.findChild(QWidget, button)), action)
        self.help.tour_started.connect(self.shown_settings.keep_tour_seen)
        self.help.connect_actions(
            self.action_set, widget_keys, lambda: setting_actions(self.shown_settings.open_setting)
        )
        self._placement.use(self._panes)
        self._caption = Caption(self._chat, self._chat.composer)
        self._announcer = Announcer(parts.state, parts.chat)
        self._links = SelectionLinks(self, self._state, self._chat.view, self._inspector)
        self._rooms.switched.connect(self._on_room_switched)
        self._inspector.tab_shown.connect(self._tell_watched)
        self.shown_settings.shown.connect(self._tell_watched)
        self.shown_settings.show_all()
        theme.style()

    def _make_parts(self, theme: Theme) -> WindowParts:
        settings, state = self.session.settings, self._state
        conversations, chat = ConversationList(theme), ChatPane(theme)
        inspector = Inspector(theme, state, self._measured, self._token_texts)
        strip, unsaved, status = ActivityStrip(theme), UnsavedStrip(), StatusBar()
        operations = OperationsController(self, state, inspector, strip)
        menus = Menus(self, chat, operations, state)
        events = EventRouter(self, state, conversations, chat, inspector, status, operations)
        panes = Panes(theme, settings, conversations, chat, inspector)
        rooms = Rooms(theme, panes, settings, state)
        return WindowParts(
            window=self,
            theme=theme,
            state=state,
            conversations=conversations,
            chat=chat,
            inspector=inspector,
            panes=panes,
            rooms=rooms,
            activity=strip,
            unsaved=unsaved,
            status=status,
            operations=operations,
            menus=menus,
            events=events,
        )

    def _lay_out(self) -> None:
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._rooms, 1)
        column.addWidget(Rule())
        column.addWidget(self._unsaved)
        column.addWidget(self._status)
        over = self._rooms, self._inspector, self._chat.messages
        self._floating = Floating(self._strip, centre, over, self._under_notices)
        self._rooms.switched.connect(self._floating.place)
        self.setCentralWidget(centre)
        self.setAnimated(False)  # there are no docks; a new size of the status line is no reason to animate anything

    def _under_notices(self) -> QWidget:
        """What notices float over: the inspector, the messages without it, or another room."""
        if not self._rooms.shows_chats:
            return self._rooms
        return self._chat.messages if self._inspector.isHidden() else self._inspector

    @property
    def selected(self) -> ConversationId | None:
        return self._events.selected

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def conversations(self) -> ConversationList:
        return self._list

    @property
    def chat(self) -> ChatPane:
        return self._chat

    @property
    def inspector(self) -> Inspector:
        return self._inspector

    @property
    def rooms(self) -> Rooms:
        return self._rooms

    @property
    def status(self) -> StatusBar:
        return self._status

    @property
    def activity(self) -> ActivityStrip:
        return self._strip

    @property
    def unsaved(self) -> UnsavedStrip:
        return self._unsaved

    @property
    def operations(self) -> OperationsController:
        return self._parts.operations

    def show_conversations(self, conversations: Sequence[Conversation], selected_id: ConversationId | None) -> None:
        self._events.show_conversations(conversations, selected_id)
        self.chat_parameters.refresh()

    def show_messages(self, conversation_id: ConversationId, messages: Sequence[Message]) -> None:
        self._events.show_messages(conversation_id, messages)
        self.chat_parameters.messages_shown()

    def show_branches(
        self, conversation_id: ConversationId, branches: Mapping[MessageId, tuple[MessageId, ...]]
    ) -> None:
        if conversation_id == self.selected:
            self._chat.show_branches(branches)

    def show_embedded(self, available: bool) -> None:
        self._chat.show_embedded(available)
        self.intents.has_embedded = available

    def show_better(self, there: bool) -> None:
        """Whether the way to better models is shown: the embedded model is open."""
        self._chat.show_better(there)

    def show_result(self, sentence: str, tone: str = "", file: str = "") -> None:
        self._strip.show_result(sentence, tone, file)

    def append_message(self, message: Message) -> None:
        self._events.append_message(message)

    def update_message(self, message: Message) -> None:
        self._events.update_message(message)

    def remove_messages(
        self, conversation_id: ConversationId, deleted: Sequence[MessageId], messages: Sequence[Message]
    ) -> None:
        self._events.remove_messages(conversation_id, deleted, messages)

    def apply_event(self, event: Event) -> None:
        self._events.apply(event)
        self._announcer.apply(event)
        self.shown_settings.apply_event(event)
        self.chat_parameters.apply_event(event)

    def show_serving(self, address: str, n_running: int) -> None:
        self._status.show_serving(address, n_running)
        self._tell_watched()

    def show_unsaved(self, sentence: str) -> None:
        self._unsaved.show_unsaved(sentence)

    def show_error(self, sentence: str, detail: str = "") -> None:
        self._chat.banner.show_error(sentence, detail)

    def show_caption(self, text: str) -> None:
        """Words over the window while the guided tour runs; empty takes them away."""
        self._caption.show_text(text)

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        self.shown_settings.show_changed(changed)

    @Slot()
    def _on_room_switched(self) -> None:
        self._tell_watched()
        if self._rooms.shows_chats:
            self._chat.composer.focus_edit()

    @Slot()
    def _tell_watched(self) -> None:
        settings = self._rooms.settings if self._rooms.shows_settings else None
        serves = settings is not None and settings.serving.serve.isChecked()  # what is kept for programs is shown there
        shown = self.isVisible() and not self.isMinimized() and (self._rooms.shows_chats or serves)
        watched = shown and (serves or (not self._inspector.isHidden() and self._inspector.shows_cache))
        if watched != self._watched and (shown or self._watched):
            self._watched = watched
            if not watched:
                self._events.stop_watching()
            self.inspector_watched.emit(watched)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        """Tab. Qt asks too when what has the focus is hidden or disabled: one then goes on in the composer, in another
        room where one began, not on whatever comes next.
        """
        now = cast("QWidget | None", self.focusWidget())
        leaving = now is not None and not (now.isVisible() and now.isEnabled())
        if leaving and self._chat.composer.isVisible():
            self._chat.composer.focus_edit()
            return True
        if leaving and not self._rooms.shows_chats:
            self._rooms.focus_first()
            return True
        return focus_next(self, forward=next)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What nothing in the window has taken: typing goes to the message field, and Shift+F10, which Qt does not know
        everywhere, opens the menu of what has the focus.
        """
        composer, focus = self._chat.composer, cast("QWidget | None", self.focusWidget())
        if focus is not None and is_menu_key(event):
            open_menu_of(focus)
        elif is_typing(event) and self._rooms.shows_chats and composer.isVisible():
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
        files = [url.toLocalFile() for url in event.mimeData().urls()]
        is_model = not self._events.is_dead and any(file.lower().endswith(".gguf") for file in files)
        if is_model or any(map(looks_like_state, files)) or self.intents.files.chats_in(files):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if url.toLocalFile().lower().endswith(".gguf"):
                event.acceptProposedAction()
                self.model_open_requested.emit(url.toLocalFile())
                return
        files = [url.toLocalFile() for url in event.mimeData().urls()]
        if states := [file for file in files if looks_like_state(file)]:
            event.acceptProposedAction()
            for file in states:
                self.state_open_requested.emit(file)
        elif chats := self.intents.files.chats_in(files):
            event.acceptProposedAction()
            self.import_requested.emit(chats)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.asks_before_closing and not self._unsaved.may_close(self):
            event.ignore()
            return
        self._chat.tell_draft()
        self._placement.keep()
        self.closing.emit()
        event.accept()
