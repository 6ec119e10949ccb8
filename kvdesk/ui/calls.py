"""llama.cpp's own call for an operation by hand, as text: a person learns the API by using the window. Pure."""

from __future__ import annotations

from kvdesk.operations import (
    ClearCache,
    Compact,
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


def call_text(operation: HandOperation, seq_id: int = -1) -> str:
    """The call or calls. `seq_id`: of the conversation, where the operation names only that; -1 for not yet leased."""
    seq = "new" if seq_id < 0 else str(seq_id)
    match operation:
        case RemoveRange(s, p0, p1):
            return f"llama_memory_seq_rm(mem, {s}, {p0}, {p1})"
        case KeepOnly(s):
            return f"llama_memory_seq_keep(mem, {s})"
        case CopySequence(src, _, p0, p1):
            return f"llama_memory_seq_cp(mem, {src}, {seq}, {p0}, {p1})"
        case ShiftPositions(s, p0, p1, shift):
            return f"llama_memory_seq_add(mem, {s}, {p0}, {p1}, {shift})"
        case ClearCache():
            return "llama_memory_clear(mem, true)"
        case Compact() | Undo():
            get = "llama_state_get_data(ctx, …); " if isinstance(operation, Compact) else ""
            return f"{get}llama_memory_clear(mem, true); llama_state_set_data(ctx, …)"
        case SwapOut():
            return f"llama_state_seq_get_data(ctx, …, {seq}); llama_memory_seq_rm(mem, {seq}, -1, -1)"
        case SwapIn():
            return f"llama_state_seq_set_data(ctx, …, {seq})"
        case TryDecode(s, pos):
            return f"llama_decode(ctx, {{1 token, pos {pos}, seq {s}}})"
