"""llama_decode calls on their way from the engine to whoever wants to know of them: made, then followed by the mirror.

Plain values of n >= 1 calls, one after another. One call decodes a whole batch; several decode one token each, of the
same sequence at successive positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from kvdesk.cache.batch import Batch
from kvdesk.cache.record import DecodeRecord

DecodeKind = Literal["prefill", "decode", "draft", "check", "flush"]
"""What a decode is for: a prompt, an answer, an answer with guessed tokens, a look at logits, pending K-shifts and
copies."""


class PendingDecode(NamedTuple):
    """Calls that the mirror has not followed yet.

    batch      the tokens of all calls
    rc         what llama_decode returned: 0 for several calls
    ms         wall time of each call; `at_s`: time.monotonic() at its end
    n_threads  that computed them
    lines      what the engine printed, in order
    last       seq_pos_max of each sequence right after; None if the next decode prints it (llama-kv-cache.cpp:960)
    taken_back  of a decode that failed: by sequence, the position from which on the engine removes it again
    """

    batch: Batch
    kind: DecodeKind
    rc: int
    ms: Sequence[float]
    at_s: Sequence[float]
    n_threads: int
    lines: list[bytes]
    last: dict[int, int] | None
    taken_back: dict[int, int] | None = None

    @property
    def each(self) -> bool:
        """Whether every token was a separate call, of one sequence, and was placed."""
        return self.rc == 0 and len(self.batch.tokens) == len(self.ms) and len(self.batch.seq_ids[0]) == 1

    def follows(self, other: PendingDecode) -> bool:
        """Whether both are one token each of the same sequence, this one right behind the other."""
        return (
            self.each
            and other.each
            and self.batch.seq_ids[0] == other.batch.seq_ids[0]
            and self.batch.pos[0] == other.batch.pos[-1] + 1
            and (self.kind, self.n_threads) == (other.kind, other.n_threads)
        )


def joined(decodes: Sequence[PendingDecode]) -> list[PendingDecode]:
    """The same calls in order, as one value where each token follows the one before it in its sequence."""
    runs: list[list[PendingDecode]] = []
    for decode in decodes:
        if runs and decode.follows(runs[-1][-1]):
            runs[-1].append(decode)
        else:
            runs.append([decode])
    return [run[0] if len(run) == 1 else _one(run) for run in runs]


def _one(run: Sequence[PendingDecode]) -> PendingDecode:
    (batch, kind, rc, _, _, n_threads, _, _, _), last = run[0], run[-1].last
    tokens = [token for decode in run for token in decode.batch.tokens]
    output = [wanted for decode in run for wanted in decode.batch.output]
    pos = range(batch.pos[0], batch.pos[0] + len(tokens))
    return PendingDecode(
        Batch(tokens, pos, [batch.seq_ids[0]] * len(tokens), output),
        kind,
        rc,
        [ms for decode in run for ms in decode.ms],
        [at for decode in run for at in decode.at_s],
        n_threads,
        [line for decode in run for line in decode.lines],
        last,
    )


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
