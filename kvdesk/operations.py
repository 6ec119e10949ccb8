"""What a person does to the cache by hand, what it did, and what can be done: values that cross the thread.

`kvdesk.messages` has the rest and the unions of all. Sequences are named by seq_id, as the inspector shows them;
positions are half-open ranges `[p0, p1)` in which -1 means "from the start" and "to the end", as llama.cpp has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvdesk.cache.compaction import CompactionPlan, Layout
from kvdesk.cache.compare import Comparison, LogitsComparison
from kvdesk.cache.recording import Recording
from kvdesk.chat import ALL_THERE, ConversationId, Left, Message, MessageId
from kvdesk.settings import ContextSettings, Overflow

# --- by hand ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemoveRange:
    """`llama_memory_seq_rm(mem, seq_id, p0, p1)`; seq_id -1 is every sequence."""

    seq_id: int
    p0: int = -1
    p1: int = -1


@dataclass(frozen=True, slots=True)
class KeepOnly:
    """`llama_memory_seq_keep(mem, seq_id)`: the cells of all other sequences of its stream are removed."""

    seq_id: int


@dataclass(frozen=True, slots=True)
class CopySequence:
    """`llama_memory_seq_cp(mem, src, dst, p0, p1)`, where `dst` is the sequence of `conversation`, leased for it.

    What `conversation` held before is removed first.
    """

    src: int
    conversation: ConversationId
    p0: int = -1
    p1: int = -1


@dataclass(frozen=True, slots=True)
class ShiftPositions:
    """`llama_memory_seq_add(mem, seq_id, p0, p1, shift)`: K is rotated before the next decode."""

    seq_id: int
    p0: int
    p1: int
    shift: int


@dataclass(frozen=True, slots=True)
class ClearCache:
    """`llama_memory_clear(mem, true)`."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Whole-state get, permute, set: used cells move to the front. `hot`: seq_ids in order, for `Layout.HOT_FIRST`."""

    layout: Layout
    hot: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Save the conversation's sequence to memory and remove its cells."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Put the saved sequence back: nothing is computed."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class TryDecode:
    """Decode one token for the sequence at position `pos`, by hand: refused by llama.cpp (rc -1, `BatchRefused`) where
    `pos` is not seq_pos_max + 1. A token that was taken stays in the cache.
    """

    seq_id: int
    pos: int


@dataclass(frozen=True, slots=True)
class Undo:
    """Restore the whole cache as it was before operation number `operation`, while its blob is kept."""

    operation: int


HandOperation = (
    RemoveRange | KeepOnly | CopySequence | ShiftPositions | ClearCache | Compact | SwapOut | SwapIn | TryDecode | Undo
)


# --- commands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operate:
    """Carry out an operation by hand. Answered by `OperationDone` and a `CacheView`, or by `CommandFailed`.

    `measured`: compare next-token probabilities before and after (a decode of one token for each sequence, twice).
    """

    operation: HandOperation
    measured: bool = True


@dataclass(frozen=True, slots=True)
class PreviewCompaction:
    """What would `Compact` do? Answered by `CompactionPreview`."""

    layout: Layout
    hot: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviewContext:
    """What would a context with these settings take and cost? Answered by `ContextPreview`."""

    settings: ContextSettings


@dataclass(frozen=True, slots=True)
class PreviewTurn:
    """What would answering `messages` cost, of which the last is not sent yet? Answered by `TurnPreview`; by nothing
    where it cannot be said.

    overflow, n_keep, left: as in `kvdesk.messages.Generate`; max_tokens: most tokens of the answer (`Sampling`)
    n_typed: so many characters at the end of the last message are the draft (a question that was never answered stands
    before it in the same message); 0: all of them
    """

    conversation: ConversationId
    messages: tuple[Message, ...]
    overflow: Overflow = Overflow.STOP
    n_keep: int = 0
    left: Left = ALL_THERE
    max_tokens: int = 1024
    n_typed: int = 0

    @property
    def text(self) -> str:
        """The draft."""
        return self.messages[-1].text[-self.n_typed :]


@dataclass(frozen=True, slots=True)
class MeasureContext:
    """How full is the context of a conversation whose shown branch is `messages`? Answered by `ContextUse`; by nothing
    where it cannot be said. Fields as in `PreviewTurn`.
    """

    conversation: ConversationId
    messages: tuple[Message, ...]
    overflow: Overflow = Overflow.STOP
    n_keep: int = 0
    left: Left = ALL_THERE


@dataclass(frozen=True, slots=True)
class VerifyConversation:
    """Recompute the conversation in a spare sequence and compare next-token logits. Answered by `Verified`.

    Progress comes as `Working`; `Worker.cancel` ends it.
    """

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class TakeRecording:
    """Answered by `RecordingTaken`: the journal up to now, frozen."""


# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation did, before against after.

    bytes_moved   of K and V, 0 where none were moved; `ms` of the operation is in `OperationDone`
    audited       whether the map was compared with the engine's own state afterwards, and agreed
    ms_before, ms_after   mean of one-token decodes of the sequences that were asked, 0.0 where none was
    """

    comparison: Comparison
    bytes_moved: int = 0
    audited: bool = False
    ms_before: float = 0.0
    ms_after: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """llama_decode returned -1: the sequence ends at position `x` and the batch started at `y`; it must be x + 1."""

    seq_id: int
    x: int
    y: int
    sentence: str


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """`gain`: expected speed after over speed now, from this machine's own measurements; None when nothing was measured
    yet. `remark`: the same in one honest sentence.
    """

    plan: CompactionPlan
    gain: float | None
    remark: str


@dataclass(frozen=True, slots=True)
class ContextPreview:
    """Bytes that a context would take, and what making it costs.

    refused        why it cannot be made, "" if it can
    k_bytes .. compute_bytes   estimated
    tok_s          predicted decode speed, None when this machine has not measured enough
    n_tokens       tokens of conversations now in the cache, that would be prefilled again
    seconds        how long that would take, None when unknown
    carries_state  whether they can be carried over as state instead, and why not
    """

    settings: ContextSettings
    refused: str
    k_bytes: int
    v_bytes: int
    recurrent_bytes: int
    compute_bytes: int
    available_bytes: int
    tok_s: float | None
    n_tokens: int
    seconds: float | None
    carries_state: bool
    why_not_carried: str = ""


@dataclass(frozen=True, slots=True)
class TurnPreview:
    """What sending a draft would do. All but the last line in tokens.

    n_reused, n_prefill   of the prompt: in the cache or in a saved state; to be computed
    first_token_ms        None while nothing was measured; `sentence` says these three
    n_ctx, n_conversation of the context; of the prompt without the draft's own text
    n_draft               of the draft's text
    n_answer              to be left for the answer: an eighth of the context, or less where it may not be as long
    n_leaving, gone       of messages that would leave the context for it, and how many messages those are
    refused               why it cannot be sent, "" where it can; n_reused and the like then count nothing
    text                  the draft; n_fitting: so many of its characters fit
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
    n_leaving: int = 0
    gone: int = 0
    refused: str = ""
    text: str = ""
    n_fitting: int = 0

    @property
    def room(self) -> int:
        """Tokens that the draft may have, so that an answer has room too."""
        return max(0, self.n_ctx - self.n_conversation - self.n_answer)


@dataclass(frozen=True, slots=True)
class ContextUse:
    """A conversation takes `n_tokens` of the `n_ctx` tokens of its context, without what has left it; the first
    `n_cached` of them are in the cache now. More than there are where it does not fit.
    """

    conversation: ConversationId
    n_tokens: int
    n_cached: int
    n_ctx: int


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One kind of memory: bytes estimated before it was made, and measured after; None where nothing tells."""

    name: str
    estimated: int
    measured: int | None


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """What model and context take, sent with every `ContextReady` and when it has changed."""

    rows: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class Working:
    """A command takes long: `done` of `total` tokens. `total` 0 ends the display. `Worker.cancel` ends the work."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Verified:
    """A conversation as it is in the cache against the same tokens computed afresh."""

    conversation: ConversationId
    n_tokens: int
    logits: LogitsComparison
    ms: float


@dataclass(frozen=True, slots=True)
class RecordingTaken:
    """The journal. is_over: its context is freed now, for another one; nobody asked for it."""

    recording: Recording
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Where one message lies in its sequence: positions `[p0, p1)`, template text included.

    `text_p0` is the position of the first token of its own text and `char_ends[i]` the number of characters of the text
    that are complete after the token at `text_p0 + i`. Empty where the template changed the text.
    """

    message: MessageId
    p0: int
    p1: int
    text_p0: int
    char_ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MessageSpans:
    """Where the messages of a conversation lie in its sequence, sent when a turn starts and when it ends."""

    conversation: ConversationId
    seq_id: int
    spans: tuple[MessageSpan, ...]


@dataclass(frozen=True, slots=True)
class Overflowed:
    """A conversation's context was full, and its policy acted: `sentence` says what it did.

    gone  messages that left for it, oldest first: none where the answer ends, or where only a part of it left
    """

    conversation: ConversationId
    answer: MessageId
    policy: Overflow
    sentence: str
    gone: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True)
class Departed:
    """All that has left a conversation's context by now. Whoever keeps conversations tells the engine with the next
    `Generate`, after a restart too.
    """

    conversation: ConversationId
    left: Left


@dataclass(frozen=True, slots=True)
class Shades:
    """How far the messages of a conversation are from leaving its context, sent together with `MessageSpans`."""

    conversation: ConversationId
    shades: tuple[tuple[MessageId, Literal["in the cache", "next", "gone"]], ...]


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Processor time between two looks, in cores (1.0 is one core busy). `at_s` is time.monotonic()."""

    at_s: float
    own: float
    others: float
    n_threads: int


Answer = Literal["yes", "no", "with loss", "unknown"]
OperationName = Literal[
    "seq_rm",
    "partial seq_rm",
    "seq_cp",
    "partial seq_cp",
    "seq_keep",
    "seq_add",
    "seq_add with quantized K",
    "swap",
    "compaction",
    "quantized K",
    "quantized V",
    "flash attention off",
    "streams",
]


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether an operation can be done to the cache of this model and context: `answer`, and `why` in one sentence.

    "unknown": the engine decides, since kvdesk does not mirror this memory.
    """

    operation: OperationName
    answer: Answer
    why: str

    @property
    def allowed(self) -> bool:
        return self.answer != "no"
