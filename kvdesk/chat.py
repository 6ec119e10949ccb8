"""Conversations as plain values; their messages are in `kvdesk.message`. Knows no Qt, no engine, no database."""

from dataclasses import dataclass, field

from kvdesk.message import Attachment, ConversationId, Message, MessageId
from kvdesk.settings import Sampling
from kvdesk.thinking import AS_USUAL, Thinking


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """What a user sent and what waits for the answer before to end."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def typed(text: str, attachments: tuple[Attachment, ...] = ()) -> QueuedMessage:
    """What a user typed, without the blank space after it."""
    return QueuedMessage(text.rstrip(), attachments)


@dataclass(frozen=True, slots=True)
class EvictedMessages:
    """What was evicted from a conversation's context: whole messages, and with "sinks" the beginning of one answer, or
    single tokens.

    partial  that answer, and how many tokens after the beginning of its text the rest begins
    cuts     messages of which single tokens were evicted: the ranges [start, end) of those, ascending and apart,
             counted from the beginning of the message's text
    policy   under which they were evicted (`kvdesk.settings.Overflow`): each keeps another beginning. "" if nothing
             was, or in homes of kvdesk 0.1.0, which did not write it down
    """

    messages: frozenset[MessageId] = frozenset()
    partial: tuple[MessageId, int] | None = None
    policy: str = ""
    cuts: tuple[tuple[MessageId, tuple[tuple[int, int], ...]], ...] = ()


NONE_EVICTED = EvictedMessages()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its messages. `leaf` is the last message of the branch that is shown.

    `overflow` is what happens when its context is full (`kvdesk.settings.Overflow`); empty: as the settings say.
    `evicted` is what was evicted when it was, so that the next prompt begins with what the cache, or a saved state,
    holds.
    `draft` is what is typed for it and not sent yet, `draft_attachments` what is attached to that, `queued` what was
    sent and waits for the answer before to end. `edits` are the texts so far of messages that are being edited.
    `sampling` is its own; None: as the settings say. `template` is its own chat template (Jinja), in the place of the
    model's; empty: the model's.
    `thinking` is how its answers think.
    `tools` are the names of the servers whose tools its answers may call (`kvdesk.settings.ToolServer`).
    `folder` is the name of the folder it is in; empty: none. One that is `archived` is not listed with the others.
    """

    id: ConversationId
    title: str
    colour: int  # index into the palette: one colour everywhere
    leaf: MessageId | None = None
    system_prompt: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    overflow: str = ""
    evicted: EvictedMessages = NONE_EVICTED
    draft: str = ""
    queued: tuple[QueuedMessage, ...] = ()
    messages: tuple[Message, ...] = field(default=(), compare=False)
    sampling: Sampling | None = None
    template: str = ""
    folder: str = ""
    pinned: bool = False
    archived: bool = False
    draft_attachments: tuple[Attachment, ...] = ()
    tools: tuple[str, ...] = ()
    thinking: Thinking = AS_USUAL
    edits: tuple[tuple[MessageId, str], ...] = ()

    @property
    def is_unused(self) -> bool:
        """Whether a user has done nothing with it yet: another one that is new takes its place."""
        touched = (
            self.draft
            or self.draft_attachments
            or self.queued
            or self.title
            or self.folder
            or self.pinned
            or self.archived
            or self.tools
        )
        return self.leaf is None and not touched
