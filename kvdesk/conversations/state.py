"""What the parts of a `ConversationService` have in common: what is known of conversations, and their listeners.

Every change goes through here, so that listeners are notified of each after it is so.
"""

from functools import partial

from kvdesk.chat import Conversation
from kvdesk.conversations.answers import RunningAnswers
from kvdesk.conversations.changes import BranchChanged, Change, ConversationChanged, Listener
from kvdesk.conversations.collection import Collection
from kvdesk.errors import guarded
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.values import replace


class ConversationState:
    """`known`: conversations and their messages; `answers`: those that are running."""

    def __init__(self, n_colours: int) -> None:
        self.known = Collection(n_colours)
        self.answers = RunningAnswers()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """It is notified of every change from now on, after those that subscribed before."""
        self._listeners.append(listener)

    # --- what there is ------------------------------------------------------------------------------------------------

    def is_read(self, conversation: ConversationId) -> bool:
        """Whether its messages are known."""
        return self.known.tree(conversation) is not None

    def is_answered(self, conversation: ConversationId) -> bool:
        """Whether an answer is running in it."""
        return bool(self.answers.of(conversation))

    def branch(self, conversation: ConversationId) -> list[Message]:
        """The messages that are shown, with the text that has come so far of those that are running."""
        shown = self.known.branch(conversation)
        return [self.answers.so_far(message) for message in shown] if len(self.answers) else shown

    # --- changes ------------------------------------------------------------------------------------------------------

    def put_first(self, conversation: Conversation) -> None:
        """Remember a conversation that a user has just used: it comes first."""
        self.known.put_first(conversation)
        self.tell(ConversationChanged(conversation))

    def put(self, conversation: Conversation) -> None:
        """Remember what changed without the user. Its place stays: a pointer may be on it."""
        self.known.put(conversation)
        self.tell(ConversationChanged(conversation))

    def cut_branch(self, conversation: ConversationId, leaf: MessageId | None) -> None:
        """What is added next follows `leaf` (None: nothing)."""
        self.known.put(replace(self.known[conversation], leaf=leaf))
        tree = self.known.tree(conversation)
        messages = tree.branch(leaf) if tree is not None and leaf is not None else []
        self.tell(BranchChanged(conversation, tuple(messages), is_cut=True))

    def tell_branch(self, conversation: ConversationId) -> None:
        """Tell the branch that is shown."""
        self.tell(BranchChanged(conversation, tuple(self.branch(conversation))))

    def tell(self, change: Change) -> None:
        for listener in self._listeners:
            guarded(partial(listener, change))
