"""What a person wants of chats, model and cache: from pressed buttons, keys and menus to the window's signals.

Every method can be called at any time: what is not possible now does nothing. `refusals` says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from kvdesk.chat import Conversation, ConversationId
from kvdesk.settings import ContextSettings, Overflow
from kvdesk.translation import tr
from kvdesk.ui.shell.chat_files import ChatFiles
from kvdesk.ui.shell.message_intents import MessageIntents
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.ui.widgets.choose_file import ask_for_file, ask_where_to_save

if TYPE_CHECKING:
    from kvdesk.ui.cache.instruments import Instruments
    from kvdesk.ui.models.page import ModelsPage


class Intents(QObject):
    """Connects the parts of the window with its signals."""

    def __init__(self, parts: WindowParts, settings: WindowSettings) -> None:
        super().__init__(parts.window)
        self._parts, self._settings, self._window = parts, settings, parts.window
        self.files = ChatFiles(parts)
        self.has_embedded = False
        """Whether there is an embedded model to open."""
        self.messages = MessageIntents(parts)
        self._messages_last = False  # messages were deleted after the last chat that was
        self._connect_chats()
        self._connect_cache()

    @property
    def selected(self) -> ConversationId | None:
        """The conversation that is shown."""
        return self._parts.events.selected

    @property
    def is_answering(self) -> bool:
        """Whether an answer is being written in the conversation that is shown."""
        return self.selected is not None and self._parts.events.is_running(self.selected)

    # --- chats --------------------------------------------------------------------------------------------------------

    @Slot()
    def new_chat(self) -> None:
        """The next message that is typed begins a new chat."""
        self._window.new_chat_requested.emit()
        self._parts.chat.composer.focus_edit()

    @Slot()
    def focus_search(self) -> None:
        self._show_list()
        self._parts.conversations.focus_search()

    def find(self) -> None:
        """Find a text in the chat that is open."""
        self._parts.chat.leave_comparison()
        self._parts.chat.find_bar.ask()

    def step_hit(self, by: int) -> None:
        """Go to the next hit (1) of what is looked for in this chat, else to the next message that the search through
        all chats found; -1: to the one before. Else search.
        """
        if not self._parts.chat.find_bar.isHidden():
            self._parts.chat.find_bar.step(by)
        elif self._parts.conversations.search.text():
            self._parts.conversations.results.step(by)
        else:
            self.focus_search()

    def compare(self) -> None:
        """Put the answers to the last question that has several side by side."""
        view = self._parts.chat.view
        if view.comparable is not None:
            view.compare_clicked.emit(view.comparable)

    def rename(self) -> None:
        """Edit the title of the chat that is shown, in the list."""
        self._show_list()
        self._parts.conversations.rename_shown()

    def pin(self) -> None:
        """Pin the chat that is shown, or take it off again."""
        if (known := self._shown) is not None:
            self._parts.conversations.pinned.emit(known.id, not known.pinned)

    def archive(self) -> None:
        """Archive the chat that is shown, or take it out of the archive."""
        if (known := self._shown) is not None:
            self._parts.conversations.archived.emit(known.id, not known.archived)

    def move(self) -> None:
        """Choose a folder for the chat that is shown."""
        if (known := self._shown) is not None:
            self._show_list()
            self._parts.conversations.choose_folder(known)

    def delete(self) -> None:
        """Delete the chat that is shown; it can be undone."""
        if self.selected is not None:
            self._show_list()
            self._window.conversation_deleted.emit(self.selected)

    def undo_delete(self) -> None:
        """Bring back what was deleted last: a chat, or messages of the one that is shown."""
        can = self._parts.chat.can_undelete
        if self._parts.conversations.undo.text and not (can and self._messages_last):
            self._parts.conversations.undo_clicked.emit()
        elif can:
            self.messages.undelete()

    @Slot()
    def _on_message_deleted(self) -> None:
        self._messages_last = True

    @Slot()
    def _on_conversation_deleted(self) -> None:
        self._messages_last = False

    @property
    def _shown(self) -> Conversation | None:
        return self._parts.state.conversations.get(self.selected) if self.selected is not None else None

    def _show_list(self) -> None:
        if self._parts.conversations.isHidden():
            self._settings.toggle_sidebar()

    @Slot()
    def stop(self) -> None:
        """Stop the answer of the conversation that is shown."""
        if self.selected is not None and self.is_answering:
            self._window.stop_requested.emit(self.selected)

    @Slot()
    def escape(self) -> None:
        """Leave another room, a question, the search, or a message that is edited; stop the answer; close "Why?", and
        dismiss the newest notice.
        """
        made, conversations = self._parts.inspector.cache.made_instruments, self._parts.conversations
        if self._parts.activity.has_keyboard:
            self._parts.activity.dismiss()
        elif not self._parts.rooms.shows_chats:
            self._parts.rooms.leave()
        elif conversations.folder_field.isVisible():
            conversations.folder_field.leave()
        elif made is not None and made.question.isVisible():
            made.question.refuse()
        elif made is not None and made.compaction.isVisible():
            made.compaction.refuse()
        elif conversations.search.hasFocus() or conversations.results.hasFocus():
            conversations.search.clear()
            self._parts.chat.composer.focus_edit()
        elif self._parts.panes.shows_parameters and self._in_parameters:
            self._parts.panes.hide_parameters()
        elif self._parts.chat.leave():
            pass
        elif self._parts.chat.view.is_editing:
            self._parts.chat.view.end_edit()
        elif self.is_answering:
            self.stop()
        elif not self._parts.chat.view.close_reasons():
            self._parts.activity.dismiss()

    @property
    def _in_parameters(self) -> bool:
        """Whether the focus is in the parameters, or they stand in the chat's place."""
        panes, focus = self._parts.panes, cast("QWidget | None", self._window.focusWidget())
        return self._parts.chat.isHidden() or (focus is not None and panes.is_in_parameters(focus))

    @Slot()
    @Slot(int)
    def regenerate(self, n: int = 1) -> None:
        """Make the last answer again, n times at once."""
        can = self._parts.chat.can_chat and not self._parts.events.is_dead
        if can and self.selected is not None and not self.is_answering:
            self._window.regenerate_requested.emit(self.selected, n)

    @Slot(str)
    def _on_sent(self, text: str) -> None:
        self._parts.chat.banner.hide()
        self._window.message_sent.emit(self.selected or "", text)

    @Slot(str)
    def _on_starter(self, name: str) -> None:
        self._parts.chat.banner.hide()
        self._window.starter_requested.emit(name)
        self._parts.chat.composer.focus_edit()

    @Slot(str, str)
    def _on_draft_changed(self, text: str, replaced: str) -> None:
        if self.selected is not None and not self._parts.events.is_dead:
            self._window.draft_changed.emit(self.selected, text, replaced)

    @Slot(object)
    def _on_overflow_chosen(self, overflow: Overflow) -> None:
        if self.selected is not None:
            self._window.overflow_chosen.emit(self.selected, overflow)
            self._parts.chat.composer.ask_again()

    @Slot(str)
    def _on_branch_clicked(self, message: str) -> None:
        if self.selected is not None and not self.is_answering:
            self._window.branch_requested.emit(self.selected, message)

    # --- model and cache ----------------------------------------------------------------------------------------------

    @Slot(object)
    def connect_models(self, page: ModelsPage) -> None:
        """What the page of models asks of the window."""
        page.open_requested.connect(self.open_found)
        page.file_clicked.connect(self.open_model)

    @Slot(object)
    def open_found(self, path: Path) -> None:
        """Open a model that is known, and show the conversations."""
        if not self._parts.events.is_dead:
            self._parts.rooms.show_chats()
            self._window.model_open_requested.emit(str(path))

    @Slot()
    def open_model(self) -> None:
        """Ask for a file."""
        if self._parts.events.is_dead:
            return
        kinds = tr("GGUF models (*.gguf);;All files (*)")
        if file := ask_for_file(self._window, tr("Open a model"), kinds):
            self._window.model_open_requested.emit(str(file))

    @Slot()
    def open_state(self) -> None:
        """Ask for a saved KV cache to look into."""
        if file := ask_for_file(self._window, tr("Open a saved cache"), tr("All files (*)")):
            self._window.state_open_requested.emit(str(file))

    @Slot()
    def connect_server(self) -> None:
        """Ask for a server."""
        if not self._parts.events.is_dead:
            self._settings.open_connecting()

    @Slot()
    def forget(self) -> None:
        """Remove the cells of the conversation that is shown."""
        if self.selected is not None:
            self._window.forget_requested.emit(self.selected)

    @Slot()
    def rebuild(self) -> None:
        """Make the context anew with the settings it has, without a question."""
        self._parts.events.start_rebuild()
        self._window.rebuild_requested.emit(self._settings.current.context, "nothing")

    @Slot()
    def ask_rebuild(self) -> None:
        """Make the context anew; where cells would be lost, say first what that costs."""
        if not self._parts.operations.ask_rebuild(self._settings.current.context):
            self.rebuild()

    @Slot()
    def save_report(self) -> None:
        """Save the differences between the map and the engine."""
        if file := ask_where_to_save(self._window, tr("Save the report"), "kvdesk-mismatch.json", tr("JSON (*.json)")):
            self._window.report_requested.emit(str(file))

    @Slot(object, str)
    def _on_rebuild_chosen(self, context: ContextSettings, keep: str) -> None:
        if not self._parts.events.is_dead:
            self._parts.events.start_rebuild()
        self._parts.rooms.show_chats()
        self._parts.chat.composer.focus_edit()
        self._window.rebuild_requested.emit(context, keep)

    # --- who is heard -------------------------------------------------------------------------------------------------

    def _connect_chats(self) -> None:
        window, chat, menus = self._window, self._parts.chat, self._parts.menus
        conversations = self._parts.conversations
        conversations.new_clicked.connect(self.new_chat)
        conversations.settings_clicked.connect(self._settings.open)
        conversations.lab_clicked.connect(self._parts.rooms.show_lab)
        self._parts.rooms.models_made.connect(self.connect_models)
        conversations.selected.connect(window.conversation_selected)
        conversations.search_changed.connect(window.search_requested)
        conversations.renamed.connect(window.conversation_renamed)
        conversations.deleted.connect(window.conversation_deleted)
        conversations.forget_clicked.connect(window.forget_requested)
        window.message_deleted.connect(self._on_message_deleted)
        window.conversation_deleted.connect(self._on_conversation_deleted)
        conversations.menu_shown.connect(menus.fill_conversation_menu)
        chat.sent.connect(self._on_sent)
        chat.overflow_chosen.connect(self._on_overflow_chosen)
        chat.larger_clicked.connect(self._settings.open_context)
        chat.draft_changed.connect(self._on_draft_changed)
        chat.draft_typed.connect(window.draft_typed)
        chat.embedded_clicked.connect(window.embedded_model_requested)
        chat.reconnect_clicked.connect(window.reconnect_requested)
        chat.view.edit_clicked.connect(menus.start_edit)
        chat.view.shorten_clicked.connect(menus.start_edit)
        chat.view.branch_clicked.connect(self._on_branch_clicked)
        chat.view.menu_requested.connect(menus.show_message_menu)
        chat.stop_clicked.connect(self.stop)
        chat.regenerate_clicked.connect(self.regenerate)
        menus.regenerate_clicked.connect(self.regenerate)
        chat.open_model_clicked.connect(self.open_model)
        chat.server_clicked.connect(self.connect_server)
        chat.models_clicked.connect(self._parts.rooms.show_models)
        chat.better_clicked.connect(self._parts.rooms.show_get_models)
        chat.starter_clicked.connect(self._on_starter)
        chat.offer_clicked.connect(window.offer_requested)
        chat.found_clicked.connect(self.open_found)
        chat.sidebar_clicked.connect(self._settings.toggle_sidebar)
        chat.inspector_clicked.connect(self._settings.toggle_inspector)
        self._parts.unsaved.save_requested.connect(window.unsaved_save_requested)

    @Slot(object)
    def _connect_instruments(self, made: Instruments) -> None:
        made.question.chosen.connect(self._on_rebuild_chosen)
        for card in (made.question, made.compaction):
            card.cancelled.connect(self._parts.chat.composer.focus_edit)

    def _connect_cache(self) -> None:
        window, inspector, operations = self._window, self._parts.inspector, self._parts.operations
        self._parts.status.audit_clicked.connect(window.audit_requested)
        self._parts.status.save_clicked.connect(self.save_report)
        self._parts.status.serving_clicked.connect(self._settings.open_serving)
        inspector.close_clicked.connect(self._settings.toggle_inspector)
        inspector.all_wanted.connect(self._settings.show_instruments)
        inspector.forget_clicked.connect(self.forget)
        inspector.rebuild_clicked.connect(self.ask_rebuild)
        inspector.cache.when_made(self._connect_instruments)
        inspector.export_requested.connect(window.journal_save_requested)
        self._parts.activity.cancel_clicked.connect(window.cancel_requested)
        operations.command.connect(window.command_requested)
        operations.fork_requested.connect(window.fork_requested)
        operations.rebuild_clicked.connect(self._settings.open_context)
        self._settings.rebuild_chosen.connect(self._on_rebuild_chosen)
