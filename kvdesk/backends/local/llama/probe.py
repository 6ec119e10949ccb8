"""Next-token logits of a sequence as it is in the cache, without touching it: a copy in a spare sequence is asked.

Owns the way to ask. The map is afterwards as it was, but for the head. Runs on the engine's thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.batch import Batch
from kvdesk.errors import DecodeError, RefusedCall, UserError
from kvdesk.translation import tr

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """Logits of shape (n_vocab,), and ms of the one-token decode that gave them."""

    logits: Logits
    ms: float


def can_probe(context: Context, spare: Sequence[int]) -> bool:
    """Whether a sequence is free for the copy, and a cell for its last token. Read-only."""
    return bool(spare) and context.memory.has_room(spare[0], 1)


def next_logits(context: Context, seq_id: int, spare: int, token: int) -> Asked:
    """Logits after the last token of `seq_id`, which is `token`: on a copy that token is decoded once more.

    Where no part of a sequence can be removed (recurrent states) it is decoded behind itself: other logits, but the
    same ones for the same state. Changes nothing but the head. Raises RefusedCall, DecodeError.
    """
    last = context.memory.seq_pos_max(seq_id)
    if last < 0:
        raise RefusedCall(tr("Sequence {seq_id} holds nothing that could be asked.").format(seq_id=seq_id))
    context.memory.seq_cp(seq_id, spare)
    try:
        again = context.can("partial seq_rm") and context.memory.seq_rm(spare, last, -1)
        pos = last if again else last + 1
        decoded = context.decode(Batch.of(spare, pos, (token,), "last"), "check")
        _expect(decoded.rc)
        return Asked(context.logits(), decoded.ms[0])
    finally:
        context.memory.seq_rm(spare, -1, -1)


def fresh_logits(context: Context, tokens: Sequence[int], spare: int, *, behind: bool) -> Iterator[int | Logits]:
    """Logits after `tokens` computed anew in the empty sequence `spare`: yields how many are in, at last the logits.

    `behind`: decode the last token once more behind itself, as `next_logits` does for recurrent states. The sequence is
    empty afterwards, also when the iterator is closed before its end. Raises DecodeError, RefusedCall; UserError when
    the cache has no room.
    """
    if not context.memory.has_room(spare, len(tokens) + int(behind)):
        raise UserError(tr("To compute {n:,} tokens afresh, as many cells must be free.").format(n=len(tokens)))
    body = tokens if behind else tokens[:-1]
    try:
        for start in range(0, len(body), context.n_batch):
            part = body[start : start + context.n_batch]
            if (rc := context.decode(Batch.of(spare, start, part), "check").rc) != 0:
                if rc == 2:
                    return
                _expect(rc)
            yield start + len(part)
        last = Batch.of(spare, len(body), tokens[-1:], "last")
        _expect(context.decode(last, "check").rc)
        yield context.logits()
    finally:
        context.memory.seq_rm(spare, -1, -1)


def _expect(rc: int) -> None:
    if rc != 0:
        raise DecodeError(rc, tr("llama.cpp could not compute the next token (code {rc}).").format(rc=rc))
