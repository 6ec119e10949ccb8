"""Which queues of messages are sent automatically, which wait, and why.

The messages that wait are a part of their conversation (`Conversation.queued`), so that they are stored as drafts are.
After Stop, a failure or a restart a queue waits until a user says to send it.
"""

from collections.abc import Iterable

from kvdesk.chat import Conversation
from kvdesk.conversations.changes import QueueState
from kvdesk.message import ConversationId


class Queues:
    """Knows no texts: only what each queue waits for, and the places of messages that were taken back to be edited."""

    def __init__(self) -> None:
        self.closed = False  # nothing is sent any more
        self._held: dict[ConversationId, QueueState] = {}
        self._places: dict[ConversationId, int] = {}
        self.waits_for_model = self._had_model = False

    # --- what may be sent ---------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether anything may be sent automatically at all."""
        return not (self.closed or self.waits_for_model)

    def is_held(self, conversation: ConversationId) -> bool:
        """Whether the conversation's queue waits for a user."""
        return conversation in self._held

    def states(self, waiting: Iterable[ConversationId]) -> dict[ConversationId, QueueState]:
        """What these queues wait for. All others are empty, and hold nothing back."""
        names = list(waiting)
        self._held = {name: why for name, why in self._held.items() if name in set(names)}
        until: QueueState = "model" if self.waits_for_model else "answer"
        return {name: self._held.get(name, until) for name in names}

    # --- what waits ---------------------------------------------------------------------------------------------------

    def hold(self, why: QueueState, *conversations: ConversationId) -> None:
        """These wait for a user from now on; of several reasons the first counts."""
        for conversation in conversations:
            self._held.setdefault(conversation, why)

    def release(self, conversation: ConversationId) -> None:
        """A user said to send it."""
        self._held.pop(conversation, None)

    def wait_for_model(self) -> None:
        """A model is being opened."""
        self.waits_for_model = True

    def model_ready(self) -> None:
        self.waits_for_model, self._had_model = False, True

    def model_failed(self, waiting: Iterable[ConversationId], why: QueueState) -> None:
        """If a model was open before, it still is; else everything waits for one."""
        self.waits_for_model = not self._had_model
        if self._had_model:
            self.hold(why, *waiting)

    # --- places -------------------------------------------------------------------------------------------------------

    def take_place(self, conversation: Conversation) -> int:
        """Where the next message is in the queue: in the place of one that was taken back, else at the end."""
        return self._places.pop(conversation.id, len(conversation.queued))

    def keep_place(self, conversation: ConversationId, index: int) -> None:
        """A message is edited; of several that are edited together, the first place counts."""
        self._places[conversation] = min(self._places.get(conversation, index), index)

    def removed(self, conversation: ConversationId, index: int) -> None:
        """The message at `index` waits no longer: those after it moved up."""
        place = self._places.get(conversation, 0)
        if place > index:
            self._places[conversation] = place - 1
