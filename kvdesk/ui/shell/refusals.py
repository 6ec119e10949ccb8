"""Why an action of the window cannot be done now: one sentence, empty if it can."""

from kvdesk.protocol.features import Feature
from kvdesk.protocol.model import LocalFile
from kvdesk.translation import tr
from kvdesk.ui.messages.message_menu import why_not_continued, why_not_edited
from kvdesk.ui.shell.window import Window


class Refusals:
    """Looks at the state each time it is asked."""

    def __init__(self, window: Window) -> None:
        self._window, self._store = window, window.store

    def chat(self) -> str:
        """No conversation is shown."""
        return "" if self._store.selected is not None else tr("No chat is open.")

    def find(self) -> str:
        """There is nothing to look through."""
        return "" if self._window.chat.view.last is not None else tr("This chat has no messages.")

    def tokens(self) -> str:
        """There is no token to look at."""
        there = self._window.chat.view.has_probabilities
        return (
            "" if there else tr("No answer of this chat has token probabilities. New ones get them once they are on.")
        )

    def overflow(self) -> str:
        return self.chat() or self._context()

    def branches(self) -> str:
        return "" if self._store.forks else tr("This chat has one branch only.")

    def compare(self) -> str:
        there = self._window.chat.view.comparable is not None
        return "" if there else tr("No question of this chat has several answers. “Answer again” makes another one.")

    def undo_delete(self) -> str:
        if self._store.deleted:
            return ""
        if self._store.selected not in self._store.undeletable:
            return tr("No message of this chat was deleted, and no chat in the last seconds.")
        return self._store.why_busy

    def edit(self) -> str:
        """There is no question that can be edited now."""
        name = self._window.chat.last_question
        question = self._window.chat.view.message(name) if name is not None else None
        return tr("This chat has no question to edit.") if question is None else why_not_edited(self._store, question)

    def go_on(self) -> str:
        """The last answer cannot be continued now."""
        view = self._window.chat.view
        widget = view.widget_of(view.last) if view.last is not None else None
        return why_not_continued(self._store, widget.message if widget is not None else None)

    def stop(self) -> str:
        return "" if self._store.is_answering else tr("No answer is being written in this chat.")

    def regenerate(self) -> str:
        has_messages = bool(self._window.chat.view.widgets)
        return self._store.why_not_answered or self.chat() or ("" if has_messages else tr("This chat has no messages."))

    def model(self) -> str:
        """The engine is gone: no model can be opened, and none answers."""
        return tr("The engine has stopped. Restart kvdesk.") if self._store.dead else ""

    def stop_loading(self) -> str:
        """Nothing is being loaded."""
        return "" if isinstance(self._store.loading, LocalFile) else tr("No model is being loaded.")

    def embedded(self) -> str:
        return self.model() or ("" if self._store.has_embedded else tr("The embedded model is not installed."))

    def audit(self) -> str:
        return self.model() or self._store.missing(Feature.AUDIT) or self._context()

    def forget(self) -> str:
        state, selected = self._store, self._store.selected
        if why := self.model() or state.missing(Feature.CACHE_OPERATIONS) or self.chat():
            return why
        if why := state.why_busy:
            return why
        return "" if selected and state.cells.get(selected, 0) else tr("This chat has no cells in the cache.")

    def rebuild(self) -> str:
        if why := self.model() or self._store.missing(Feature.REBUILD) or self._context():
            return why
        return tr("An answer is being written; stop it first.") if self._store.running else ""

    def _context(self) -> str:
        return "" if self._store.context is not None else tr("No model is open.")
