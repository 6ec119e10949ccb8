"""llama_decode calls on their way from the engine to whoever wants to know of them: made, then followed by the mirror.

Plain values of n >= 1 calls, one after another. One call decodes a whole batch; several decode one token each, of the
same sequence at successive positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from kvdesk.cache.batch import Batch
from kvdesk.cache.record import DecodeRecord

DecodeKind = Literal["prefill", "decode", "check", "flush"]
"""What a decode is for: a prompt, an answer, a look at logits, pending K-shifts and copies."""


class OpenRun:
    """Calls that go on: tokens of one sequence, one after another from position `pos` on, each placed (rc 0).

    ms       wall times; `ends`: time.perf_counter() at the end of each
    n_lines  how many lines the engine has printed until the end of the last one
    """

    __slots__ = ("ends", "ms", "n_lines", "pos", "seq_id", "tokens")

    def __init__(self, seq_id: int, pos: int) -> None:
        self.seq_id = seq_id
        self.pos = pos
        self.tokens: list[int] = []
        self.ms: list[float] = []
        self.ends: list[float] = []
        self.n_lines = 0


class PendingDecode(NamedTuple):
    """Calls that the mirror has not followed yet.

    batch      the tokens of all calls
    rc         what llama_decode returned: 0 for several calls
    ms         wall time of each call; `at_s`: time.monotonic() at its end
    n_threads  that computed them
    lines      what the engine printed, in order
    last       seq_pos_max of each sequence right after; None where the next decode prints it (llama-kv-cache.cpp:960)
    """

    batch: Batch
    kind: DecodeKind
    rc: int
    ms: Sequence[float]
    at_s: Sequence[float]
    n_threads: int
    lines: list[bytes]
    last: dict[int, int] | None

    @property
    def each(self) -> bool:
        """Whether every token was a call of its own, of one sequence, and was placed."""
        return self.rc == 0 and len(self.batch.tokens) == len(self.ms) and len(self.batch.seq_ids[0]) == 1


class MirroredDecode(NamedTuple):
    """Calls that the mirror has followed: `record` says what they did to the cells. The rest as in `PendingDecode`."""

    record: DecodeRecord
    batch: Batch
    kind: DecodeKind
    ms: Sequence[float]
    at_s: Sequence[float]
    n_threads: int

    @property
    def n_tokens(self) -> int:
        """Tokens of each call."""
        return len(self.batch.tokens) // len(self.ms)
