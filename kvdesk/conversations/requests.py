"""What is asked of a back end about a conversation, made from the conversation, its messages and the settings."""

from collections.abc import Iterable, Sequence
from typing import Final

from kvdesk.chat import Conversation, QueuedMessage, typed
from kvdesk.conversations.parameters import Parameters
from kvdesk.conversations.tool_steps import refusal
from kvdesk.message import (
    Attachment,
    Message,
    MessageId,
    as_read,
    attachment_as_read,
    history,
    new_message_id,
    system_message,
    text_in,
)
from kvdesk.protocol.chat import Document, Generate, MeasureContext, PreviewTurn, ToolChoice
from kvdesk.protocol.logprobs import N_KEPT
from kvdesk.protocol.prompt import PreviewPrompt
from kvdesk.settings import Overflow, Sampling, Settings
from kvdesk.translation import marked, tr
from kvdesk.values import replace

MOST_CHARACTERS: Final = 1 << 17
"""Of the texts that an answer may repeat, without what its prompt has."""
GREETING: Final = marked("Hello")


def overflow_of(conversation: Conversation, settings: Settings) -> Overflow:
    """What happens when the conversation's context is full: as was chosen for it, else as the settings say."""
    chosen = conversation.overflow
    return Overflow(chosen) if chosen in set(Overflow) else settings.cache.overflow


def sampling_of(conversation: Conversation, settings: Settings) -> Sampling:
    """How its answers are sampled: by its own values, else as the settings say."""
    return settings.sampling if conversation.sampling is None else conversation.sampling


