"""Values for llama_decode calls: first made, then followed by the mirror.

A value stands for one or more successive calls. One call decodes a whole batch; several decode one token each, of one
sequence at successive positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from kvdesk.cache.batch import Batch
from kvdesk.cache.record import DecodeRecord

DecodeKind = Literal["prefill", "decode", "draft", "check", "flush"]
"""The purpose of a decode: a prompt, an answer, an answer with guessed tokens, reading logits, pending K-shifts and
copies."""


class PendingDecode(NamedTuple):
    """Calls that the mirror has not followed yet.

    batch      the tokens of all calls
    rc         what llama_decode returned; always 0 for several calls
    ms         wall time of each call; `at_s`: time.monotonic() at its end
    lines      what the engine printed, in order
    last       seq_pos_max of each sequence right after; None if the next decode prints it (llama-kv-cache.cpp:960)
    taken_back  for a failed decode: by sequence, the position from which on the engine removes it again
    """

    batch: Batch
    kind: DecodeKind
    rc: int
    ms: Sequence[float]
    at_s: Sequence[float]
    lines: list[bytes]
    last: dict[int, int] | None
    taken_back: dict[int, int] | None = None

    @property
    def each(self) -> bool:
        """Whether every token was a separate call, of one sequence, and was placed."""
        return self.rc == 0 and len(self.batch.tokens) == len(self.ms) and len(self.batch.seq_ids[0]) == 1

    def follows(self, other: PendingDecode) -> bool:
        """Whether both are single tokens of the same sequence, this one directly after the other."""
        return (
            self.each
            and other.each
            and self.batch.seq_ids[0] == other.batch.seq_ids[0]
            and self.batch.pos[0] == other.batch.pos[-1] + 1
            and self.kind == other.kind
        )


def joined(decodes: Sequence[PendingDecode]) -> list[PendingDecode]:
    """The same calls in order, merged where each token directly follows the one before in its sequence."""
    runs: list[list[PendingDecode]] = []
    for decode in decodes:
        if runs and decode.follows(runs[-1][-1]):
            runs[-1].append(decode)
        else:
            runs.append([decode])
    return [run[0] if len(run) == 1 else _one(run) for run in runs]


def _one(run: Sequence[PendingDecode]) -> PendingDecode:
    (batch, kind, rc, *_), last = run[0], run[-1].last
    tokens = [token for decode in run for token in decode.batch.tokens]
    output = [wanted for decode in run for wanted in decode.batch.output]
    pos = range(batch.pos[0], batch.pos[0] + len(tokens))
    return PendingDecode(
        Batch(tokens, pos, [batch.seq_ids[0]] * len(tokens), output),
        kind,
        rc,
        [ms for decode in run for ms in decode.ms],
        [at for decode in run for at in decode.at_s],
        [line for decode in run for line in decode.lines],
        last,
    )


class MirroredDecode(NamedTuple):
    """Calls that the mirror has followed: `record` has their effect on the cells. The rest as in `PendingDecode`."""

    record: DecodeRecord
    batch: Batch
    kind: DecodeKind
    ms: Sequence[float]
    at_s: Sequence[float]

    @property
    def n_tokens(self) -> int:
        """Tokens per call."""
        return len(self.batch.tokens) // len(self.ms)
