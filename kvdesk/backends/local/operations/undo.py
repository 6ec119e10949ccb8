"""Saved states of the whole cache from before operations by hand, so that each can be undone.

Owns these states; the oldest are dropped first. Runs on the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from kvdesk.backends.local.cache_manager.manager import CacheManager
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama import state
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.snapshot import CacheMap
from kvdesk.cache.spread import spread_blob, spread_size
from kvdesk.chat import ConversationId
from kvdesk.errors import KvdeskError, UserError
from kvdesk.library.estimate import total_bytes
from kvdesk.translation import tr

MOST_BYTES = 512 << 20
SHARE = 32
"""All blobs together take at most this part of the machine's memory (256 MB of 8 GB), and never more than MOST_BYTES.
A cache larger than that is not copied."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The cache at one moment: its state, the maps (for token ids and ages) and who had which sequence."""

    blob: memoryview
    maps: tuple[CacheMap, ...]
    leases: tuple[CacheSequence, ...]


class UndoBlobs:
    """The blobs of one context, by the number of the operation that came after each."""

    def __init__(self, context: Context, cache_manager: CacheManager) -> None:
        self._context = context
        self._cache_manager = cache_manager
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self.most_bytes = min(MOST_BYTES, total_bytes() // SHARE)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Operations that can be undone, ascending."""
        return tuple(self._kept)

    @property
    def n_bytes(self) -> int:
        """Of all blobs."""
        return sum(len(kept.blob) for kept in self._kept.values())

    def take(self) -> Kept | None:
        """The cache as it is now; None where it cannot be saved or is too large. Applies what is pending."""
        context = self._context
        if context.states.size() > self.most_bytes:
            return None
        try:
            blob = context.states.get()
        except KvdeskError:
            return None
        return Kept(blob, context.memory.snapshot().maps, self._cache_manager.copies())

    def keep(self, number: int, kept: Kept) -> None:
        """Operation `number` was made after `kept`."""
        self._kept[number] = kept
        while self.n_bytes > self.most_bytes:
            self._kept.popitem(last=False)

    def drop_of(self, conversation: ConversationId) -> None:
        """It, or a message of it, was deleted: no copy of the cache brings it back."""
        for number, kept in tuple(self._kept.items()):
            if any(lease.conversation == conversation for lease in kept.leases):
                del self._kept[number]

    def restore(self, number: int) -> str:
        """Put everything back as it was before operation `number`; what came after can no longer be undone.

        Answers what of it is not as it was, in a sentence: "" for nothing. Raises UserError where its blob is gone,
        EngineError when llama.cpp does not take it.
        """
        kept = self._kept.get(number)
        if kept is None:
            raise UserError(
                tr("Operation {number:,} cannot be undone any more: its copy of the cache is gone.").format(
                    number=number
                )
            )
        lost = self._set(kept)
        self._cache_manager.restore_leases(kept.leases)
        for later in [n for n in self._kept if n >= number]:
            del self._kept[later]
        return lost

    def _set(self, kept: Kept) -> str:
        """With the holes between its cells, as far as there is memory for the state that brings them back."""
        states, memory = self._context.states, self._context.memory
        geometry = memory.mirror.geometry
        if all(stream.used == stream.high_water for cache in kept.maps for stream in cache.streams):
            states.set(kept.blob, known=kept.maps)
            return ""
        if spread_size(kept.blob, kept.maps, geometry) > self.most_bytes:
            states.set(kept.blob, known=kept.maps)
            return tr(
                "Cells and positions are restored, but not the holes between the cells: they take too much memory."
            )
        spread = spread_blob(kept.blob, kept.maps, geometry, make_room=state.room)
        states.set(spread.blob, known=spread.maps)
        for seq_id, first in spread.fillers:
            memory.seq_rm(seq_id, first, -1)
        return ""
