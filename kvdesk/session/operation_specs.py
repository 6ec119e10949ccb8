"""Operations on the cache by hand as the window offers them: one declaration each, in the tuple `OPERATIONS`. No Qt.

The form, the menus and the compaction dialog are made from these. What crosses to the engine, its call and the cells it
affects are declared with its type in `kvdesk.protocol.operations`; one function of
`kvdesk.backends.local.operations.by_hand` carries it out.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Literal

from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol import operations
from kvdesk.protocol.cache import VerifyConversation
from kvdesk.protocol.features import Feature
from kvdesk.session.commands import Commands
from kvdesk.session.state import State, Target
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Chosen:
    """A target, a half-open range of its positions (-1 for start and end), and the other fields of the form."""

    target: Target | None
    p0: int = -1
    p1: int = -1
    shift: int = -1
    pos: int = 0

    @property
    def whole(self) -> bool:
        """Whether the range holds every position of the target."""
        return self.p0 <= 0 and (self.p1 < 0 or (self.target is not None and self.p1 > self.target.pos_max))

    @property
    def seq_id(self) -> int:
        return self.target.seq_id if self.target else -1

    @property
    def conversation(self) -> ConversationId:
        """Of the target; empty if none has it."""
        return (self.target.conversation if self.target else None) or ConversationId("")


class Scope(Enum):
    """The cells that an operation affects: while an answer is written there it is refused."""

    SEQUENCE = auto()  # of the target
    OTHER_SEQUENCES = auto()  # of all but the target
    CACHE = auto()  # all; it needs no target


def _nothing(_chosen: Chosen, _state: State) -> None:
    return None


def _no_problem(_chosen: Chosen, _state: State) -> str:
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class OperationSpec:
    """One operation.

    label, tip      the word on its button; what it does, in one sentence
    menu            its text in the menu of a conversation, "" for none
    capability      the row of the context's capabilities that allows it; None if every context does
    partial         the row instead, where not the whole target is chosen
    takes_range     it affects only the chosen positions, of which there must be some
    needs_cells     the target must have cells
    needs_owner     the target must belong to a conversation
    field           the field of the form that is beside its button
    action          the action of the window that its button runs instead, which asks for more
    build           the operation, made from what is chosen
    problem         why it makes no sense for what is chosen, in one sentence; empty if it does
    """

    label: str
    tip: str
    scope: Scope = Scope.SEQUENCE
    menu: str = ""
    capability: operations.OperationName | None = None
    partial: operations.OperationName | None = None
    takes_range: bool = False
    needs_cells: bool = True
    needs_owner: bool = False
    field: Literal["", "shift", "pos"] = ""
    action: str = ""
    build: Callable[[Chosen, State], operations.HandOperation | None] = _nothing
    problem: Callable[[Chosen, State], str] = _no_problem


def _problem_of_shift(chosen: Chosen, _state: State) -> str:
    first = max(chosen.p0, 0)
    if chosen.shift == 0:
        return tr("A shift by 0 moves nothing.")
    return (
        tr("Positions cannot be below 0: shift by {first} at most.").format(first=f"{-first:,}")
        if first + chosen.shift < 0
        else ""
    )


REMOVE: Final = OperationSpec(
    marked("Remove"),
    marked("Removes these positions of the sequence from the cache"),
    capability="seq_rm",
    partial="partial seq_rm",
    takes_range=True,
    build=lambda chosen, _: operations.RemoveRange(chosen.seq_id, chosen.p0, chosen.p1),
)
KEEP: Final = OperationSpec(
    marked("Keep only"),
    marked("Removes the cells of all other sequences"),
    scope=Scope.OTHER_SEQUENCES,
    menu=marked("Keep only its cells"),
    capability="seq_keep",
    build=lambda chosen, _: operations.KeepOnly(chosen.seq_id),
)
FORK: Final = OperationSpec(
    marked("Fork"),
    marked("Starts a new chat that shares these cells: they are not stored twice"),
    menu=marked("Fork into a new chat"),
    capability="seq_cp",
    partial="partial seq_cp",
    takes_range=True,
    needs_owner=True,
    build=lambda chosen, _: operations.CopySequence(chosen.seq_id, ConversationId(""), chosen.p0, chosen.p1),
)
SWAP_OUT: Final = OperationSpec(
    marked("Swap out"),
    marked("Saves the sequence outside the cache and removes its cells"),
    menu=marked("Swap out of the cache"),
    capability="swap",
    needs_owner=True,
    build=lambda chosen, _: operations.SwapOut(chosen.conversation),
)
SWAP_IN: Final = OperationSpec(
    marked("Swap in"),
    marked("Puts the saved sequence back: nothing is computed"),
    menu=marked("Swap in again"),
    capability="swap",
    needs_cells=False,
    build=lambda chosen, _: operations.SwapIn(chosen.conversation),
    problem=lambda chosen, _: "" if chosen.target and chosen.target.swapped_bytes else tr("It is not swapped out."),
)
SHIFT: Final = OperationSpec(
    marked("Shift by"),
    marked("Moves these positions; K is rotated before the next decode"),
    capability="seq_add",
    takes_range=True,
    field="shift",
    build=lambda chosen, _: operations.ShiftPositions(chosen.seq_id, chosen.p0, chosen.p1, chosen.shift),
    problem=_problem_of_shift,
)
TRY: Final = OperationSpec(
    marked("Try at"),
    marked("Decodes one token there: llama.cpp takes it only right after the sequence's last position"),
    field="pos",
    build=lambda chosen, _: operations.TryDecode(chosen.seq_id, chosen.pos),
)
VERIFY: Final = OperationSpec(
    marked("Verify"),
    marked("Computes the conversation again in a free sequence and compares the logits of the next token"),
    menu=marked("Verify its cells"),
    needs_owner=True,
)
COMPACT: Final = OperationSpec(
    marked("Compact…"),
    marked("Moves used cells to the front; first shows what would change"),
    scope=Scope.CACHE,
    capability="compaction",
    action="cache.compact",
)
REBUILD: Final = OperationSpec(
    marked("Rebuild…"),
    marked("Makes a new context; conversations are forgotten, prefilled again or carried over"),
    scope=Scope.CACHE,
    action="settings.context",
)
CLEAR: Final = OperationSpec(
    marked("Clear"),
    marked("Removes everything from the cache; the texts stay"),
    scope=Scope.CACHE,
    build=lambda *_: operations.ClearCache(),
)
UNDO: Final = OperationSpec(
    marked("Undo"),
    marked("Puts the whole cache back as it was before the last operation by hand"),
    scope=Scope.CACHE,
    build=lambda _, state: operations.Undo(state.undoable[-1]) if state.undoable else None,
    problem=lambda _, state: "" if state.undoable else tr("There is nothing to undo."),
)

OPERATIONS: Final = (REMOVE, KEEP, FORK, SWAP_OUT, SWAP_IN, SHIFT, TRY, VERIFY, COMPACT, REBUILD, CLEAR, UNDO)
"""In the order of the form and of the menus."""


def alternative(spec: OperationSpec, target: Target | None) -> OperationSpec:
    """Swapping out and in have one button and one line in a menu: the operation that it stands for now."""
    if spec in (SWAP_OUT, SWAP_IN):
        return SWAP_IN if target and target.swapped_bytes else SWAP_OUT
    return spec


def refusal(spec: OperationSpec, chosen: Chosen, state: State) -> str:
    """Why the operation cannot be done, in one sentence; empty if it can."""
    if state.dead:
        return tr("The engine has stopped.")
    if missing := state.missing(Feature.CACHE_OPERATIONS):
        return missing
    if state.context is None:
        return tr("No model is open.")
    sentence = _refusal_of_target(spec, chosen, state) or spec.problem(chosen, state)
    if sentence:
        return sentence
    allowed, why = state.answer(_capability(spec, chosen))
    return "" if allowed else why


def remark(spec: OperationSpec, chosen: Chosen, state: State) -> str:
    """A sentence about what is lost, or should be known, when it is done; empty for nothing."""
    allowed, why = state.answer(_capability(spec, chosen))
    return why if allowed else ""


def call_of(spec: OperationSpec, chosen: Chosen, state: State) -> str:
    """llama.cpp's call with its arguments; empty if the button asks for something else. A fork gets a new seq_id."""
    operation = spec.build(chosen, state)
    return operation.call(-1 if spec is FORK else chosen.seq_id) if operation is not None else ""


