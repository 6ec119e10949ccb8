"""What only a back end with cells speaks: the context, its cache, what is measured and written down of both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from kvdesk.cache.compare import LogitsComparison
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.snapshot import CacheSnapshot, VerificationState
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.attention import AttentionCommand, AttentionEvent
from kvdesk.protocol.chat import Client
from kvdesk.protocol.operations import BatchRefused, Capability, CompactionPreview, Effect, Operate, PreviewCompaction
from kvdesk.settings import CachePolicy, ContextSettings
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """A context as the engine made it: numbers read back, not asked for."""

    n_ctx: int
    n_ctx_seq: int
    n_seq_max: int
    n_batch: int
    n_ubatch: int
    n_threads: int
    type_k: str
    type_v: str
    flash_attn: bool
    kv_unified: bool
    k_bytes: int
    v_bytes: int
    recurrent_bytes: int = 0  # of the states of all sequences

    @property
    def n_bytes(self) -> int:
        """Of all that it keeps of tokens."""
        return self.k_bytes + self.v_bytes + self.recurrent_bytes


ANSWER_ID: Final = "chatcmpl-"
"""The id of an answer over HTTP is this and the name of the request, under which its cells are leased."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A conversation and the sequence it has in the cache.

    inactive  it holds another branch of the conversation, kept while there is room
    branch    its number among those of the conversation, from 1 on; it keeps the number while it is in the cache
    last      the last message of which it holds tokens; None: not known, as before the first turn
    client    name of the program whose request it was; "": a conversation of kvdesk
    """

    conversation: ConversationId
    seq_id: int
    inactive: bool = False
    branch: int = 1
    last: MessageId | None = None
    client: str = ""


@dataclass(frozen=True, slots=True)
class ClientShare:
    """What is kept of the requests of one program: cells that nobody else has, and bytes of saved states."""

    name: str
    n_cells: int
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One kind of memory: bytes estimated before it was made, and measured after; None if nothing tells.

    most   bytes of a store that fills with use; None: it is as large as it will be
    """

    name: str
    estimated: int
    measured: int | None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Where one message lies in its sequence: positions `[p0, p1)`, template text included.

    `text_p0` is the position of its text's first token and `char_ends[i]` the number of characters of the text
    that are complete after the token at `text_p0 + i`. Empty where the template changed the text.
    """

    message: MessageId
    p0: int
    p1: int
    text_p0: int
    char_ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove every cell of the conversation (`llama_memory_seq_rm(mem, seq_id, -1, -1)`); its text stays."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class TransferSequence:
    """Save what a sequence holds to a file as llama-server does, restore such a file in the place of what it holds, or
    erase it. Answered by `SequenceTransferred`, always.

    path          of the file; None to erase
    conversation  that has what is restored, and client: the program that asks
    number        is returned with the answer
    """

    action: Literal["save", "restore", "erase"]
    seq_id: int
    path: Path | None
    conversation: ConversationId
    client: Client
    number: int = 0


@dataclass(frozen=True, slots=True)
class SequenceTransferred:
    """That many tokens were saved, restored or erased, in that many bytes of a file. `problem`: why not, a sentence; ""
    where it was done.
    """

    number: int
    n_tokens: int = 0
    n_bytes: int = 0
    ms: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RebuildContext:
    """Free the context and create a new one.

    keep   what becomes of the conversations that are in the cache: "nothing": each is prefilled again at its next turn;
           "tokens": they are prefilled now, with progress (`Working`) and cancel; "state": carried over as saved state,
           converted where K and V have other types then, if that can be (`ContextPreview.carries_state`)
    """

    context: ContextSettings
    keep: Literal["nothing", "tokens", "state"] = "nothing"


@dataclass(frozen=True, slots=True)
class Watch:
    """Whether somebody looks at the cache: snapshots are made only then. `watcher`: who; "" is the window."""

    snapshots: bool
    watcher: str = ""


@dataclass(frozen=True, slots=True)
class UsePolicy:
    """What kvdesk does with the cache automatically, from now on. `folder`: of saved states; None: in memory."""

    policy: CachePolicy
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class AuditCache:
    """Compare every used cell with the engine's own state, whatever it costs (a copy of all K and V)."""


@dataclass(frozen=True, slots=True)
class SaveReport:
    """Write the report of the last mismatch, as JSON, to `path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class PreviewContext:
    """What would a context with these settings take and cost? Answered by `ContextPreview`."""

    settings: ContextSettings


@dataclass(frozen=True, slots=True)
class VerifyConversation:
    """Recompute the conversation in a spare sequence and compare next-token logits. Answered by `Verified`.

    Progress comes as `Working`; `Host.cancel` ends it.
    """

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class TakeRecording:
    """Answered by `RecordingTaken`: the journal up to now, frozen."""


@dataclass(frozen=True, slots=True)
class ContextPreview:
    """Bytes that a context would take, and what making it costs.

    refused        why it cannot be made, "" if it can
    k_bytes .. compute_bytes   estimated
    n_earlier      earlier states of each sequence (`n_rs_seq`), and earlier_bytes, their part of recurrent_bytes
    tok_s          predicted decode speed, None when this machine has not measured enough
    n_tokens       tokens of conversations now in the cache, that would be prefilled again
    n_cells        cells in use, all of which are removed: also those of branches that are not shown
    seconds        how long that would take, None when unknown
    carries_state  whether they can be carried over as state instead, and why not
    convert_seconds  how long the conversion of their K and V takes; None: nothing is converted
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
    n_cells: int = 0
    convert_seconds: float | None = None
    n_earlier: int = 0
    earlier_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Verified:
    """A conversation as it is in the cache against the same tokens computed afresh. `ghost`: how much of the effect of
    what was removed from it by hand is still there (`kvdesk.cache.compare.ghost_share`); None: nothing was removed, or
    it made no difference, which is `without_effect`.
    """

    conversation: ConversationId
    n_tokens: int
    logits: LogitsComparison
    ms: float
    ghost: float | None = None
    without_effect: bool = False


