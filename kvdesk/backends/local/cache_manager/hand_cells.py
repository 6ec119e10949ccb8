"""Operations by hand on cells, and restoring the whole cache. Afterwards every sequence matches the map.

Knows no reports, measurements and events of operations (`operations.by_hand`). Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory import state
from kvdesk.backends.local.llama.memory.decodes import PendingDecode
from kvdesk.cache.batch import Batch, BatchProblem
from kvdesk.cache.snapshot import CacheMap
from kvdesk.cache.spread import spread_blob, spread_size
from kvdesk.errors import KvdeskError
from kvdesk.message import ConversationId
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CacheCopy:
    """The cache at one moment: its state, its maps (for token ids and ages) and its leases.

    made_with  settings of the copied context, if it is another one; None: the context that holds the copy
    saved      states of conversations that were saved in memory, if the copy is of another context
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
        """Whether it contains something of the conversation."""
        owners = (*(s.conversation for s in self.leases), *(s.conversation for s in self.saved))
        return conversation in owners or any(conversation in s.chats for s in self.saved)


class HandCells:
    """What a user may do to the cells of one context. Arguments and errors are those of `MirroredMemory`."""

    def __init__(self, context: Context, cache_manager: Cache) -> None:
        self._context = context
        self._memory = context.memory
        self._cache_manager = cache_manager

    @property
    def problem(self) -> BatchProblem | None:
        """Why llama.cpp refused the last decode, if the mirror knows. Read-only."""
        return self._memory.last_record.problem

    def last_position(self, seq_id: int) -> int:
        """Of the sequence; -1 if it has no cell. Read-only."""
        return self._memory.seq_pos_max(seq_id)

    def remove(self, seq_id: int, p0: int, p1: int) -> bool:
        """`seq_rm`. False: this memory cannot remove a part, and nothing has changed. Changes the cache."""
        done = self._memory.seq_rm(seq_id, p0, p1)
        self._cache_manager.follow_map()
        return done

    def keep_only(self, seq_id: int) -> None:
        """`seq_keep`. Changes the cache. With streams it removes the recurrent states of all others, but leaves K and V
        (llama-kv-cache.cpp:543), which are worth nothing then.
        """
        self._memory.seq_keep(seq_id)
        for sequence in self._cache_manager.pool:
            if self._memory.seq_pos_max(sequence.seq_id) < 0:
                self._memory.seq_rm(sequence.seq_id, -1, -1)
        self._cache_manager.follow_map()

    def copy(self, src: int, target: CacheSequence, p0: int, p1: int) -> None:
        """`seq_cp`, replacing what `target` holds. Changes the cache."""
        source = self._cache_manager.pool.by_seq(src)
        self._cache_manager.truncate(target, 0, tr("its place was taken by a copy"))
        self._memory.seq_cp(src, target.seq_id, p0, p1)
        if source is not None:  # for a recurrent state, which does not show its content; others follow the map
            self._cache_manager.adopt(target, source.tokens, source.exact)
        self._cache_manager.follow_map()

    def shift(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """`seq_add`. Other sequences may not reuse the moved cells. Changes the cache."""
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
        """The cache as it is now; None if it cannot be saved or is too large. Applies pending operations."""
        states = self._context.states
        if most_bytes is not None and states.size() > most_bytes:
            return None
        try:
            blob = states.get()
        except KvdeskError:
            return None
        return CacheCopy(blob, self._memory.snapshot().maps, self._cache_manager.copies())

    def restore(self, saved: CacheCopy, most_bytes: int) -> str:
        """Restore cells and leases. The state that also restores holes between cells takes `most_bytes` at most.

        Returns a sentence about what could not be restored, "" if everything was. Changes the cache. Raises EngineError
        when llama.cpp does not accept the state.
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
