"""The main window. Passive: it shows what its methods are told and says by its signals (`window_signals`) what a person
wants; a controller does the rest.

Methods (facts; main thread only)
    set_place(place)                        where it was last; after `set_settings`, before it is shown
    set_settings(settings)                  show them; sends nothing but `inspector_watched`
    show_conversations(conversations, selected_id)   the list, top first; selected_id None for none
    show_messages(conversation_id, messages)         all its messages; ignored unless it is selected
    show_branches(conversation_id, branches)         messages with others at their place, and all of those by id in the
                                            order they were made; after `show_messages`, which forgets them
    show_embedded(available)                whether there is an embedded model to open
    show_result(sentence, tone)             over the status line, until dismissed; tone "good", "warning", "danger", ""
    show_found(text, conversation_ids)      the conversations in whose stored texts `text` was found
    append_message(message), update_message(message) ignored for conversations that are not shown. For a turn append the
                                            typed message, then the answer with state "streaming" and no text
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
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QFileDialog, QVBoxLayout, QWidget

from kvdesk.chat import Conversation, ConversationId, Message, MessageId
from kvdesk.protocol.messages import Event
from kvdesk.settings import ContextSettings, Overflow, Settings, ThemeChoice, WindowPlace
from kvdesk.ui.chat.caption import Caption
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat.conversation_list import ConversationList
from kvdesk.ui.settings.panel import SettingsPanel
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.event_router import EventRouter
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.shell.menus import Menus
from kvdesk.ui.shell.operations_controller import OperationsController
from kvdesk.ui.shell.panes import Panes
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.selection_links import SelectionLinks
from kvdesk.ui.shell.shortcuts import Shortcut, add_shortcuts
from kvdesk.ui.shell.status_bar import StatusBar
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from kvdesk.ui.shell.window_place import WindowPlacement
from kvdesk.ui.shell.window_signals import WindowSignals
from kvdesk.ui.widgets.controls import Rule
from kvdesk.ui.widgets.icons import application_icon
from kvdesk.ui.widgets.reading_order import focus_next
from kvdesk.ui.widgets.save_file import ask_where_to_save
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState


class MainWindow(WindowSignals):
    """Three panes and a status line; two panes can be hidden. `theme`: the one it opens with."""

    def __init__(self, app: QApplication, theme: ThemeChoice = ThemeChoice.SYSTEM) -> None:
        super().__init__()
        self.setWindowTitle("kvdesk")
        self.setWindowIcon(application_icon())
        self.setAcceptDrops(True)
        self._theme = Theme(app, self, theme)
        self._settings = Settings()
        self._watched: bool | None = None
        self._list = ConversationList(self._theme)
        self._chat = ChatPane(self._theme)
        self._state = CacheState()
        self._inspector = Inspector(self._theme, self._state)
        self._strip = ActivityStrip(self._theme)
        self._unsaved = UnsavedStrip()
        self.asks_before_closing = True
        """Whether closing asks while messages are not saved. Not when the system ends the session."""
        self._status = StatusBar()
        self._settings_panel: SettingsPanel | None = None
        self._operations = OperationsController(self, self._theme, self._state, self._inspector, self._strip)
        self._menus = Menus(self, self._chat, self._operations, self._state)
        self._menus.regenerate_clicked.connect(self.regenerate)
        self._events = EventRouter(
            self, self._state, self._list, self._chat, self._inspector, self._status, self._operations
        )
        self._panes = Panes(self._list, self._chat, self._inspector)
        self._rooms = Rooms(self._theme, self._panes)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._rooms, 1)
        column.addWidget(Rule())
        column.addWidget(self._unsaved)
        column.addWidget(self._strip)
        column.addWidget(self._status)
        self.setCentralWidget(centre)
        self.setAnimated(False)  # there are no docks; a new size of the status line is no reason to animate anything
        self._placement = WindowPlacement(self, self._panes)
        self._placement.changed.connect(self._on_place_changed)
        self.set_place(WindowPlace())
        self._caption = Caption(self._chat, self._chat.composer)
        self._links = SelectionLinks(self, self._state, self._chat.view, self._inspector)
        self._connect()
        add_shortcuts(self, self._shortcuts())
        self._chat.composer.focus_edit()

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
        return self._operations

    def set_place(self, place: WindowPlace) -> None:
        """Where it was last, as far as the screens there are allow it. Before it is shown."""
        self._placement.restore(place)

    def set_settings(self, settings: Settings) -> None:
        self._settings = settings
        self._events.show_default_overflow(settings.cache.overflow)
        self._theme.set_theme(settings.theme)
        self._panes.fold(self._settings)
        if self._settings_panel is not None:
            self._settings_panel.show_settings(settings)
        self._tell_watched()

    def show_conversations(self, conversations: Sequence[Conversation], selected_id: ConversationId | None) -> None:
        self._events.show_conversations(conversations, selected_id)

    def show_messages(self, conversation_id: ConversationId, messages: Sequence[Message]) -> None:
        self._events.show_messages(conversation_id, messages)

    def show_branches(
        self, conversation_id: ConversationId, branches: Mapping[MessageId, tuple[MessageId, ...]]
    ) -> None:
        if conversation_id == self.selected:
            self._chat.view.show_branches(branches)

    def show_embedded(self, available: bool) -> None:
        self._chat.show_embedded(available)

    def show_result(self, sentence: str, tone: str = "") -> None:
        self._strip.show_result(sentence, tone)

    def show_found(self, text: str, conversations: Sequence[ConversationId]) -> None:
        self._list.show_found(text, conversations)

    def append_message(self, message: Message) -> None:
        self._events.append_message(message)

    def update_message(self, message: Message) -> None:
        self._events.update_message(message)

    def apply_event(self, event: Event) -> None:
        self._events.apply(event)
        if self._settings_panel is not None:
            self._settings_panel.apply_event(event)

    def show_unsaved(self, sentence: str) -> None:
        self._unsaved.show_unsaved(sentence)

    def show_error(self, sentence: str, detail: str = "") -> None:
        self._chat.banner.show_error(sentence, detail)

    def show_caption(self, text: str) -> None:
        """Words over the window while the guided tour runs; empty takes them away."""
        self._caption.show_text(text)

    @Slot()
    def toggle_sidebar(self) -> None:
        shown = self._list.isHidden()
        beside = self._settings.inspector_visible and not (shown and self._panes.is_narrow)
        self._change(sidebar_visible=shown, inspector_visible=beside)

    @Slot()
    def toggle_inspector(self) -> None:
        self._change(inspector_visible=not self._settings.inspector_visible)

    @Slot()
    def toggle_instruments(self) -> None:
        self.show_instruments(not self._settings.all_instruments or self._inspector.isHidden())

    @Slot(bool)
    def show_instruments(self, shows_all: bool) -> None:
        """All of the inspector; else the cell map and four numbers."""
        self._change(all_instruments=shows_all, inspector_visible=True)

    @Slot()
    def focus_search(self) -> None:
        if self._list.isHidden():
            self.toggle_sidebar()
        self._list.focus_search()

    @Slot()
    def open_settings(self) -> None:
        if self._settings_panel is None:
            self._settings_panel = SettingsPanel(self._theme, self, self._state)
            self._settings_panel.applied.connect(self._on_settings_applied)
            self._settings_panel.rebuild_clicked.connect(self._on_rebuild_clicked)
            self._settings_panel.preview_asked.connect(self.command_requested)
        if not self._settings_panel.isVisible():
            self._settings_panel.reset(self._settings)
        self._settings_panel.show()
        self._settings_panel.raise_()
        self._settings_panel.activateWindow()

    @Slot()
    def open_context_settings(self) -> None:
        """The settings, at the context: what a rebuild would make."""
        self.open_settings()
        if self._settings_panel is not None:
            self._settings_panel.show_context()

    @Slot()
    def open_model(self) -> None:
        if self._events.is_dead:
            return
        path, _ = QFileDialog.getOpenFileName(self, "Open a model", "", "GGUF models (*.gguf);;All files (*)")
        if path:
            self.model_open_requested.emit(path)

    @Slot()
    def stop(self) -> None:
        """Stop the answer of the shown conversation; leave the laboratory, a question, the search, or a message that is
        edited.
        """
        if self._rooms.shows_lab:
            self._rooms.show_chats()
            return
        if self._list.is_asking:
            self._list.refuse_delete()
            return
        if self._inspector.cache.question.isVisible():
            self._inspector.cache.question.refuse()
            return
        if self._list.search.hasFocus():
            self._list.search.clear()
            self._chat.composer.focus_edit()
            return
        if self._chat.is_editing:
            self._chat.end_edit()
            return
        if self.selected is not None and self._events.is_running(self.selected):
            self.stop_requested.emit(self.selected)

    @Slot(str)
    def export_chat(self, conversation: str) -> None:
        title = self._state.conversations[ConversationId(conversation)].title or "New chat"
        name = "".join(c if c.isalnum() or c in " -_" else "_" for c in title).strip()
        if file := ask_where_to_save(self, "Export the chat", f"{name}.md", "Markdown (*.md)"):
            self.chat_save_requested.emit(str(file), conversation)

    @Slot()
    @Slot(int)
    def regenerate(self, n: int = 1) -> None:
        can = self._chat.can_chat and not self._events.is_dead
        if can and self.selected is not None and not self._events.is_running(self.selected):
            self.regenerate_requested.emit(self.selected, n)

    @Slot(str, str)
    def _on_draft_changed(self, text: str, replaced: str) -> None:
        if self.selected is not None and not self._events.is_dead:
            self.draft_changed.emit(self.selected, text, replaced)

    @Slot()
    def forget(self) -> None:
        if self.selected is not None:
            self.forget_requested.emit(self.selected)

    @Slot()
    def rebuild(self) -> None:
        self._events.start_rebuild()
        self.rebuild_requested.emit(self._settings.context, "nothing")

    @Slot()
    def _ask_rebuild(self) -> None:
        if not self._operations.ask_rebuild(self._settings.context):
            self.rebuild()

    @Slot()
    def save_report(self) -> None:
        if file := ask_where_to_save(self, "Save the report", "kvdesk-mismatch.json", "JSON (*.json)"):
            self.report_requested.emit(str(file))

    @Slot()
    def _on_new_clicked(self) -> None:
        """The next message that is typed begins a new chat."""
        self.new_chat_requested.emit()
        self._chat.composer.focus_edit()

    @Slot(str)
    def _on_sent(self, text: str) -> None:
        self._chat.banner.hide()
        self.message_sent.emit(self.selected or "", text)

    @Slot(str, str)
    def _on_edited(self, message: str, text: str) -> None:
        self._chat.banner.hide()
        self.message_edited.emit(self.selected or "", message, text)

    @Slot(object)
    def _on_overflow_chosen(self, overflow: Overflow) -> None:
        if self.selected is not None:
            self.overflow_chosen.emit(self.selected, overflow)
            self._chat.composer.ask_again()

    @Slot(str)
    def _on_branch_clicked(self, message: str) -> None:
        if self.selected is not None and not self._events.is_running(self.selected):
            self.branch_requested.emit(self.selected, message)

    @Slot(object)
    def _on_settings_applied(self, settings: Settings) -> None:
        """All but the context, which `rebuild_requested` is for."""
        kept = ("sidebar_visible", "inspector_visible", "all_instruments", "window", "context")
        self._settings = settings.model_copy(update={name: getattr(self._settings, name) for name in kept})
        self._theme.set_theme(settings.theme)
        self.settings_changed.emit(self._settings)

    @Slot(object, str)
    def _on_rebuild_clicked(self, context: ContextSettings, keep: str) -> None:
        if not self._events.is_dead:
            self._events.start_rebuild()
        self.activateWindow()
        self._chat.composer.focus_edit()
        self.rebuild_requested.emit(context, keep)

    def _connect(self) -> None:
        self._list.new_clicked.connect(self._on_new_clicked)
        self._list.settings_clicked.connect(self.open_settings)
        self._list.lab_clicked.connect(self._rooms.show_lab)
        self._rooms.switched.connect(self._on_room_switched)
        self._list.selected.connect(self.conversation_selected)
        self._list.search_changed.connect(self.search_requested)
        self._list.renamed.connect(self.conversation_renamed)
        self._list.deleted.connect(self.conversation_deleted)
        self._list.forget_clicked.connect(self.forget_requested)
        self._list.export_clicked.connect(self.export_chat)
        self._chat.sent.connect(self._on_sent)
        self._chat.overflow_chosen.connect(self._on_overflow_chosen)
        self._chat.edited.connect(self._on_edited)
        self._chat.larger_clicked.connect(self.open_context_settings)
        self._chat.draft_changed.connect(self._on_draft_changed)
        self._chat.draft_typed.connect(self.draft_typed)
        self._chat.embedded_clicked.connect(self.embedded_model_requested)
        self._chat.view.edit_clicked.connect(self._menus.start_edit)
        self._chat.view.shorten_clicked.connect(self._menus.start_edit)
        self._chat.view.branch_clicked.connect(self._on_branch_clicked)
        self._chat.view.menu_requested.connect(self._menus.show_message_menu)
        self._list.menu_shown.connect(self._menus.fill_conversation_menu)
        self._chat.stop_clicked.connect(self.stop)
        self._chat.regenerate_clicked.connect(self.regenerate)
        self._chat.open_model_clicked.connect(self.open_model)
        self._chat.sidebar_clicked.connect(self.toggle_sidebar)
        self._chat.inspector_clicked.connect(self.toggle_inspector)
        self._status.audit_clicked.connect(self.audit_requested)
        self._status.save_clicked.connect(self.save_report)
        self._inspector.close_clicked.connect(self.toggle_inspector)
        self._inspector.all_wanted.connect(self.show_instruments)
        self._inspector.forget_clicked.connect(self.forget)
        self._inspector.rebuild_clicked.connect(self._ask_rebuild)
        self._inspector.cache.question.chosen.connect(self._on_rebuild_clicked)
        self._inspector.cache.question.cancelled.connect(self._chat.composer.focus_edit)
        self._inspector.tab_shown.connect(self._tell_watched)
        self._inspector.timeline.export_requested.connect(self.journal_save_requested)
        self._strip.cancel_clicked.connect(self.cancel_requested)
        self._unsaved.save_requested.connect(self.unsaved_save_requested)
        self._operations.command.connect(self.command_requested)
        self._operations.fork_requested.connect(self.fork_requested)
        self._operations.rebuild_clicked.connect(self.open_context_settings)

    def _shortcuts(self) -> tuple[Shortcut, ...]:
        there = self._rooms.in_chats
        return (
            ("New chat", "Ctrl+N", there(self.new_chat_requested.emit)),
            ("Search the conversations", "Ctrl+K", there(self.focus_search)),
            ("Show or hide the conversations", "Ctrl+B", there(self.toggle_sidebar)),
            ("Show or hide the cache inspector", "Ctrl+I", there(self.toggle_inspector)),
            ("Show more of the inspector, or the map and four numbers", "Ctrl+Shift+I", there(self.toggle_instruments)),
            ("Show the laboratory, or the conversations", "Ctrl+Shift+L", self._rooms.toggle_lab),
            ("Settings", "Ctrl+,", self.open_settings),
            ("Open a model", "Ctrl+O", self.open_model),
            ("Answer again", "Ctrl+R", there(self.regenerate)),
            ("Write a message", "Ctrl+L", there(self._chat.composer.focus_edit)),
            ("Stop", "Esc", self.stop),
            ("Show or hide the drawing times of the cell map", "Ctrl+Shift+D", self._inspector.cell_map.toggle_overlay),
            ("Quit", "Ctrl+Q", self.close),
        )

    def _change(self, **fields: bool) -> None:
        self._settings = self._settings.model_copy(update=fields)
        self._panes.fold(self._settings)
        self._tell_watched()
        self.settings_changed.emit(self._settings)

    @Slot(object)
    def _on_place_changed(self, place: WindowPlace) -> None:
        self._settings = self._settings.model_copy(update={"window": place})
        self.place_changed.emit(place)

    @Slot()
    def _on_room_switched(self) -> None:
        self._tell_watched()
        if not self._rooms.shows_lab:
            self._chat.composer.focus_edit()

    @Slot()
    def _tell_watched(self) -> None:
        shown = self.isVisible() and not self.isMinimized() and not self._rooms.shows_lab
        watched = shown and self._settings.inspector_visible and self._inspector.shows_cache
        if watched != self._watched and (shown or self._watched):
            self._watched = watched
            if not watched:
                self._events.stop_watching()
            self.inspector_watched.emit(watched)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        """Tab. Qt asks too when what has the focus is hidden or disabled: one then goes on in the composer, not on
        whatever comes next.
        """
        now = cast("QWidget | None", self.focusWidget())
        leaving = now is not None and not (now.isVisible() and now.isEnabled())
        if leaving and self._chat.composer.isVisible():
            self._chat.composer.focus_edit()
            return True
        return focus_next(self, forward=next)

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
        files = [url.toLocalFile().lower() for url in event.mimeData().urls()]
        if not self._events.is_dead and any(file.endswith(".gguf") for file in files):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if url.toLocalFile().lower().endswith(".gguf"):
                event.acceptProposedAction()
                self.model_open_requested.emit(url.toLocalFile())
                return

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.asks_before_closing and not self._unsaved.may_close(self):
            event.ignore()
            return
        self._chat.tell_draft()
        self._placement.tell()
        self.closing.emit()
        event.accept()
