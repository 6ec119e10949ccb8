"""Which sequences share cells, and what removing some of them would free. Reads sequences and cells, changes neither.

Runs on the engine's thread.
"""

import numpy as np

from kvdesk.backends.local.cache_manager.sequences import CacheSequence, Sequences
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.seq_bits import seq_has, seqs_in


class SharedCells:
    """Of the sequences of one context."""

    def __init__(self, context: Context, pool: Sequences) -> None:
        self._memory, self._pool = context.memory, pool
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

    def cells_freed(self, sequence: CacheSequence, *ranges: tuple[int, int]) -> int:
        """Cells that become free when those of the sequence at positions `[p0, p1)` of all ranges are removed: those
        that no busy sequence shares, since idle ones are evicted.
        """
        if not self._one_buffer or not self._memory.mirror.caches:
            return 0
        cells = self._memory.snapshot().maps[0].streams[0]
        leaves = np.zeros(int(cells.pos.max(initial=0)) + 1, bool)
        for p0, p1 in ranges:
            leaves[p0:p1] = True
        mine = seq_has(cells.seq_bits, sequence.seq_id) & leaves[cells.pos]
        for other in self._pool:
            if other.busy and other is not sequence:
                mine &= ~seq_has(cells.seq_bits, other.seq_id)
        return int(mine.sum())
