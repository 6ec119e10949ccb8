"""Messages that wait to be sent: while an answer is written, or until a model is open.

What waits is a part of its conversation (`Conversation.queued`), so that it is stored as drafts are. Decides when the
next one goes. After Stop, a failure or a restart a queue stands still until the person says to send it.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from kvdesk.app.chats import Chats
from kvdesk.chat import ConversationId, MessageId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import EngineDied, LoadModel, TurnEnded
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.ui.chat.chat_pane import ChatPane

_WHY = {
    "stopped": "Waiting: the answer was stopped",
    "failed": "Waiting: the answer failed",
    "interrupted": "Waiting: the answer was interrupted",
}


class Outbox(QObject):
    """The queues of all conversations."""

    def __init__(self, chats: Chats, pane: ChatPane) -> None:
        super().__init__(pane)
        self._chats, self._pane = chats, pane
        self._held: dict[ConversationId, str] = {}  # queues that stand still, and why
        self._no_model = self._had_model = self._closed = False
        self._places: dict[ConversationId, int] = {}  # of what was taken back to be edited
        pane.queue.cancelled.connect(self._on_cancelled)
        pane.queue.taken_back.connect(self._on_taken_back)
        pane.queue.send_clicked.connect(self._on_send_clicked)

    def start(self) -> None:
        """What waited when kvdesk ended waits for a word of the person."""
        for conversation in self._chats.waiting():
            self._held[conversation] = "Waiting since kvdesk was closed"
        self._tell()

    def close(self) -> None:
        """Nothing is sent any more."""
        self._closed = True

    def send(self, conversation: ConversationId, text: str) -> MessageId | None:
        """Send it now, and return the answer's id; or queue it, where it has to wait."""
        known = self._chats.get(conversation)
        if known is None or not text.strip():
            return None
        place = self._places.pop(conversation, len(known.queued))
        goes_on = bool(known.queued) and conversation not in self._held
        if not (self._chats.answer_of(conversation) or self._no_model or goes_on):
            return self._chats.send(conversation, text)
        self._chats.queue(conversation, (*known.queued[:place], text, *known.queued[place:]), text)
        self._tell()
        return None

    def wait_for_model(self) -> None:
        """A model is being opened."""
        self._no_model = True
        self._tell()

    def hold(self, conversation: ConversationId, state: str) -> None:
        """An answer of the conversation ended so, or will: what waits is not sent by itself."""
        known = self._chats.get(conversation)
        if known is not None and known.queued:
            self._held.setdefault(conversation, _WHY.get(state, _WHY["interrupted"]))
            self._tell()

    def apply(self, event: Event) -> None:
        """After conversations and window know of it: the next message goes, or waits."""
        match event:
            case TurnEnded() if event.state == "complete":
                self._go_on(event.conversation)
            case TurnEnded():
                self.hold(event.conversation, event.state)
            case ContextReady():
                self._no_model, self._had_model = False, True
                self._tell()
                for conversation in self._chats.waiting():
                    self._go_on(conversation)
            case CommandFailed() if isinstance(event.command, LoadModel):
                self._no_model = not self._had_model
                self._hold_all("Waiting: the model could not be opened" if self._had_model else "")
            case EngineDied():
                self._hold_all("Waiting: the engine has stopped")

    # --- private ------------------------------------------------------------------------------------------------------

    def _go_on(self, conversation: ConversationId) -> None:
        """Send the next message, where nothing is in its way."""
        known = self._chats.get(conversation)
        free = not (self._closed or self._no_model or self._chats.answer_of(conversation))
        if known is None or not known.queued or not free or conversation in self._held:
            return
        self._chats.send(conversation, known.queued[0])
        self._chats.keep_draft(conversation, known.draft)  # another text: it is typed still
        self._chats.queue(conversation, known.queued[1:])  # last, so that a crash loses nothing
        self._move_up(conversation, 0)
        self._tell()

    def _move_up(self, conversation: ConversationId, index: int) -> None:
        """The message at `index` has left the queue."""
        place = self._places.get(conversation, 0)
        if place > index:
            self._places[conversation] = place - 1

    def _hold_all(self, why: str) -> None:
        if why:
            for conversation in self._chats.waiting():
                self._held.setdefault(conversation, why)
        self._tell()

    def _tell(self) -> None:
        """Say of every queue what it waits for; those that are empty hold nothing back."""
        waiting = self._chats.waiting()
        self._held = {name: why for name, why in self._held.items() if name in waiting}
        until = "the model is ready" if self._no_model else "the answer has ended"
        words = {name: self._held.get(name, f"Sent when {until}") for name in waiting}
        self._pane.queue.show_states(words, frozenset(self._held))

    @Slot(str, int, str)
    def _on_taken_back(self, conversation: str, index: int, text: str) -> None:
        """What is edited keeps its place; of several that are edited together, that of the first."""
        name = ConversationId(conversation)
        self._on_cancelled(conversation, index, text)
        self._places[name] = min(self._places.get(name, index), index)

    @Slot(str, int, str)
    def _on_cancelled(self, conversation: str, index: int, text: str) -> None:
        known = self._chats.get(conversation)
        if known is not None and known.queued[index : index + 1] == (text,):
            self._chats.queue(known.id, (*known.queued[:index], *known.queued[index + 1 :]))
            self._move_up(known.id, index)
            self._tell()

    @Slot(str)
    def _on_send_clicked(self, conversation: str) -> None:
        self._held.pop(ConversationId(conversation), None)
        self._tell()
        self._go_on(ConversationId(conversation))
