"""All that crosses the thread: what every back end speaks, and what only one with cells does."""

from typing import assert_never

from kvdesk.protocol.attention import Attend, PreviewAttention
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.cache import (
    AuditCache,
    CacheCommand,
    CacheEvent,
    Forget,
    PreviewContext,
    RebuildContext,
    SaveReport,
    TakeRecording,
    TransferSequence,
    UsePolicy,
    VerifyConversation,
    Watch,
)
from kvdesk.protocol.chat import (
    ChatCommand,
    ChatEvent,
    CloseConversation,
    DropMessages,
    Generate,
    LoadModel,
    MeasureContext,
    PreviewTurn,
)
from kvdesk.protocol.features import Feature
from kvdesk.protocol.operations import Operate, PreviewCompaction
from kvdesk.protocol.prompt import Detokenize, PreviewPrompt, PriceTools, PromptCommand, PromptEvent, Tokenize
from kvdesk.values import dataclass

Command = ChatCommand | CacheCommand | PromptCommand


def feature_of(command: Command) -> Feature:
    """The feature that a back end needs to carry a command out."""
    match command:
        case Generate() if command.continued is not None:
            return Feature.CONTINUE
        case LoadModel() | Generate() | CloseConversation() | DropMessages():
            return Feature.CHAT
        case PreviewTurn() | MeasureContext():
            return Feature.PREVIEW
        case PreviewPrompt() | Tokenize() | Detokenize() | PriceTools():
            return Feature.PROMPT_VIEW
        case UsePolicy():
            return Feature.CACHE_POLICY
        case Watch() | TakeRecording():
            return Feature.CACHE_VIEW
        case Forget() | TransferSequence() | Operate() | PreviewCompaction() | VerifyConversation():
            return Feature.CACHE_OPERATIONS
        case AuditCache() | SaveReport():
            return Feature.AUDIT
        case PreviewAttention() | Attend():
            return Feature.ATTENTION
        case RebuildContext() | PreviewContext():
            return Feature.REBUILD
        case _:
            assert_never(command)


def is_wish(command: Command) -> bool:
    """Whether nobody waits for an answer: a back end without its feature may ignore it in silence."""
    questions = PreviewTurn | MeasureContext | PreviewPrompt | PriceTools
    previews = PreviewContext | PreviewCompaction | PreviewAttention
    return isinstance(command, questions | previews | UsePolicy | Watch | DropMessages)


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """A command did not do its work; nothing was lost. `sentence` is for the user, `detail` folded. `stopped`: a person
    stopped it, which is no error.
    """

    command: Command
    sentence: str
    detail: str = ""
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionDropped:
    """From the host: this subscriber read so slowly that what was waiting for it was thrown away. What is known now
    follows, if it asks for that: each answer under way with `TurnStarted` and its whole text so far.
    """

    sentence: str


Event = ChatEvent | CacheEvent | PromptEvent | BlockMapView | CommandFailed | SubscriptionDropped