def shown_to_model(conversation: Conversation, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The system prompt and the messages that count."""
    name = system_message(conversation.id)
    prompt = conversation.system_prompt
    system = (Message(name, conversation.id, None, "system", prompt),) if prompt.strip() else ()
    return system + tuple(map(_as_sent, history(messages)))


def _as_sent(message: Message) -> Message:
    """Without what no back end reads."""
    return replace(message, probabilities=b"") if message.probabilities else message


def generate(
    conversation: Conversation,
    answer: MessageId,
    messages: Sequence[Message],
    settings: Settings,
    continued: Message | None = None,
    tools: str = "",
    others: Iterable[Message] = (),
) -> Generate:
    """Answer `messages` as the message `answer`; `continued`: that answer so far, if it is to go on. `tools`: that
    are offered; they may be called until what tools may cost for one question is used up. `others`: messages of the
    conversation, the oldest first, which the answer may repeat.
    """
    may_call = bool(tools) and not refusal(messages, settings.tools)
    shown = shown_to_model(conversation, messages)
    return Generate(
        conversation.id,
        answer,
        shown,
        sampling_of(conversation, settings),
        overflow_of(conversation, settings),
        settings.cache.n_keep,
        conversation.evicted,
        template=conversation.template,
        variables=conversation.thinking.variables,
        reasoning_budget=conversation.thinking.most,
        continued=None if continued is None else _as_sent(continued),
        n_probs=N_KEPT if settings.token_probabilities else -1,
        tools=tools,
        choice=ToolChoice() if may_call else None,
        others=_not_read(conversation, messages, others) if settings.cache.drafts else (),
        documents=_documents(messages, shown) if settings.cache.read_once else (),
    )


def _documents(messages: Sequence[Message], shown: Sequence[Message]) -> tuple[Document, ...]:
    """Where the texts of what is attached to `messages` lie in those that the model is shown, in order."""
    found, index, at = [], 0, 0
    for attachment in (attachment for message in messages for attachment in message.attachments):
        read, (start, end) = attachment_as_read(attachment), text_in(attachment)
        for i in range(index, len(shown)):
            place = shown[i].text.find(read, at if i == index else 0)
            if place >= 0:
                found.append(Document(shown[i].id, attachment.name, place + start, place + end))
                index, at = i, place + len(read)
                break
    return tuple(found)


def _not_read(conversation: Conversation, read: Sequence[Message], others: Iterable[Message]) -> tuple[str, ...]:
    """Texts that are not in the prompt, with what is attached: of other branches, and of evicted messages, which count
    first; the newest first.
    """
    evicted, named = conversation.evicted.messages, {message.id for message in read}
    gone = [message for message in read if message.id in evicted]
    texts, left = [], MOST_CHARACTERS
    for message in [*reversed(gone), *reversed([one for one in others if one.id not in named])]:
        if left and (text := as_read(message).text[:left]):
            texts.append(text)
            left -= len(text)
    return tuple(texts)


def preview(
    conversation: Conversation,
    before: Sequence[Message],
    draft: QueuedMessage,
    settings: Settings,
    replaced: Message | None = None,
    tools: str = "",
) -> PreviewTurn:
    """What would sending `draft` after the messages `before` cost? `replaced`: it is another version of this one."""
    shown = _question(conversation, draft)
    if replaced is not None:
        shown = replace(shown, role=replaced.role, parent=replaced.parent)
    turn = _turn(conversation, [*before, shown], draft, settings, tools)
    return replace(turn, replaced=replaced.id if replaced is not None else None)


def preview_continued(
    conversation: Conversation,
    before: Sequence[Message],
    answer: Message,
    replaced: MessageId,
    settings: Settings,
    tools: str = "",
) -> PreviewTurn:
    """What would going on with `answer` after the messages `before` cost? It is a version of the answer `replaced`."""
    turn = _turn(conversation, before, QueuedMessage(""), settings, tools)
    return replace(turn, replaced=replaced, continued=_as_sent(answer))


def preview_prompt(
    conversation: Conversation,
    parameters: Parameters,
    shown: Sequence[Message],
    settings: Settings,
    number: int = 0,
    tools: str = "",
) -> PreviewPrompt:
    """How would its prompt be with other parameters? After the messages `shown` with what is typed, if something is;
    with a greeting if there is neither.
    """
    messages, draft = _drafted(conversation, shown, conversation.draft_attachments)
    turn, now = (_turn(c, messages, draft, settings, tools) for c in (parameters.put_into(conversation), conversation))
    return PreviewPrompt(turn, now, number)


def next_turn(conversation: Conversation, shown: Sequence[Message], settings: Settings, tools: str) -> PreviewTurn:
    """The next turn with what is typed; with a greeting if that is nothing and there are no messages."""
    messages, draft = _drafted(conversation, shown)
    return _turn(conversation, messages, draft, settings, tools)


def _drafted(
    conversation: Conversation, shown: Sequence[Message], attachments: tuple[Attachment, ...] = ()
) -> tuple[list[Message], QueuedMessage]:
    """The messages that have a text, then what is typed, or a greeting if there is neither; and that draft."""
    messages = [message for message in shown if message.text or message.role != "assistant"]
    draft = typed(conversation.draft, attachments)
    if not (draft.text or draft.attachments):
        if messages:
            return messages, draft
        draft = QueuedMessage(tr(GREETING))
    return [*messages, _question(conversation, draft)], draft


def _question(conversation: Conversation, draft: QueuedMessage) -> Message:
    question = Message(new_message_id(), conversation.id, None, "user", draft.text)
    return replace(question, attachments=draft.attachments)


def _turn(
    conversation: Conversation, messages: Sequence[Message], draft: QueuedMessage, settings: Settings, tools: str
) -> PreviewTurn:
    """The next turn, with the draft at the end of the last of the messages."""
    shown = shown_to_model(conversation, messages)
    return PreviewTurn(
        conversation.id,
        shown,
        overflow_of(conversation, settings),
        settings.cache.n_keep,
        conversation.evicted,
        max_tokens=sampling_of(conversation, settings).max_tokens,
        n_typed=len(draft.text),
        template=conversation.template,
        variables=conversation.thinking.variables,
        n_attached=tuple(len(attachment_as_read(attachment)) for attachment in draft.attachments),
        tools=tools,
        documents=_documents(messages, shown) if settings.cache.read_once else (),
    )


def measure(
    conversation: Conversation, messages: Sequence[Message], settings: Settings, tools: str = ""
) -> MeasureContext:
    """How full is its context? A question whose answer failed counts: it is what is asked when it is answered again."""
    shown = list(messages)
    while shown and shown[-1].role == "assistant" and not shown[-1].text:
        shown.pop()
    turn = _turn(conversation, shown, QueuedMessage(""), settings, tools)
    return MeasureContext(turn if shown else replace(turn, messages=()))
