"""What every back end speaks: opening a model, conversations, answers. Frozen commands go down, frozen events come up.

Stop is not among the commands: it must work while the back end is busy, so it is a call (`kvdesk.host`).
"""

from __future__ import annotations

import json
from typing import Final, Literal

from kvdesk.call_format import CallFormat
from kvdesk.chat import NONE_EVICTED, EvictedMessages
from kvdesk.message import ConversationId, FinishReason, Message, MessageId, MessageState, TurnStats
from kvdesk.protocol.features import Feature
from kvdesk.protocol.model import ModelInfo, ModelSource
from kvdesk.reasoning import ReasoningMarks
from kvdesk.settings import ContextSettings, Overflow, Sampling
from kvdesk.translation import marked
from kvdesk.values import dataclass, replace

NO_MODEL: Final = marked("No model is loaded: open a GGUF file first.")
"""Why nothing can be asked yet: the note of an answer that failed, in the user's language."""


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Open a model in place of the one that is open, which stays where that fails. Answered by `ModelLoaded`; a back
    end that has its own context then sends `ContextReady`.
    """

    source: ModelSource
    context: ContextSettings


@dataclass(frozen=True, slots=True)
class Client:
    """Another program that asks: what it asks belongs to no chat, and each request has its own conversation. What
    its cells hold is a beginning that later requests may share while there is room.

    name     as it is shown
    sharing  only requests of the same value share beginnings; "": these do with all others and with the chats
    reuse    False: nothing of the prompt is taken from the cache
    share    of the cells, and of the memory for saved states, that what it asked before may keep: from 0 to 1
    path     that it asked, which tells the protocol, such as /chat/completions
    slot     the seq_id that it asks for, as a remainder of `n_seq_max`; -1: any. It gets another one if that is busy,
             a chat's, or of a program with which it does not share
    """

    name: str
    sharing: str = ""
    reuse: bool = True
    share: float = 1.0
    path: str = ""
    slot: int = -1

    @property
    def program(self) -> tuple[str, str]:
        """Equal for requests of one program that may share."""
        return self.name, self.sharing


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt that no chat template renders: token ids, or if there are none a text, in which control tokens that
    are written out count as such.
    """

    text: str = ""
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenProb:
    """A token, the natural logarithm of its probability before sampling (after it: `Generate.sampled_probs`), and its
    bytes, control tokens written out. `hidden`: it is one of those that are no part of an answer's text, such as the
    one that ends it.
    """

    token: int
    logprob: float
    piece: bytes
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A token of an answer, and the most likely ones in its place, the likeliest first. `rank`: 1 if no other token
    was likelier; 0: not known.
    """

    chosen: TokenProb
    top: tuple[TokenProb, ...] = ()
    rank: int = 0


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools an answer may call, or must.

    must      the answer is calls and nothing else; else what the model wants
    names     of the tools; () for all of those that the template gets
    several   more than one call in an answer, where the family writes several
    """

    must: bool = False
    names: tuple[str, ...] = ()
    several: bool = True


