"""Operations by hand on cells, and the whole cache put back: after each, every sequence has what the map shows.

Knows no reports, measurements and events of operations (`operations.by_hand`). Runs on the engine's thread.
"""

from __future__ import annotations

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama import state
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.decodes import PendingDecode
from kvdesk.cache.batch import Batch, BatchProblem
from kvdesk.cache.snapshot import CacheMap
from kvdesk.cache.spread import spread_blob, spread_size
from kvdesk.chat import ConversationId
from kvdesk.errors import KvdeskError
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CacheCopy:
    """The cache at one moment: its state, the maps (for token ids and ages) and the leases.

    made_with  settings of the context that it is of, where that is another one; None: the one that holds the copy
    saved      states of conversations that were saved in memory then, where the copy is of another context
    """

    blob: memoryview
    maps: tuple[CacheMap, ...]
    leases: tuple[CacheSequence, ...]
    made_with: ContextSettings | None = None
    saved: tuple[SavedState, ...] = ()

    @property
    def n_bytes(self) -> int:
        return len(self.blob) + sum(s.n_bytes for s in self.saved)

    def has(self, conversation: ConversationId) -> bool:
        """Whether something of the conversation is in it."""
        owners = (*(s.conversation for s in self.leases), *(s.conversation for s in self.saved))
        return conversation in owners


class HandCells:
    """What a person may do to the cells of one context. Arguments and errors as `MirroredMemory` has them."""

    def __init__(self, context: Context, cache_manager: Cache) -> None:
        self._context = context
        self._memory = context.memory
        self._cache_manager = cache_manager

    @property
    def problem(self) -> BatchProblem | None:
        """Why llama.cpp refused the last decode, where the mirror knows. Read-only."""
        return self._memory.last_record.problem

    def last_position(self, seq_id: int) -> int:
        """Of the sequence; -1 where it has no cell. Read-only."""
        return self._memory.seq_pos_max(seq_id)

    def remove(self, seq_id: int, p0: int, p1: int) -> bool:
        """`seq_rm`. False: this memory cannot remove a part, and nothing changed. Changes the cache."""
        done = self._memory.seq_rm(seq_id, p0, p1)
        self._cache_manager.follow_map()
        return done

    def keep_only(self, seq_id: int) -> None:
        """`seq_keep`. Changes the cache."""
        self._memory.seq_keep(seq_id)
        self._cache_manager.follow_map()

    def copy(self, src: int, target: CacheSequence, p0: int, p1: int) -> None:
        """`seq_cp` in the place of what `target` holds. Changes the cache."""
        source = self._cache_manager.pool.by_seq(src)
        self._cache_manager.truncate(target, 0, tr("its place was taken by a copy"))
        self._memory.seq_cp(src, target.seq_id, p0, p1)
        if source is not None:  # a recurrent state cannot tell what it holds; the map follows for the others
            self._cache_manager.adopt(target, source.tokens, source.exact)
        self._cache_manager.follow_map()

    def shift(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """`seq_add`. No other sequence may reuse what was moved. Changes the cache."""
        self._memory.seq_add(seq_id, p0, p1, shift)
        self._cache_manager.follow_map(max(0, min(p0, p0 + shift)))

    def clear(self) -> None:
        """Remove every cell. Changes the cache."""
        self._memory.clear()
        self._cache_manager.follow_map()

    def decode(self, seq_id: int, pos: int, token: int) -> PendingDecode:
        """Decode one token at any position. Changes the cache."""
        decoded = self._context.decode(Batch.of(seq_id, pos, (token,)), "check")
        self._cache_manager.follow_map()
        return decoded

    def save(self, most_bytes: int | None = None) -> CacheCopy | None:
        """The cache as it is now; None where it cannot be saved or is too large. Applies what is pending."""
        states = self._context.states
        if most_bytes is not None and states.size() > most_bytes:
            return None
        try:
            blob = states.get()
        except KvdeskError:
            return None
        return CacheCopy(blob, self._memory.snapshot().maps, self._cache_manager.copies())

    def restore(self, saved: CacheCopy, most_bytes: int) -> str:
        """Cells and leases as they were. The state that restores the holes between cells has `most_bytes` at most.

        Returns what is not as it was, in a sentence: "" for nothing. Changes the cache. Raises EngineError when
        llama.cpp does not take the state.
        """
        states, geometry, lost = self._context.states, self._memory.mirror.geometry, ""
        if all(stream.used == stream.high_water for cache in saved.maps for stream in cache.streams):
            states.set(saved.blob, known=saved.maps)
        elif not geometry.reorders or spread_size(saved.blob, saved.maps, geometry) > most_bytes:
            states.set(saved.blob, known=saved.maps)
            lost = tr(
                "Cells and positions are restored, but not the holes between the cells: they take too much memory."
            )
            if not geometry.reorders:
                lost = tr("Cells and positions are restored, but not the holes between the cells of this memory.")
        else:
            spread = spread_blob(saved.blob, saved.maps, geometry, make_room=state.room)
            states.set(spread.blob, known=spread.maps)
            for seq_id, first in spread.fillers:
                self._memory.seq_rm(seq_id, first, -1)
        self._cache_manager.restore_leases(saved.leases)
        self._cache_manager.follow_map()
        return lost
