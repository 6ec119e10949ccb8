"""Operations on the cache by hand, what they would do and did, and what a context allows: values that cross the thread.

Sequences are named by seq_id, as the inspector shows them; positions are half-open ranges `[p0, p1)` in which -1 means
"from the start" and "to the end", as llama.cpp has it.

An operation declares its `name`, what is `affected`, and its `call`: llama.cpp's C functions with their arguments, the
same on a button before and in the journal afterwards. The `seq_id` of `call` is that of the conversation which the
operation names, -1 while it has no sequence.
"""

from typing import ClassVar, Final, Literal

from kvdesk.cache.compaction import CompactionPlan, Layout
from kvdesk.cache.compare import Comparison
from kvdesk.message import ConversationId
from kvdesk.protocol import calls
from kvdesk.translation import marked
from kvdesk.values import dataclass

TO_COMPARE: Final = marked("to compare the next token")
"""Why the journal has calls before and after an operation by hand: its effect on the next token is measured."""


@dataclass(frozen=True, slots=True)
class OneSequence:
    """The cells of a sequence, -1: of every one. `moved_from`: cells from this position on move, shared ones too."""

    seq_id: int
    moved_from: int | None = None


@dataclass(frozen=True, slots=True)
class OtherSequences:
    """The cells of all sequences but this one."""

    seq_id: int


@dataclass(frozen=True, slots=True)
class OneConversation:
    """The cells of the sequence in which a conversation goes on."""

    conversation: ConversationId


Affected = OneSequence | OtherSequences | OneConversation | Literal["every sequence", "no sequence"]
"""The sequences whose answers cannot go on after an operation."""


@dataclass(frozen=True, slots=True)
class RemoveRange:
    """`llama_memory_seq_rm(mem, seq_id, p0, p1)`; seq_id -1 is every sequence."""

    seq_id: int
    p0: int = -1
    p1: int = -1

    name: ClassVar = "seq_rm"

    @property
    def affected(self) -> Affected:
        return OneSequence(self.seq_id)

    def call(self, _seq_id: int = -1) -> str:
        return calls.seq_rm(self.seq_id, self.p0, self.p1)


@dataclass(frozen=True, slots=True)
class KeepOnly:
    """`llama_memory_seq_keep(mem, seq_id)`: the cells of all other sequences of its stream are removed."""

    seq_id: int

    name: ClassVar = "seq_keep"

    @property
    def affected(self) -> Affected:
        return OtherSequences(self.seq_id)

    def call(self, _seq_id: int = -1) -> str:
        return calls.seq_keep(self.seq_id)


@dataclass(frozen=True, slots=True)
class CopySequence:
    """`llama_memory_seq_cp(mem, src, dst, p0, p1)`, where `dst` is the sequence of `conversation`, leased for it.

    What `conversation` held before is removed first.
    """

    src: int
    conversation: ConversationId
    p0: int = -1
    p1: int = -1

    name: ClassVar = "seq_cp"

    @property
    def affected(self) -> Affected:
        return OneConversation(self.conversation)

    def call(self, seq_id: int = -1) -> str:
        return calls.seq_cp(self.src, _argument(seq_id), self.p0, self.p1)


@dataclass(frozen=True, slots=True)
class ShiftPositions:
    """`llama_memory_seq_add(mem, seq_id, p0, p1, shift)`: K is rotated before the next decode."""

    seq_id: int
    p0: int
    p1: int
    shift: int

    name: ClassVar = "seq_add"

    @property
    def affected(self) -> Affected:
        return OneSequence(self.seq_id, moved_from=max(0, self.p0))

    def call(self, _seq_id: int = -1) -> str:
        return calls.seq_add(self.seq_id, self.p0, self.p1, self.shift)


@dataclass(frozen=True, slots=True)
class ClearCache:
    """`llama_memory_clear(mem, true)`."""

    name: ClassVar = "clear"

    @property
    def affected(self) -> Affected:
        return "every sequence"

    def call(self, _seq_id: int = -1) -> str:
        return calls.clear()


@dataclass(frozen=True, slots=True)
class Compact:
    """Whole-state get, permute, set: used cells move to the front. `hot`: seq_ids in order, for `Layout.HOT_FIRST`."""

    layout: Layout
    hot: tuple[int, ...] = ()

    name: ClassVar = "compact"

    @property
    def affected(self) -> Affected:
        return "no sequence"

    def call(self, _seq_id: int = -1) -> str:
        return f"{calls.state_get()}; /* {self.layout} */ {calls.state_set()}"


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Save the conversation's sequence to memory and remove its cells."""

    conversation: ConversationId

    name: ClassVar = "swap out"

    @property
    def affected(self) -> Affected:
        return OneConversation(self.conversation)

    def call(self, seq_id: int = -1) -> str:
        return f"{calls.state_seq_get(_argument(seq_id))}; {calls.seq_rm(_argument(seq_id), -1, -1)}"


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Put the saved sequence back: nothing is computed."""

    conversation: ConversationId

    name: ClassVar = "swap in"

    @property
    def affected(self) -> Affected:
        return OneConversation(self.conversation)

    def call(self, seq_id: int = -1) -> str:
        return calls.state_seq_set(_argument(seq_id))


@dataclass(frozen=True, slots=True)
class TryDecode:
    """Decode one token for the sequence at position `pos`, by hand: refused by llama.cpp (rc -1, `BatchRefused`) where
    `pos` is not seq_pos_max + 1. A token that was taken stays in the cache.
    """

    seq_id: int
    pos: int

    name: ClassVar = "decode"

    @property
    def affected(self) -> Affected:
        return OneSequence(self.seq_id)

    def call(self, _seq_id: int = -1) -> str:
        return calls.decode(1, f"pos {self.pos}", f"seq {self.seq_id}")


@dataclass(frozen=True, slots=True)
class Undo:
    """Restore the whole cache as it was before operation number `operation`, while its blob is kept."""

    operation: int

    name: ClassVar = "undo"

    @property
    def affected(self) -> Affected:
        return "every sequence"

    def call(self, _seq_id: int = -1) -> str:
        return f"/* as before operation {self.operation:,} */ {calls.state_set()}"


def _argument(seq_id: int) -> calls.Argument:
    return "new" if seq_id < 0 else seq_id


HandOperation = (
    RemoveRange | KeepOnly | CopySequence | ShiftPositions | ClearCache | Compact | SwapOut | SwapIn | TryDecode | Undo
)


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
class CompactionPreview:
    """`gain`: expected speed after over speed now, from this machine's own measurements; None when nothing was measured
    yet. `remark`: the same in one honest sentence.
    """

    plan: CompactionPlan
    gain: float | None
    remark: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation did, before against after.

    bytes_moved   of K and V, 0 if none were moved; `ms` of the operation is in `OperationDone`
    audited       whether the map was compared with the engine's own state afterwards, and agreed
    """

    comparison: Comparison
    bytes_moved: int = 0
    audited: bool = False


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """llama_decode returned -1: the sequence ends at position `x` and the batch started at `y`; it must be x + 1."""

    seq_id: int
    x: int
    y: int
    sentence: str


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
    "attention",
    "exact answers",
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
