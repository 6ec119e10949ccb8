"""What actions do that takes several parts of the window.

Every method can be called at any time: what is not possible now does nothing. `refusals` says why.
"""

from kvdesk.protocol.cache import Forget
from kvdesk.translation import tr
from kvdesk.ui.chat_list.chat_files import export_chats
from kvdesk.ui.shell.chat_parameters import ChatParameters
from kvdesk.ui.shell.window import Window
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.ui.widgets.choose_file import ask_for_file


class Verbs:
    """Of the chat that is shown, if not said otherwise."""

    def __init__(self, window: Window, settings: WindowSettings, parameters: ChatParameters) -> None:
        self._window, self._settings = window, settings
        self._store, self._commands = window.store, window.commands
        self.toggle_parameters = parameters.toggle

    def new_chat(self) -> None:
        """The next message that is typed begins a new chat."""
        self._commands.new_chat()
        self._window.conversations.list_shown()
        self._window.chat.composer.focus_edit()

    def search(self) -> None:
        self._show_list()
        self._window.conversations.focus_search()

    def step_hit(self, by: int) -> None:
        """Go to the next hit (1) of what is looked for in this chat, else to the next message that the search through
        all chats found; -1: to the one before. Else search.
        """
        if not self._window.chat.find_bar.isHidden():
            self._window.chat.find_bar.step(by)
        elif self._window.conversations.search.text():
            self._window.conversations.results.step(by)
        else:
            self.search()

    def compare(self) -> None:
        """Put the answers to the last question that has several side by side."""
        answer, selected = self._window.chat.view.comparable, self._store.selected
        if answer is not None and selected is not None:
            self._commands.compare(selected, answer)

    def regenerate(self, n: int = 1) -> None:
        """Make the last answer again, n times at once."""
        if self._store.idle is not None:
            self._commands.conversations.turns.regenerate(self._store.idle, n)

    def go_on(self) -> None:
        """Continue the last answer where it ended."""
        if self._store.idle is not None:
            self._window.chat.banner.hide()
            self._commands.conversations.turns.continue_answer(self._store.idle)

    def stop(self) -> None:
        if self._store.selected is not None and self._store.is_answering:
            self._commands.conversations.stop(self._store.selected)

    def export(self, *, everything: bool) -> None:
        """This chat, or all there are, archived ones too."""
        selected = [self._store.selected] if self._store.selected is not None else []
        export_chats(self._window, self._window.kit, tuple(self._store.conversations) if everything else selected)

    # --- its place in the list ----------------------------------------------------------------------------------------

    def rename(self) -> None:
        """Edit its title, in the list."""
        self._show_list()
        self._window.conversations.rename_shown()

    def pin(self) -> None:
        """Pin it, or take it off again."""
        if (known := self._store.shown) is not None:
            self._commands.conversations.arrangement.pin(known.id, pinned=not known.pinned)

    def archive(self) -> None:
        """Archive it, or take it out of the archive."""
        if (known := self._store.shown) is not None:
            self._commands.archive(known.id, archived=not known.archived)

    def move(self) -> None:
        """Choose a folder for it."""
        if (known := self._store.shown) is not None:
            self._show_list()
            self._window.conversations.choose_folder(known)

    def delete(self) -> None:
        """Delete it; it can be undone."""
        if self._store.selected is not None:
            self._show_list()
            self._commands.delete(self._store.selected)

    def undo_delete(self) -> None:
        """Bring back what was deleted last: a chat, or messages of the one that is shown."""
        can = self._store.selected in self._store.undeletable
        if self._store.deleted and not (can and self._store.messages_last):
            self._commands.undo_delete()
        elif can:
            self._window.chat.undelete()

    def _show_list(self) -> None:
        if self._window.conversations.isHidden():
            self._settings.toggle_sidebar()

    # --- model and cache ----------------------------------------------------------------------------------------------

    def open_model(self) -> None:
        """Ask for a file."""
        kinds = tr("GGUF models (*.gguf);;All files (*)")
        if not self._store.dead and (file := ask_for_file(self._window, tr("Open a model"), kinds)):
            self._commands.open_model(file)

    def open_state(self) -> None:
        """Ask for a saved KV cache to look into."""
        if file := ask_for_file(self._window, tr("Open a saved cache"), tr("All files (*)")):
            self._commands.open_state(file)

    def forget(self) -> None:
        """Remove its cells."""
        if self._store.selected is not None:
            self._commands.submit(Forget(self._store.selected))

    def ask_rebuild(self) -> None:
        """Rebuild the context; if cells would be lost, say first what that costs."""
        context = self._store.settings.current.context
        if not self._window.inspector.cache.answers.ask_rebuild(context):
            self._window.kit.actions.run("chat.write")
            self._commands.rebuild(context, "nothing")


def escape(window: Window) -> None:
    """Leave another room, a question, the search, what is in the chat's place, or a message that is edited; stop the
    answer; close a token or "Why?", and dismiss the newest notice.
    """
    made, chats, chat = window.inspector.cache.made_instruments, window.conversations, window.chat
    if window.activity.has_keyboard:
        window.activity.dismiss()
    elif not window.rooms.shows_chats:
        window.rooms.leave()
    elif chats.folder_field.isVisible():
        chats.folder_field.leave()
    elif made is not None and made.question.isVisible():
        made.question.refuse()
    elif made is not None and made.compaction.isVisible():
        made.compaction.refuse()
    elif chats.search.hasFocus() or chats.results.hasFocus():
        chats.search.clear()
        window.panes.show_chat()
        chat.composer.focus_edit()
    elif window.panes.leave() or chat.leave():
        pass
    elif chat.view.is_editing:
        chat.view.end_edit()
    elif window.store.is_answering:
        window.kit.actions.run("chat.stop")
    elif not (chat.view.close_token() or chat.view.close_reasons()):
        window.activity.dismiss()
