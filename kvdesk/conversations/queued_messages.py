"""Messages that wait to be sent: while an answer is running, a model is being opened, or others wait before them.

Owns when the next one goes. Which queues wait, and why, is in `queues`.
"""

from collections.abc import Mapping

from kvdesk.chat import Conversation, QueuedMessage, typed
from kvdesk.conversations.changes import QueuesChanged, QueueState
from kvdesk.conversations.queues import Queues
from kvdesk.conversations.state import ConversationState
from kvdesk.conversations.turns import Turns
from kvdesk.message import ConversationId, MessageState
from kvdesk.protocol.chat import TurnEnded
from kvdesk.values import replace

_HOLDS: Mapping[MessageState, QueueState] = {"stopped": "stopped", "failed": "failed"}


class QueuedMessages:
    """The texts are part of their conversation (`Conversation.queued`); `turns` sends them."""

    def __init__(self, state: ConversationState, turns: Turns) -> None:
        self._state, self._known, self._turns = state, state.known, turns
        self._queues = Queues()
        self._may_send = False  # an event came after which a queued message may go
        self._stopping: set[ConversationId] = set()  # a user stopped their answers, which still run

    @property
    def states(self) -> Mapping[ConversationId, QueueState]:
        """What each queue that is not empty waits for."""
        return self._queues.states(self._known.waiting())

    def take_place(self, known: Conversation) -> int | None:
        """Where the next text of the conversation waits: its index in the queue; None if it may go now."""
        place = self._queues.take_place(known)
        others_wait = bool(known.queued) and not self._queues.is_held(known.id)
        waits = self._state.is_answered(known.id) or self._queues.waits_for_model or others_wait
        return place if waits else None

    def add(self, known: Conversation, place: int, message: QueuedMessage) -> None:
        """The message waits at `place`. `known`: with the draft of then."""
        self._state.put(replace(known, queued=(*known.queued[:place], message, *known.queued[place:])))
        self._tell()

    def release(self, conversation: ConversationId) -> None:
        """A user says that what stood still is to be sent."""
        self._queues.release(conversation)
        self._tell()

    def cancel(self, conversation: ConversationId, index: int, text: str, *, edited: bool = False) -> None:
        """The message is not sent; nothing happens if another one is there. `edited`: the next message takes its place,
        or that of the first of several edited together, and its attachments become those of the draft.
        """
        known = self._with(conversation, index, text)
        if known is not None:
            if edited:
                attachments = known.queued[index].attachments + known.draft_attachments
                known = replace(known, draft_attachments=attachments)
            self._remove(known, index)
        if edited:
            self._queues.keep_place(conversation, index)

    def move(self, conversation: ConversationId, index: int, text: str, to: int) -> None:
        """The message at `index` waits at `to`; nothing happens if another one is there."""
        known = self._with(conversation, index, text)
        if known is not None:
            queued = list(known.queued)
            queued.insert(max(0, to), queued.pop(index))
            self._state.put(replace(known, queued=tuple(queued)))

    def send_first(self, conversation: ConversationId) -> None:
        """Send the next message, if nothing is in its way."""
        known = self._known[conversation]
        free = self._queues.open and not self._queues.is_held(conversation) and self._state.is_read(conversation)
        if not free or not known.queued or self._state.is_answered(conversation):
            return
        first = known.queued[0]
        self._turns.send(known, typed(first.text, first.attachments))  # the draft stays
        self._remove(self._known[conversation], 0)  # last, so that a crash loses nothing

    def send_due(self) -> None:
        """After events: send the next message of every queue that nothing holds back any more."""
        if self._may_send:
            self._may_send = False
            for conversation in self._known.waiting():
                self.send_first(conversation)

    # --- what holds them back -----------------------------------------------------------------------------------------

    def stop(self, conversation: ConversationId) -> None:
        """A user stopped the answers: what waits now is held. What is sent from now on goes when they have ended."""
        self.hold("stopped", conversation)
        if self._state.is_answered(conversation):
            self._stopping.add(conversation)

    def turn_ended(self, event: TurnEnded) -> None:
        """The next one may go, unless the answer ended otherwise than it should."""
        self._may_send = True
        was_stopped = event.state == "stopped" and event.conversation in self._stopping
        if event.state != "complete" and not was_stopped:
            self.hold(_HOLDS.get(event.state, "interrupted"), event.conversation)
        if not self._state.is_answered(event.conversation):
            self._stopping.discard(event.conversation)

    def hold(self, why: QueueState, *conversations: ConversationId) -> None:
        """These wait for a user from now on, where anything waits."""
        held = [name for name in conversations if (known := self._known.get(name)) and known.queued]
        if held:
            self._queues.hold(why, *held)
            self._tell()

    def hold_all(self, why: QueueState) -> None:
        """The engine ended, and every answer with it: all queues wait for a user."""
        self._stopping.clear()
        self.hold(why, *self._known.waiting())

    def hold_loaded(self) -> None:
        """What waited when kvdesk was closed waits for a user."""
        self._queues.hold("kvdesk closed", *self._known.waiting())
        self._tell()

    def wait_for_model(self) -> None:
        """A model is being opened, which ends all answers: what is sent waits for it."""
        self._stopping.update(self._state.answers.conversations)
        self._queues.wait_for_model()
        self._tell()

    def model_ready(self) -> None:
        self._may_send = True
        self._queues.model_ready()
        self._tell()

    def model_failed(self, *, stopped: bool = False) -> None:
        self._queues.model_failed(self._known.waiting(), "load stopped" if stopped else "load failed")
        self._tell()

    def close(self) -> None:
        """Nothing is sent automatically from now on."""
        self._queues.closed = True

    # --- inside -------------------------------------------------------------------------------------------------------

    def _with(self, conversation: ConversationId, index: int, text: str) -> Conversation | None:
        """The conversation, if this text waits there."""
        known = self._known.get(conversation)
        at = known.queued[index : index + 1] if known is not None else ()
        return known if at and at[0].text == text else None

    def _remove(self, known: Conversation, index: int) -> None:
        self._state.put(replace(known, queued=(*known.queued[:index], *known.queued[index + 1 :])))
        self._queues.removed(known.id, index)
        self._tell()

    def _tell(self) -> None:
        self._state.tell(QueuesChanged(self.states))
