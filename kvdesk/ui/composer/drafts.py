"""What is typed and not sent, also into messages that are being edited: kept while one types, for each conversation."""

from typing import Final

from PySide6.QtCore import QObject

from kvdesk.message import ConversationId, MessageId
from kvdesk.ui.composer.composer import Composer
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once

KEEP_MS: Final = 50
"""What is typed is kept at most so much later, and written `store.writer.INTERVAL_S` after that: 250 ms with all."""


class Drafts(QObject):
    """Those of the conversation that is shown are in `composer` and `view`."""

    def __init__(self, kit: Kit, composer: Composer, view: ChatView) -> None:
        super().__init__(composer)
        self._store, self._commands, self._composer, self._view = kit.store, kit.commands, composer, view
        self._texts: dict[ConversationId | None, str] = {}
        self._edits: dict[ConversationId | None, dict[MessageId, str]] = {}  # of deleted messages too
        self._of: ConversationId | None = None  # whose draft is in the composer
        self._untold = False  # something was typed that is not kept
        self._keeping = once(self, KEEP_MS, self.keep)
        composer.text_changed.connect(self._on_typed)
        view.edits_changed.connect(self._on_typed)

    def show(self) -> bool:
        """Show the draft of the conversation that is shown now. False: it is shown already."""
        shown, name = self._store.shown, self._store.selected
        if name == self._of:
            return False
        self._composer.edit.commit_preedit()
        self.keep()
        self._texts[self._of], self._edits[self._of] = self._composer.text, self._view.edits
        self._of = name
        self._composer.set_text(self._texts.get(name, shown.draft if shown else ""))
        self._untold = False
        return True

    def edits(self) -> dict[MessageId, str]:
        """The texts so far of messages of this conversation that were being edited when it was left or stored last."""
        shown = self._store.shown
        return self._edits.get(self._of, dict(shown.edits) if shown else {})

    def keep(self) -> None:
        """Keep now what is typed, if it is not kept."""
        if self._untold and self._of is not None:
            self._untold = False
            self._keeping.stop()
            self._commands.conversations.keep_draft(self._of, self._composer.text)
            self._commands.conversations.keep_edits(self._of, self._view.edits)

    def _on_typed(self) -> None:
        if self._of is not None and not self._untold:
            self._untold = True
            self._keeping.start()
