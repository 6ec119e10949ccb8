"""What a back end can do beside answering: the window shows what there is, and says in a sentence what there is not."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kvdesk.translation import marked


class Feature(StrEnum):
    """A back end gets the commands of the features it has, and of no other (`kvdesk.protocol.messages.feature_of`)."""

    CHAT = "chat"  # models, conversations, answers: every back end
    CONTINUE = "continue"  # an answer that ended early can be continued where it ended
    PREVIEW = "preview"  # what a message would cost, and how full a context is
    PROMPT_VIEW = "prompt view"  # how a conversation is rendered, and with which chat template
    CACHE_POLICY = "cache policy"  # what it does with its cache automatically can be chosen
    CACHE_VIEW = "cache view"  # cells, operations and measured decodes as they happen
    CACHE_OPERATIONS = "cache operations"  # by hand
    AUDIT = "audit"  # comparing what is shown with the engine's own state
    ATTENTION = "attention"  # what tokens of its cache look at
    BLOCK_MAP = "block map"  # the hashed blocks of its prefix cache, as its events tell
    REBUILD = "rebuild"  # another context for the same model
    TOOLS = "tools"  # answers of a chat can call tools


OF_ENGINE: Final = frozenset(Feature) - {Feature.BLOCK_MAP}
"""What kvdesk's own engine has: cells, where servers on graphics cards have blocks."""

MISSING: Final[Mapping[Feature, str]] = {
    Feature.CHAT: marked("This engine does not chat."),
    Feature.CONTINUE: marked("This engine cannot continue an answer."),
    Feature.PREVIEW: marked("This engine does not say what a message would cost."),
    Feature.PROMPT_VIEW: marked("This engine renders prompts itself: its chat template cannot be seen or changed."),
    Feature.CACHE_POLICY: marked("This engine manages its cache itself."),
    Feature.CACHE_VIEW: marked("This engine does not show its cells."),
    Feature.CACHE_OPERATIONS: marked("The cache of this engine cannot be changed by hand."),
    Feature.AUDIT: marked("The cache of this engine cannot be audited."),
    Feature.ATTENTION: marked("This engine does not show what tokens look at."),
    Feature.BLOCK_MAP: marked("This engine does not report blocks."),
    Feature.REBUILD: marked("This engine creates its context itself."),
    Feature.TOOLS: marked("Chats with this engine cannot call tools."),
}
"""What is said where a back end does not have it."""
