"""What crosses the thread between window and engine: frozen commands go down, frozen events come up.

Stop is not among the commands: it must work while the engine is busy, so it is a flag (`kvdesk.worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kvdesk.cache.snapshot import CacheSnapshot, VerificationState
from kvdesk.chat import ALL_THERE, ConversationId, Left, Message, MessageId, MessageState, TurnStats
from kvdesk.operations import (
    BatchRefused,
    Capability,
    CompactionPreview,
    ContextPreview,
    ContextUse,
    Departed,
    Effect,
    LoadSample,
    MeasureContext,
    MemoryLedger,
    MessageSpans,
    Operate,
    Overflowed,
    PreviewCompaction,
    PreviewContext,
    PreviewTurn,
    RecordingTaken,
    Shades,
    TakeRecording,
    TurnPreview,
    Verified,
    VerifyConversation,
    Working,
)
from kvdesk.settings import CachePolicy, ContextSettings, Overflow, Sampling

# --- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model. Sizes in bytes."""

    path: Path
    name: str
    architecture: str
    description: str  # llama_model_desc, such as "llama ?B Q4_1"
    size_bytes: int
    n_params: int
    n_ctx_train: int
    n_layer: int
    n_vocab: int
    has_text: bool  # False: no text tokenizer, token ids only
    has_template: bool  # False: a plain fallback template is used


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


@dataclass(frozen=True, slots=True)
class Lease:
    """A conversation and the sequence it has in the cache.

    parked   another branch of it, kept while there is room
    branch   its number among those of the conversation, from 1 on; it keeps the number while it is in the cache
    """

    conversation: ConversationId
    seq_id: int
    parked: bool = False
    branch: int = 1


# --- commands: down -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadModel:
    path: Path
    context: ContextSettings


@dataclass(frozen=True, slots=True)
class Generate:
    """Answer the conversation `messages` (oldest first, system prompt included) as message `answer`.

    overflow  what happens when the context is full; n_keep: leading tokens that stay then
    left      what left it before; what the engine has told since (`Departed`) counts more
    """

    conversation: ConversationId
    answer: MessageId
    messages: tuple[Message, ...]
    sampling: Sampling
    overflow: Overflow = Overflow.STOP
    n_keep: int = 0
    left: Left = ALL_THERE


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove every cell of the conversation (`llama_memory_seq_rm(mem, seq_id, -1, -1)`); its text stays."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class CloseConversation:
    """Remove its cells and give its seq_id back to the pool."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True)
class RebuildContext:
    """Free the context and create a new one.

    keep   what becomes of the conversations that are in the cache: "nothing": each is prefilled again at its next turn;
           "tokens": they are prefilled now, with progress (`Working`) and cancel; "state": carried over as saved state,
           where the types allow it (`ContextPreview.carries_state`)
    """

    context: ContextSettings
    keep: Literal["nothing", "tokens", "state"] = "nothing"


@dataclass(frozen=True, slots=True)
class Watch:
    """Whether somebody looks at the cache: snapshots are made only then."""

    snapshots: bool


@dataclass(frozen=True, slots=True)
class UsePolicy:
    """What kvdesk does with the cache by itself, from now on. `folder`: of saved states; None keeps them in memory."""

    policy: CachePolicy
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class AuditCache:
    """Compare every used cell with the engine's own state, whatever it costs (a copy of all K and V)."""


@dataclass(frozen=True, slots=True)
class SaveReport:
    """Write the report of the last mismatch, as JSON, to `path`."""

    path: Path


Command = (
    LoadModel
    | Generate
    | Forget
    | CloseConversation
    | RebuildContext
    | Watch
    | UsePolicy
    | AuditCache
    | SaveReport
    | Operate
    | PreviewCompaction
    | PreviewContext
    | PreviewTurn
    | MeasureContext
    | VerifyConversation
    | TakeRecording
)

# --- events: up -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelLoading:
    path: Path
    progress: float  # 0.0 to 1.0


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """`remark` is something the person should know about the model, such as a template that cannot be used."""

    model: ModelInfo
    remark: str = ""


@dataclass(frozen=True, slots=True)
class ContextReady:
    context: ContextInfo
    rebuilt: bool
    possible: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """A command did not do its work; nothing was lost. `sentence` is for the person, `detail` folded."""

    command: Command
    sentence: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The prompt has been compared with the cache: this much is reused, this much is prefilled."""

    conversation: ConversationId
    answer: MessageId
    seq_id: int
    prompt_tokens: int
    reused_tokens: int


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    conversation: ConversationId
    answer: MessageId
    done: int
    total: int
    tok_s: float


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an answer. `text` may be empty while a character is still incomplete."""

    conversation: ConversationId
    answer: MessageId
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The answer is over. `note` says why when it is not simply complete."""

    conversation: ConversationId
    answer: MessageId
    state: MessageState
    stats: TurnStats
    note: str = ""


@dataclass(frozen=True, slots=True)
class SpeedSample:
    """One measured decode call. `at_s` is time.monotonic(); `n_tokens` tokens took `ms`, attention span `n_kv`.

    kind         "decode": a token for each answer under way; "flush": for a pending K-shift, its tokens do not count
    n_ubatches   into how many ubatches the batch was cut
    n_tested     cells that the slot search looked at, wrap included
    rc           what llama_decode returned; only with 0 were tokens computed
    n_shifted    cells whose moved position this call applied to K (K-shift); `ms` includes that
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


@dataclass(frozen=True, slots=True)
class OperationDone:
    """An operation on the cache, for marks on time axes. `call` is llama.cpp's own call with its arguments.

    effect    what it did, for operations by hand; undoable: `Undo(operation)` is possible as long as nobody says
              otherwise (the latest `CacheView.undoable` names all that are)
    emptied   the sequence, or with `conversation` None every one, holds no cell any more
    note      a sentence for the person: cells left that nobody asked to leave, and although cells are free
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


@dataclass(frozen=True, slots=True)
class CacheView:
    """The cache as it is now, with who leases which sequence.

    has_report   there was a mismatch to be saved
    pending      positions have moved whose K is rotated before the next decode
    swapped      conversations whose cells are saved outside the cache, and the bytes of each
    undoable     numbers of the operations by hand that can be undone, ascending
    """

    snapshot: CacheSnapshot
    leases: tuple[Lease, ...]
    has_report: bool = False
    pending: bool = False
    swapped: tuple[tuple[ConversationId, int], ...] = ()
    undoable: tuple[int, ...] = ()


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
class LogLine:
    level: Literal["debug", "info", "warning", "error"]
    text: str


@dataclass(frozen=True, slots=True)
class EngineRestarted:
    """An error nobody expected ended the engine's loop. Its answers have ended (`TurnEnded`), its context is gone; the
    model is being loaded again (`ModelLoading`, `ContextReady`), and commands that wait are carried out after that.
    """

    sentence: str
    detail: str


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The same happened so often that it is not tried again; the window lives on and says so."""

    sentence: str
    detail: str


Event = (
    ModelLoading
    | ModelLoaded
    | ContextReady
    | CommandFailed
    | TurnStarted
    | PrefillProgress
    | TextDelta
    | TurnEnded
    | SpeedSample
    | OperationDone
    | CacheView
    | Audited
    | TokenTexts
    | LogLine
    | EngineRestarted
    | EngineDied
    | CompactionPreview
    | ContextPreview
    | ContextUse
    | TurnPreview
    | MemoryLedger
    | Working
    | Verified
    | RecordingTaken
    | MessageSpans
    | Shades
    | Overflowed
    | Departed
    | LoadSample
    | BatchRefused
)
