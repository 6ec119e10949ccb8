"""Why an action of the window cannot be done now: one sentence, empty where it can."""

from __future__ import annotations

from kvdesk.errors import NO_TOKENIZER
from kvdesk.protocol.features import Feature
from kvdesk.translation import tr
from kvdesk.ui.shell.intents import Intents
from kvdesk.ui.shell.window_parts import WindowParts


class Refusals:
    """Looks at the state each time it is asked."""

    def __init__(self, parts: WindowParts, intents: Intents) -> None:
        self._parts, self._intents = parts, intents

    def chat(self) -> str:
        """No conversation is shown."""
        return "" if self._intents.selected is not None else tr("No chat is open.")

    def find(self) -> str:
        """There is nothing to look through."""
        return "" if self._parts.chat.view.last is not None else tr("This chat has no messages.")

    def overflow(self) -> str:
        return self.chat() or self._context()

    def branches(self) -> str:
        return "" if self._parts.chat.view.has_branches else tr("This chat has one branch only.")

    def compare(self) -> str:
        there = self._parts.chat.view.comparable is not None
        return "" if there else tr("No question of this chat has several answers. “Answer again” makes another one.")

    def undo_delete(self) -> str:
        if self._parts.conversations.undo.text:
            return ""
        if not self._parts.chat.can_undelete:
            return tr("No message of this chat was deleted, and no chat in the last seconds.")
        return tr("An answer is being written; stop it first.") if self._intents.is_answering else ""

    def stop(self) -> str:
        return "" if self._intents.is_answering else tr("No answer is being written in this chat.")

    def regenerate(self) -> str:
        if not self._parts.chat.can_chat:
            return tr(NO_TOKENIZER)
        if self._intents.is_answering:
            return tr("An answer is being written; stop it first.")
        has_messages = bool(self._parts.chat.view.widgets)
        return self.model() or self.chat() or ("" if has_messages else tr("This chat has no messages."))

    def model(self) -> str:
        """The engine is gone: no model can be opened, and none answers."""
        return tr("The engine has stopped. Restart kvdesk.") if self._parts.events.is_dead else ""

    def embedded(self) -> str:
        return self.model() or ("" if self._intents.has_embedded else tr("The embedded model is not installed."))

    def audit(self) -> str:
        return self.model() or self._parts.state.missing(Feature.AUDIT) or self._context()

    def forget(self) -> str:
        state, selected = self._parts.state, self._intents.selected
        if why := self.model() or state.missing(Feature.CACHE_OPERATIONS) or self.chat():
            return why
        if self._intents.is_answering:
            return tr("An answer is being written; stop it first.")
        return "" if selected and state.cells.get(selected, 0) else tr("This chat has no cells in the cache.")

    def rebuild(self) -> str:
        if why := self.model() or self._parts.state.missing(Feature.REBUILD) or self._context():
            return why
        return tr("An answer is being written; stop it first.") if self._parts.state.running else ""

    def _context(self) -> str:
        return "" if self._parts.state.context is not None else tr("No model is open.")
