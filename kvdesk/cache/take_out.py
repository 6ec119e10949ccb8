"""Removes ranges of a sequence and closes the gaps, in a cache or in its mirror. Must never know the engine."""

from collections.abc import Sequence
from typing import Protocol


class Movable(Protocol):
    """Cells whose positions can move: llama_memory_seq_rm and llama_memory_seq_add."""

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool: ...
    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None: ...


def take_out(cells: Movable, seq_id: int, removed: Sequence[tuple[int, int]]) -> None:
    """Remove the ranges `[p0, p1)` of positions, which ascend, and move what is behind each down to its p0 as it is.
    From the end on, so that no position moves before it is named. Raises what the operations raise.
    """
    for p0, p1 in reversed(removed):
        cells.seq_rm(seq_id, p0, p1)
        cells.seq_add(seq_id, p1, -1, p0 - p1)
