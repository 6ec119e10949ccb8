"""What can be done to the cache by hand: the operation that each button makes, and why it cannot be pressed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvdesk.chat import ConversationId
from kvdesk.protocol.operations import (
    ClearCache,
    CopySequence,
    HandOperation,
    KeepOnly,
    RemoveRange,
    ShiftPositions,
    SwapIn,
    SwapOut,
    TryDecode,
    Undo,
)
from kvdesk.viewmodel.cache_state import CacheState, Target


class CacheAction(StrEnum):
    """The buttons, by the words on them."""

    REMOVE = "Remove"
    KEEP = "Keep only"
    FORK = "Fork"
    SWAP_OUT = "Swap out"
    SWAP_IN = "Swap in"
    SHIFT = "Shift by"
    TRY = "Try at"
    VERIFY = "Verify"
    COMPACT = "Compact…"
    REBUILD = "Rebuild…"
    CLEAR = "Clear"
    UNDO = "Undo"


TIPS: Final = {
    CacheAction.REMOVE: "Removes these positions of the sequence from the cache",
    CacheAction.KEEP: "Removes the cells of all other sequences",
    CacheAction.FORK: "Starts a new chat that shares these cells: they are not stored twice",
    CacheAction.SWAP_OUT: "Saves the sequence outside the cache and removes its cells",
    CacheAction.SWAP_IN: "Puts the saved sequence back: nothing is computed",
    CacheAction.SHIFT: "Moves these positions; K is rotated before the next decode",
    CacheAction.TRY: "Decodes one token there: llama.cpp takes it only right after the sequence's last position",
    CacheAction.VERIFY: "Computes the conversation again in a free sequence and compares the logits of the next token",
    CacheAction.COMPACT: "Moves used cells to the front; first shows what would change",
    CacheAction.REBUILD: "Makes a new context; conversations are forgotten, prefilled again or carried over",
    CacheAction.CLEAR: "Removes everything from the cache; the texts stay",
    CacheAction.UNDO: "Puts the whole cache back as it was before the last operation by hand",
}
_WHOLE_CACHE: Final = frozenset({CacheAction.COMPACT, CacheAction.REBUILD, CacheAction.CLEAR, CacheAction.UNDO})
_NO_TARGET: Final = Target(-1, None, "", 0, -1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the form says: a target and a half-open range of positions, -1 for start and end."""

    target: Target | None
    p0: int = -1
    p1: int = -1
    shift: int = -1
    pos: int = 0

    @property
    def whole(self) -> bool:
        """Whether the range holds every position of the target."""
        return self.p0 <= 0 and (self.p1 < 0 or (self.target is not None and self.p1 > self.target.pos_max))


def operation_of(act: CacheAction, chosen: Chosen, state: CacheState) -> HandOperation | None:
    """The operation that the button asks for; None where it asks for something else (a dialog, a verification)."""
    target = chosen.target or _NO_TARGET
    name = target.conversation or ConversationId("")
    match act:
        case CacheAction.REMOVE:
            return RemoveRange(target.seq_id, chosen.p0, chosen.p1)
        case CacheAction.KEEP:
            return KeepOnly(target.seq_id)
        case CacheAction.FORK:
            return CopySequence(target.seq_id, ConversationId(""), chosen.p0, chosen.p1)
        case CacheAction.SWAP_OUT:
            return SwapOut(name)
        case CacheAction.SWAP_IN:
            return SwapIn(name)
        case CacheAction.SHIFT:
            return ShiftPositions(target.seq_id, chosen.p0, chosen.p1, chosen.shift)
        case CacheAction.TRY:
            return TryDecode(target.seq_id, chosen.pos)
        case CacheAction.CLEAR:
            return ClearCache()
        case CacheAction.UNDO:
            return Undo(state.undoable[-1]) if state.undoable else None
        case _:
            return None


def refusal(act: CacheAction, chosen: Chosen, state: CacheState) -> str:
    """Why the button cannot be pressed, in one sentence; empty where it can."""
    if state.dead:
        return "The engine has stopped."
    if state.context is None:
        return "No model is open."
    if act in _WHOLE_CACHE:
        if state.running:
            return "An answer is being written; stop it first."
        if act is CacheAction.UNDO and not state.undoable:
            return "There is nothing to undo."
    else:
        sentence = _refusal_of_target(act, chosen, state)
        if sentence:
            return sentence
    allowed, why = state.answer(_capability(act, chosen))
    return "" if allowed else why


def remark(act: CacheAction, chosen: Chosen, state: CacheState) -> str:
    """What is lost or should be known when it is done all the same."""
    allowed, why = state.answer(_capability(act, chosen))
    return why if allowed else ""


def _refusal_of_target(act: CacheAction, chosen: Chosen, state: CacheState) -> str:
    target = chosen.target
    if target is None:
        return "No sequence is in the cache yet."
    if target.conversation in state.running or (act is CacheAction.KEEP and state.running):
        return "An answer is being written; stop it first."
    if act is CacheAction.SWAP_IN:
        return "" if target.swapped_bytes else "It is not swapped out."
    if not target.n_cells:
        return "It is swapped out: swap it in first." if target.swapped_bytes else "It holds no cells."
    if act in (CacheAction.FORK, CacheAction.SWAP_OUT, CacheAction.VERIFY) and target.conversation is None:
        return "No conversation owns this sequence."
    if chosen.p1 >= 0 and chosen.p1 <= max(chosen.p0, 0):
        return (
            "The range is empty: its end lies before its start."
            if act in (CacheAction.REMOVE, CacheAction.FORK, CacheAction.SHIFT)
            else ""
        )
    if act is CacheAction.SHIFT:
        first = max(chosen.p0, 0)
        if chosen.shift == 0:
            return "A shift by 0 moves nothing."
        if first + chosen.shift < 0:
            return f"Positions cannot be below 0: shift by {-first:,} at most."
    return ""


def _capability(act: CacheAction, chosen: Chosen) -> str:
    """The row of the capability matrix (`kvdesk.backends.local.llama.capabilities`)."""
    match act:
        case CacheAction.REMOVE:
            return "seq_rm" if chosen.whole else "partial seq_rm"
        case CacheAction.FORK:
            return "seq_cp" if chosen.whole else "partial seq_cp"
        case CacheAction.KEEP:
            return "seq_keep"
        case CacheAction.SHIFT:
            return "seq_add"
        case CacheAction.SWAP_OUT | CacheAction.SWAP_IN:
            return "swap"
        case CacheAction.COMPACT:
            return "compaction"
        case _:
            return ""
