"""Reads the next-token logits of a sequence from a copy, without changing it.

Owns how they are read. The copy has a reserved seq_id. Afterwards only the head of the map may differ, and a full
window cache may have lost cells that no window sees any more. Runs on the engine's thread.
"""

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.cache_manager.sequences import CacheSequence, SequencePool
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.batch import Batch
from kvdesk.errors import DecodeError, RefusedCall
from kvdesk.translation import tr

Logits = NDArray[np.float32]


class Probe:
    """Reads next-token logits on one context. `pool`: where the seq_id of a copy is reserved."""

    def __init__(self, context: Context, pool: SequencePool) -> None:
        self._context = context
        self._pool = pool

    @property
    def possible(self) -> bool:
        """Whether a seq_id is free for the copy, and a cell for its last token. Read-only."""
        free = self._pool.free
        return bool(free) and self._context.memory.has_room(free[0], 1)

    def next_logits(self, sequence: CacheSequence, *, to_hole: bool = False) -> Logits:
        """Logits after the last token of the sequence, which is decoded again on a copy. `to_hole`: after the last one
        before a hole, up to which its `tokens` are known.

        If no part of a sequence can be removed (recurrent states), the token is decoded after itself: other logits, but
        equal ones for equal states. Changes nothing but what the module says. Raises RefusedCall, DecodeError.
        """
        context, memory = self._context, self._context.memory
        n_known = len(sequence.tokens)
        last = n_known - 1 if to_hole else memory.seq_pos_max(sequence.seq_id)
        behind_hole = memory.mirror.caches and last != n_known - 1
        tokens = [memory.mirror.token_at(sequence.seq_id, last)] if behind_hole else sequence.tokens[-1:]
        if last < 0 or not tokens or tokens[0] < 0:
            raise RefusedCall(tr("Sequence {seq_id} holds nothing that could be asked.").format(seq_id=sequence.seq_id))
        with self._pool.reserved() as spare:
            memory.seq_cp(sequence.seq_id, spare)
            try:
                again = context.can("partial seq_rm") and memory.seq_rm(spare, last, -1)
                pos = last if again else last + 1
                rc = context.decode(Batch.of(spare, pos, tokens, "last"), "check").rc
                if rc != 0:
                    raise DecodeError(rc, tr("llama.cpp could not compute the next token (code {rc}).").format(rc=rc))
                return context.logits()
            finally:
                memory.seq_rm(spare, -1, -1)

    def asked(self, sequence: CacheSequence) -> list[int]:
        """The tokens whose last one gives the logits of `next_logits` in an empty sequence."""
        return [*sequence.tokens, *([] if self._context.can("partial seq_rm") else sequence.tokens[-1:])]
