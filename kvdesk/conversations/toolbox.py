"""What conversations ask of whoever has tools. They know neither servers nor consent: a call is begun, and has a result
some time later.
"""

from typing import Protocol

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId, MessageId
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that is to be run. message: that of its result; tool, arguments: as in `kvdesk.chat.ToolUse`."""

    message: MessageId
    conversation: ConversationId
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads as the result; the other fields as in `kvdesk.chat.ToolUse`."""

    text: str
    ms: int = 0
    failed: bool = False


class Toolbox(Protocol):
    """Each method returns at once."""

    def offered(self, conversation: Conversation) -> str:
        """The tools that its answers may call, as in `Generate`: the same text as long as they are the same."""

    def server_of(self, conversation: Conversation, tool: str) -> str:
        """Name of the server that has a tool; "" if none has it."""

    def begin(self, call: PendingCall) -> None:
        """Ask the user if that is needed, run it, and tell `ConversationService.tool_ended`, once."""

    def cancel(self, message: MessageId) -> None:
        """The call whose result this message is has been stopped: nothing more is reported about it."""


class NoTools:
    """Of a program that has no tools."""

    def offered(self, conversation: Conversation) -> str:  # noqa: ARG002
        return ""

    def server_of(self, conversation: Conversation, tool: str) -> str:  # noqa: ARG002
        return ""

    def begin(self, call: PendingCall) -> None:
        raise AssertionError(call)

    def cancel(self, message: MessageId) -> None:
        """Nothing runs."""