def carry_out(spec: OperationSpec, chosen: Chosen, state: State, commands: Commands) -> None:
    """Ask for an operation that is not refused."""
    if spec is FORK:  # the copy of cells comes with the new chat
        commands.fork(chosen.conversation, _last_message(chosen, state), chosen.p0, chosen.p1)
    elif spec is VERIFY:
        commands.submit(VerifyConversation(chosen.conversation))
    elif (operation := spec.build(chosen, state)) is not None:
        commands.submit(operations.Operate(operation))


def _refusal_of_target(spec: OperationSpec, chosen: Chosen, state: State) -> str:
    target = chosen.target
    if target is None and spec.scope is not Scope.CACHE:
        return tr("No sequence is in the cache yet.")
    is_own = spec.scope is Scope.SEQUENCE
    if (target is not None and target.conversation in state.running) if is_own else state.running:
        return tr("An answer is being written; stop it first.")
    if target is None or spec.scope is Scope.CACHE:
        return ""
    if spec.needs_cells and not target.n_cells:
        return tr("It is swapped out: swap it in first.") if target.swapped_bytes else tr("It has no cells.")
    if spec.needs_owner and target.conversation is None:
        return tr("No conversation owns this sequence.")
    if spec.takes_range and 0 <= chosen.p1 <= max(chosen.p0, 0):
        return tr("The range is empty: its end lies before its start.")
    return ""


def _last_message(chosen: Chosen, state: State) -> MessageId | None:
    """A fork of the first positions has the messages that end there; if their positions are unknown, all of them."""
    spans = state.spans.get(chosen.conversation)
    if chosen.p1 < 0 or spans is None:
        return None
    return next((span.message for span in reversed(spans.spans) if span.p1 <= chosen.p1), None)


def _capability(spec: OperationSpec, chosen: Chosen) -> str:
    return (spec.capability if chosen.whole else spec.partial or spec.capability) or ""