@dataclass(frozen=True, slots=True)
class Document:
    """The text of an attachment, where the model reads it: characters `[start, end)` of a message's text."""

    message: MessageId
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Generate:
    """Answer the conversation `messages` (oldest first, system prompt included) as message `answer`.

    overflow  what happens when the context is full; n_keep: leading tokens that stay then
    evicted   what was evicted before; what the engine has told since (`MessagesEvicted`) counts more
    template  the chat template (Jinja) in the place of the model's own; "": the model's
    continued the answer as it is so far, with some text (`Feature.CONTINUE`): the new text goes on behind its last
              character. It is not among `messages`. None: the answer begins
    client    the program that asks; None: a conversation of kvdesk
    raw       the prompt in the place of messages, of which there are none then
    tools     what the template tells the model that it may call, as a JSON array; "": nothing
    choice    of those tools; None: none of them may be called
    variables further ones that the template gets, as a JSON object, such as `{"enable_thinking": false}`; "": none
    reasoning_budget  most tokens of the reasoning, which is closed then; 0: it is closed where it begins; -1: no limit
    n_probs   each token is reported with its probability, and that many of the likeliest in its place; -1: without
    sampled_probs  with a raw prompt: those are the probabilities after sampling, not before
    others    texts that the answer may repeat beside those of `messages`, the likeliest first: other branches, a
              prediction of the client. They change no token, only the speed (*Speculative decoding*)
    documents in `messages`, to be kept for other chats and taken from them (*Documents read once*)
    """

    conversation: ConversationId
    answer: MessageId
    messages: tuple[Message, ...]
    sampling: Sampling
    overflow: Overflow = Overflow.STOP
    n_keep: int = 0
    evicted: EvictedMessages = NONE_EVICTED
    template: str = ""
    continued: Message | None = None
    client: Client | None = None
    raw: RawPrompt | None = None
    tools: str = ""
    choice: ToolChoice | None = None
    variables: str = ""
    reasoning_budget: int = -1
    n_probs: int = -1
    sampled_probs: bool = False
    others: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()

    @property
    def asked(self) -> Asked | None:
        """What is shown of it; None of a conversation of kvdesk."""
        if self.client is None:
            return None
        n_tools = len(json.loads(self.tools)) if self.tools else 0
        return Asked(self.client.path, n_tools, self.reasoning_budget != 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """How another program asked: `path` as in `Client`, tools that it offered, whether the answer may begin with
    reasoning where the model has it.
    """

    path: str
    n_tools: int
    thinks: bool


@dataclass(frozen=True, slots=True)
class CloseConversation:
    """Remove its cells and give its seq_id back to the pool."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class DropMessages:
    """Messages of the conversation were deleted: remove their cells, and of all after them, in every branch and in
    saved states. What is before them stays. `messages`: with those after them.
    """

    conversation: ConversationId
    messages: tuple[MessageId, ...]


def deleted_of(command: CloseConversation | DropMessages) -> tuple[MessageId, ...] | None:
    """The messages of the conversation that were deleted; None: it was, with all of them."""
    return command.messages if isinstance(command, DropMessages) else None


@dataclass(frozen=True, slots=True)
class PreviewTurn:
    """What would answering `messages` cost, of which the last is not sent yet? Answered by `TurnPreview`; by nothing
    if it cannot be said, and without `Feature.PREVIEW`.

    overflow, n_keep, evicted, template, tools, documents: as in `Generate`
    max_tokens: most tokens of the answer (`Sampling`)
    n_typed: characters of the draft at the end of the last message (a question that was never answered precedes it in
    the same message), 0: all of them; n_attached: characters of each attachment before those
    replaced: the message that the draft is another version of; an answer is priced up to its own end
    continued: as in `Generate`: what going on with this answer behind `messages` would cost, in the place of a draft
    """

    conversation: ConversationId
    messages: tuple[Message, ...]
    overflow: Overflow = Overflow.STOP
    n_keep: int = 0
    evicted: EvictedMessages = NONE_EVICTED
    max_tokens: int = 1024
    n_typed: int = 0
    template: str = ""
    n_attached: tuple[int, ...] = ()
    replaced: MessageId | None = None
    continued: Message | None = None
    tools: str = ""
    variables: str = ""
    documents: tuple[Document, ...] = ()

    @property
    def text(self) -> str:
        """The draft without what is attached."""
        return "" if self.n_attached and not self.n_typed else self.messages[-1].text[-self.n_typed :]


@dataclass(frozen=True, slots=True)
class MeasureContext:
    """How full is the context of a conversation that shows the messages of `turn`? `turn` has no draft.

    Answered by `ContextUse`; by nothing if that is unknown."""

    turn: PreviewTurn


@dataclass(frozen=True, slots=True)
class TurnPreview:
    """What sending a draft would do. All but the last two lines in tokens.

    n_reused, n_prefill   of the prompt: in the cache or in a saved state; to be computed
    n_put                 of documents in it that are not read again (*Documents read once*)
    first_token_ms        None while nothing was measured; `sentence` says these three
    n_ctx, n_conversation of the context; of the prompt without the draft's own text
    n_system              of the system prompt, a part of n_conversation
    n_draft, n_attached   of the draft's text with what is attached, 0 if it is refused and too long to be counted;
                          of each attachment, () if that is not known
    n_answer              to be left for the answer: an eighth of the context, or less where it may not be as long
    n_evicted_tokens      of messages that would be evicted for it; n_evicted_messages: how many those are
    refused               why it cannot be sent, "" if it can; n_reused and the like then count nothing
    text                  the draft; n_fitting: that many of its characters fit
    attached_chars        characters of each attachment as the model reads it; n_attached_fitting: that many of all of
                          them together fit beside the whole text
    replaced              as in `PreviewTurn`
    """

    conversation: ConversationId
    n_reused: int
    n_prefill: int
    first_token_ms: float | None
    sentence: str
    n_ctx: int = 0
    n_conversation: int = 0
    n_draft: int = 0
    n_answer: int = 0
    n_evicted_tokens: int = 0
    n_evicted_messages: int = 0
    refused: str = ""
    text: str = ""
    n_fitting: int = 0
    n_system: int = 0
    n_attached: tuple[int, ...] = ()
    attached_chars: tuple[int, ...] = ()
    n_attached_fitting: int = 0
    replaced: MessageId | None = None
    n_put: int = 0

    @property
    def room(self) -> int:
        """Tokens that the draft may have, so that an answer has room too."""
        return max(0, self.n_ctx - self.n_conversation - self.n_answer)


@dataclass(frozen=True, slots=True)
class ContextUse:
    """A conversation takes `n_tokens` of the `n_ctx` tokens of its context, without what was evicted; the first
    `n_cached` of them are in the cache now, and `n_system` are the system prompt. More than there are if it does not
    fit. `n_answer`: to be left for the answer, as in `TurnPreview`; `last`: the message that ends what is counted, None
    for the end of what was asked about.
    """

    conversation: ConversationId
    n_tokens: int
    n_cached: int
    n_ctx: int
    n_system: int = 0
    n_answer: int = 0
    last: MessageId | None = None


@dataclass(frozen=True, slots=True)
class BackendReady:
    """A back end has been made, and this is what it has: from the host, before anything else the back end says."""

    features: frozenset[Feature]


@dataclass(frozen=True, slots=True)
class ModelLoading:
    source: ModelSource
    progress: float  # 0.0 to 1.0


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """`remark` is something the user should know about the model, such as a template that is missing or cannot be used.
    `limit` is what its server could show of its cache and does not, and what helps.
    """

    model: ModelInfo
    remark: str = ""
    limit: str = ""


@dataclass(frozen=True, slots=True)
class ReuseReason:
    """Why a request reuses so much of what its conversation had in the cache.

    sentence       as `TurnStats.why`: it may quote texts of the cache
    reread_tokens  and `miss`: as in `TurnStats`
    cause          a value of `Cause` or `UsualCause` (`kvdesk.cache`)
    at_token       position of the first token that differs from what the cache held, -1 if none does
    """

    sentence: str
    reread_tokens: int = 0
    miss: str = ""
    cause: str = ""
    at_token: int = -1


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """An answer begins. Where the prompt was compared with a cache: this much is reused, the rest is prefilled.

    seq_id -1, prompt_tokens 0: the back end does not say
    continued: ids of the text that is continued, as they are in the prompt; () if nothing is, or without ids
    vocab: fingerprint of the vocabulary that the answer's ids belong to (`TurnStats.vocab`)
    client: name of the program that asks; "": a conversation of kvdesk
    marks: around the reasoning of the answer (`TurnStats.marks`)
    calls: how the answer calls tools; None if it may not
    asked: how another program asked; None if the back end does not say
    reuse: why so much is reused; None if the back end does not say
    """

    conversation: ConversationId
    answer: MessageId
    seq_id: int = -1
    prompt_tokens: int = 0
    reused_tokens: int = 0
    continued: tuple[int, ...] = ()
    vocab: str = ""
    client: str = ""
    marks: ReasoningMarks | None = None
    calls: CallFormat | None = None
    asked: Asked | None = None
    reuse: ReuseReason | None = None


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    conversation: ConversationId
    answer: MessageId
    done: int
    total: int
    tok_s: float


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an answer. `text` may be empty while a character is still incomplete. `logprobs`: of each of
    the tokens, where they were asked for (`Generate.n_probs`).
    """

    conversation: ConversationId
    answer: MessageId
    text: str
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The answer is over. `note` says why when it is not simply complete; `finish` is given where `state` does not
    tell it: "limit", "stop string" and "context full"; `stopped_by` is the stop string.
    """

    conversation: ConversationId
    answer: MessageId
    state: MessageState
    stats: TurnStats
    note: str = ""
    finish: FinishReason = ""
    stopped_by: str = ""

    @property
    def sampled(self) -> TurnStats:
        """Its stats; among the generated tokens is the one with which the model ended the answer, as servers count."""
        ends = self.state == "complete" and not self.finish
        return replace(self.stats, generated_tokens=self.stats.generated_tokens + 1) if ends else self.stats


@dataclass(frozen=True, slots=True)
class LogLine:
    level: Literal["debug", "info", "warning", "error"]
    text: str


@dataclass(frozen=True, slots=True)
class EngineRestarted:
    """An unexpected error ended the engine's loop. Its answers have ended (`TurnEnded`), its context is gone; the
    model is being loaded again (`ModelLoading`, `ContextReady`), and commands that wait are carried out after that.
    """

    sentence: str
    detail: str


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The same happened so often that it is not tried again; the window lives on and says so."""

    sentence: str
    detail: str


@dataclass(frozen=True, slots=True)
class Working:
    """A command takes long: `done` of `total` tokens. `total` 0 ends the display. `Host.cancel` ends the work."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Overflowed:
    """A conversation's context was full, and its policy acted: `sentence` says what it did.

    evicted  messages that had to go for it, oldest first: none if the answer ends, or where only a part of it went
    n_tokens tokens of a prompt that did not fit, n_ctx: tokens that do; 0 if that is not what happened
    """

    conversation: ConversationId
    answer: MessageId
    policy: Overflow
    sentence: str
    evicted: tuple[MessageId, ...] = ()
    n_tokens: int = 0
    n_ctx: int = 0


@dataclass(frozen=True, slots=True)
class MessagesEvicted:
    """All that was evicted from a conversation's context by now. Whoever keeps conversations tells the engine with the
    next `Generate`, after a restart too.
    """

    conversation: ConversationId
    evicted: EvictedMessages


@dataclass(frozen=True, slots=True)
class MessageRetention:
    """How far the messages of a conversation are from leaving its context, sent together with `MessageSpans`."""

    conversation: ConversationId
    retention: tuple[tuple[MessageId, Literal["in the cache", "next", "evicted"]], ...]


ChatCommand = LoadModel | Generate | CloseConversation | DropMessages | PreviewTurn | MeasureContext
ChatEvent = (
    BackendReady
    | TurnPreview
    | ContextUse
    | ModelLoading
    | ModelLoaded
    | TurnStarted
    | PrefillProgress
    | TextDelta
    | TurnEnded
    | LogLine
    | EngineRestarted
    | EngineDied
    | Working
    | Overflowed
    | MessagesEvicted
    | MessageRetention
)
