"""Which sequences share cells, and what removing some of them would free. Reads sequences and cells, changes neither.

Runs on the engine's thread.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.cache_manager.sequences import CacheSequence, Sequences
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.seq_bits import member_rows, seq_has, seqs_in
from kvdesk.cache.snapshot import StreamMap


class SharedCells:
    """Of the sequences of one context."""

    def __init__(self, context: Context, pool: Sequences) -> None:
        self._context, self._memory, self._pool = context, context.memory, pool
        self._one_buffer = context.memory.mirror.geometry.n_stream == 1

    def sharing(self, sequence: CacheSequence, p0: int) -> list[CacheSequence]:
        """Other sequences that share cells with this one at positions from `p0` on."""
        if not self._one_buffer:
            return []
        found: set[int] = set()
        for cache in self._memory.snapshot().maps:
            cells = cache.streams[0]
            mine = (cells.pos >= p0) & seq_has(cells.seq_bits, sequence.seq_id)
            found.update(seqs_in(cells.seq_bits[mine]))
        return [s for s in self._pool if s.seq_id in found and s is not sequence]

    def can_slide(self, sequence: CacheSequence, p1: int) -> bool:
        """Whether no busy sequence shares the cells from position `p1` on, which would move."""
        return not any(other.busy for other in self.sharing(sequence, p1))

    def most_room(self, sequence: CacheSequence | None, *, emptied: bool = False) -> int:
        """How many tokens the cells have room for behind the sequence, or from its beginning on if it is `emptied`,
        once every idle one has left. None: in a new sequence. A window smaller than the context may have less.
        """
        maps = self._memory.snapshot().maps
        if not maps or (sequence is None and not self._one_buffer):
            return self._context.n_ctx_seq
        cells = maps[0].streams[0 if self._one_buffer or sequence is None else sequence.seq_id]
        leaving = [s for s in self._pool if (emptied if s is sequence else not s.busy)]
        return cells.size - int(self._staying(cells, leaving).sum())

    def leaving_together(self, sequence: CacheSequence) -> list[CacheSequence]:
        """Other idle sequences with cells that only such sequences hold, so that removing all of them frees some."""
        cells = self._memory.snapshot().maps[0].streams[0]
        idle = [s for s in self._pool if s is not sequence and not s.busy]
        free = ~self._staying(cells, idle)
        return [s for s in idle if (seq_has(cells.seq_bits, s.seq_id) & free).any()]

    def cells_freed(self, sequence: CacheSequence, *ranges: tuple[int, int]) -> int:
        """Cells that become free when those of the sequence at positions `[p0, p1)` of all ranges are removed: those
        that no busy sequence shares, since idle ones are evicted.
        """
        if not self._one_buffer or not self._memory.mirror.caches:
            return 0
        cells = self._memory.snapshot().maps[0].streams[0]
        leaves = np.any([(cells.pos >= p0) & (cells.pos < p1) for p0, p1 in ranges], axis=0)
        mine = seq_has(cells.seq_bits, sequence.seq_id) & leaves
        for other in self._pool:
            if other.busy and other is not sequence:
                mine &= ~seq_has(cells.seq_bits, other.seq_id)
        return int(mine.sum())

    @staticmethod
    def _staying(cells: StreamMap, leaving: Iterable[CacheSequence]) -> NDArray[np.bool_]:
        """Mask of the cells that others than these sequences hold."""
        (left,) = member_rows([tuple(s.seq_id for s in leaving)], cells.seq_bits.shape[1])
        mask: NDArray[np.bool_] = (cells.seq_bits & ~left).any(axis=1)
        return mask