@dataclass(frozen=True, slots=True)
class Refilled:
    """A new context has what conversations had in the one before: `n_read` tokens were computed again and `n_carried`
    came with their state, of that many conversations. `n_left`: conversations that had no room. `ms`: all of it.
    `not_carried`: why states that were to be kept were read again.
    """

    n_conversations: int
    n_read: int
    n_carried: int
    n_left: int
    ms: float
    not_carried: str = ""


@dataclass(frozen=True, slots=True)
class RecordingTaken:
    """The journal. is_over: its context is freed now, for another one; nobody asked for it."""

    recording: Recording
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class ContextReady:
    """There is another context. `back_to`: its settings, where an undo brought them back; None: those that were asked
    for.
    """

    context: ContextInfo
    rebuilt: bool
    possible: tuple[Capability, ...] = ()
    back_to: ContextSettings | None = None


@dataclass(frozen=True, slots=True)
class SpeedSample:
    """One measured decode call. `at_s` is time.monotonic(); `n_tokens` tokens took `ms`, attention span `n_kv`.

    kind         "decode": a token for each answer under way; "flush": for a pending K-shift, its tokens do not count
    n_ubatches   into how many ubatches the batch was cut
    n_tested     cells that the slot search looked at, wrap included
    rc           what llama_decode returned; only with 0 were tokens computed
    n_shifted    cells whose moved position this call applied to K (K-shift); `ms` includes that
    n_drafted    tokens of it that were guessed; `n_accepted`: of those the right ones, which `n_tokens` counts too
    """

    at_s: float
    kind: Literal["prefill", "decode", "flush"]
    n_tokens: int
    ms: float
    n_kv: int
    n_ubatches: int = 1
    n_tested: int = 0
    rc: int = 0
    n_shifted: int = 0
    n_drafted: int = 0
    n_accepted: int = 0


@dataclass(frozen=True, slots=True)
class OperationDone:
    """An operation on the cache, for marks on time axes. `call` is llama.cpp's own call with its arguments.

    effect    what it did, for operations by hand; undoable: `Undo(operation)` is possible as long as nobody says
              otherwise (the latest `CacheView.undoable` names all that are)
    emptied   the sequence, or with `conversation` None every one, holds no cell any more
    note      a sentence for the user: cells left that nobody asked to leave, and although cells are free
    """

    operation: int
    at_s: float
    name: str
    call: str
    ms: float
    conversation: ConversationId | None = None
    reason: str = ""
    effect: Effect | None = None
    undoable: bool = False
    emptied: bool = False
    note: str = ""

    @property
    def changes_use(self) -> bool:
        """Whether a conversation may have more or fewer cells after it than what was last reported of its prompt."""
        return self.emptied or self.effect is not None


@dataclass(frozen=True, slots=True)
class CacheView:
    """The cache as it is now, with who leases which sequence.

    has_report   there was a mismatch to be saved
    pending      positions have moved whose K is rotated before the next decode
    swapped      conversations whose cells are saved outside the cache, and the bytes of each
    undoable     numbers of the operations by hand that can be undone, ascending
    clients      other programs of whose requests something is kept, the one with most cells first
    """

    snapshot: CacheSnapshot
    leases: tuple[Lease, ...]
    has_report: bool = False
    pending: bool = False
    swapped: tuple[tuple[ConversationId, int], ...] = ()
    undoable: tuple[int, ...] = ()
    clients: tuple[ClientShare, ...] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """Every used cell was compared with the engine's own state (`AuditCache`). `at`: time of day; `sentence`: what was
    compared and found, and how long that took.
    """

    state: VerificationState
    at: str
    sentence: str


@dataclass(frozen=True, slots=True)
class TokenTexts:
    """Texts of token ids that are new to the cache, for hover and explanation."""

    texts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """What model and context take, sent with every `ContextReady` and when it has changed."""

    rows: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class MessageSpans:
    """Where the messages of a conversation lie in its sequence, sent when a turn starts and when it ends."""

    conversation: ConversationId
    seq_id: int
    spans: tuple[MessageSpan, ...]


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Processor time between two looks, in cores (1.0 is one core busy). `at_s` is time.monotonic()."""

    at_s: float
    own: float
    others: float
    n_threads: int


CacheCommand = (
    Forget
    | TransferSequence
    | RebuildContext
    | Watch
    | UsePolicy
    | AuditCache
    | SaveReport
    | PreviewContext
    | VerifyConversation
    | TakeRecording
    | Operate
    | PreviewCompaction
    | AttentionCommand
)
CacheEvent = (
    ContextPreview
    | SequenceTransferred
    | Verified
    | Refilled
    | RecordingTaken
    | ContextReady
    | SpeedSample
    | OperationDone
    | CacheView
    | Audited
    | TokenTexts
    | MemoryLedger
    | MessageSpans
    | LoadSample
    | CompactionPreview
    | BatchRefused
    | AttentionEvent
)
