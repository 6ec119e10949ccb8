"""What a `ConversationService` tells its listeners. Frozen values; each is sent after it is so."""

from collections.abc import Callable, Mapping
from typing import Literal

from kvdesk.chat import Conversation
from kvdesk.errors import KvdeskError
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.values import dataclass

QueueState = Literal[
    "answer", "model", "stopped", "failed", "interrupted", "kvdesk closed", "load failed", "load stopped",
    "engine ended",
]  # fmt: skip
"""What the queued messages of a conversation wait for: for the first two, the end of the answer and a model, by
themselves; after anything else until a user says to send them."""
SENT_BY_THEMSELVES: tuple[QueueState, ...] = ("answer", "model")


@dataclass(frozen=True, slots=True)
class ConversationChanged:
    """A conversation is new, or a value of it is another one. It may have got another place among the others."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class ConversationsAdded:
    """Conversations that the store has already, such as imported ones, are among the others now."""

    conversations: tuple[Conversation, ...]


@dataclass(frozen=True, slots=True)
class DraftChanged:
    """Only what is typed for the conversation, or into messages that are being edited, is another text."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class DeletionBegan:
    """A user deleted it and may undo that: it is not among the conversations, and nothing of it is lost yet.
    `ConversationChanged` tells that it is back, `ConversationDeleted` that it is no more.
    """

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class ConversationDeleted:
    """It is no more, and no message of it."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class MessagesAdded:
    """New messages of one conversation, oldest first. An answer that is asked for is empty, its state "streaming"."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class MessagesChanged:
    """Known messages as they are from now on: pinned, after another one, or an answer that is continued (then its state
    is "streaming" again).
    """

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class MessagesDeleted:
    """These messages are no more. `branch` is what is shown from now on."""

    conversation: ConversationId
    deleted: tuple[MessageId, ...]
    branch: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class AnswersGrew:
    """Running answers with the text so far: those that became longer since this was reported last."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer as it is from now on. `is_gone`: nothing came of it, and it is no more."""

    message: Message
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class BranchChanged:
    """The branch that is shown of a conversation is this one: its tree was read, or another branch chosen.

    is_cut  it ends where the next message is about to be added (`MessagesAdded`)
    """

    conversation: ConversationId
    messages: tuple[Message, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """The messages of a conversation could not be read. `unsent`: what was sent to it meanwhile, kept nowhere else."""

    conversation: ConversationId
    error: KvdeskError
    unsent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueuesChanged:
    """What the queue of every conversation waits for that has one."""

    states: Mapping[ConversationId, QueueState]


Change = (
    ConversationChanged
    | ConversationsAdded
    | DraftChanged
    | DeletionBegan
    | ConversationDeleted
    | MessagesAdded
    | MessagesChanged
    | MessagesDeleted
    | AnswersGrew
    | AnswerEnded
    | BranchChanged
    | ReadFailed
    | QueuesChanged
)
Listener = Callable[[Change], None]
