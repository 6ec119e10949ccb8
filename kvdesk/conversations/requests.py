"""What is asked of a back end about a conversation, made from the conversation, its messages and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvdesk.chat import (
    Conversation,
    Message,
    MessageId,
    QueuedMessage,
    attachment_as_read,
    history,
    new_message_id,
)
from kvdesk.protocol.chat import Generate, MeasureContext, PreviewTurn
from kvdesk.settings import Overflow, Sampling, Settings


def overflow_of(conversation: Conversation, settings: Settings) -> Overflow:
    """What happens when the conversation's context is full: as was chosen for it, else as the settings say."""
    chosen = conversation.overflow
    return Overflow(chosen) if chosen in set(Overflow) else settings.cache.overflow


def sampling_of(conversation: Conversation, settings: Settings) -> Sampling:
    """How its answers are sampled: by its own values, else as the settings say."""
    return settings.sampling if conversation.sampling is None else conversation.sampling


def shown_to_model(conversation: Conversation, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The system prompt and the messages that count."""
    name = MessageId(f"{conversation.id}:system")  # the same in every turn
    prompt = conversation.system_prompt
    system = (Message(name, conversation.id, None, "system", prompt),) if prompt.strip() else ()
    return system + history(messages)


def generate(
    conversation: Conversation,
    answer: MessageId,
    messages: Sequence[Message],
    settings: Settings,
    continued: Message | None = None,
) -> Generate:
    """Answer `messages` as the message `answer`; `continued`: that answer so far, where it is to go on."""
    return Generate(
        conversation.id,
        answer,
        shown_to_model(conversation, messages),
        sampling_of(conversation, settings),
        overflow_of(conversation, settings),
        settings.cache.n_keep,
        conversation.evicted,
        template=conversation.template,
        continued=continued,
    )


def preview(
    conversation: Conversation, before: Sequence[Message], draft: QueuedMessage, settings: Settings
) -> PreviewTurn:
    """What would sending `draft` after the messages `before` cost?"""
    question = Message(new_message_id(), conversation.id, None, "user", draft.text)
    question = replace(question, attachments=draft.attachments)
    return PreviewTurn(
        conversation.id,
        shown_to_model(conversation, [*before, question]),
        overflow_of(conversation, settings),
        settings.cache.n_keep,
        conversation.evicted,
        max_tokens=sampling_of(conversation, settings).max_tokens,
        n_typed=len(draft.text),
        template=conversation.template,
        n_attached=tuple(len(attachment_as_read(attachment)) for attachment in draft.attachments),
    )


def measure(conversation: Conversation, messages: Sequence[Message], settings: Settings) -> MeasureContext:
    """How full is its context? A question whose answer failed counts: it is what is asked when it is answered again."""
    shown = list(messages)
    while shown and shown[-1].role == "assistant" and not shown[-1].text:
        shown.pop()
    return MeasureContext(
        conversation.id,
        shown_to_model(conversation, shown) if shown else (),
        overflow_of(conversation, settings),
        settings.cache.n_keep,
        conversation.evicted,
        template=conversation.template,
        max_tokens=sampling_of(conversation, settings).max_tokens,
    )
