"""Deleting conversations in two steps, so that a user can undo it.

First a conversation is only hidden: what is stored of it, its cells and its saved states stay, so that a crash loses
nothing and undoing costs nothing. `finish` deletes what was hidden for good. When that is decides whoever shows it.
"""

from collections.abc import Callable

from kvdesk.chat import Conversation
from kvdesk.conversations.changes import ConversationChanged, DeletionBegan
from kvdesk.conversations.state import ConversationState
from kvdesk.message import ConversationId


class Deletions:
    """`stop`: ends the answers of a conversation and holds its queue; `delete`: deletes it for good."""

    def __init__(
        self, state: ConversationState, stop: Callable[[ConversationId], None], delete: Callable[[ConversationId], None]
    ) -> None:
        self._state, self._stop, self._delete = state, stop, delete

    @property
    def pending(self) -> tuple[Conversation, ...]:
        """Those that can be brought back, the one deleted first first."""
        return tuple(self._state.known[name] for name in self._state.known.hidden)

    def begin(self, conversation: ConversationId) -> None:
        """Hide it. Its answers are stopped and keep their text; its queue waits for a user if it is restored."""
        if conversation in self._state.known and conversation not in self._state.known.hidden:
            self._stop(conversation)
            self._state.known.hide(conversation)
            self._state.tell(DeletionBegan(conversation))

    def undo(self) -> ConversationId | None:
        """Bring back the one that was deleted last, as it was; None if there is none."""
        hidden = self._state.known.hidden
        if not hidden:
            return None
        self._state.known.unhide(hidden[-1])
        self._state.tell(ConversationChanged(self._state.known[hidden[-1]]))
        return hidden[-1]

    def finish(self) -> None:
        """Delete all of them for good."""
        for name in self._state.known.hidden:
            self._delete(name)
