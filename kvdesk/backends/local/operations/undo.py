"""Saved states of the whole cache from before operations by hand, for undo.

Owns these states; the oldest are dropped first. Runs on the engine's thread.
"""

from collections import OrderedDict

from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy, HandCells
from kvdesk.errors import UserError
from kvdesk.library.estimate import total_bytes
from kvdesk.message import ConversationId
from kvdesk.translation import tr

MOST_BYTES = 512 << 20
SHARE = 32
"""All blobs together take at most one part in SHARE of the machine's memory (256 MB of 8 GB), and at most MOST_BYTES.
A larger cache is not copied."""


class UndoBlobs:
    """The blobs of one context, by the number of the operation that followed each."""

    def __init__(self, cells: HandCells) -> None:
        self._cells = cells
        self._kept: OrderedDict[int, CacheCopy] = OrderedDict()
        self.most_bytes = min(MOST_BYTES, total_bytes() // SHARE)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Operations that can be undone, ascending."""
        return tuple(self._kept)

    @property
    def n_bytes(self) -> int:
        """Bytes of all blobs."""
        return sum(kept.n_bytes for kept in self._kept.values())

    def take(self) -> CacheCopy | None:
        """The cache as it is now; None if it cannot be saved or is too large. Applies pending operations."""
        return self._cells.save(self.most_bytes)

    def keep(self, number: int, kept: CacheCopy) -> None:
        """Keep `kept` as the cache before operation `number`."""
        self._kept[number] = kept
        while self.n_bytes > self.most_bytes:
            self._kept.popitem(last=False)

    def drop_of(self, conversation: ConversationId) -> None:
        """The conversation, or a message of it, was deleted, so no copy may restore it."""
        for number, kept in tuple(self._kept.items()):
            if kept.has(conversation):
                del self._kept[number]

    def before(self, number: int) -> CacheCopy:
        """The cache before operation `number`. Raises UserError if that is gone."""
        kept = self._kept.get(number)
        if kept is None:
            raise UserError(
                tr("Operation {number:,} cannot be undone any more: its copy of the cache is gone.").format(
                    number=number
                )
            )
        return kept

    def restore(self, number: int) -> str:
        """Restore everything from before operation `number`; later operations can no longer be undone.

        Returns a sentence about what could not be restored, "" if everything was. Raises UserError if its blob is gone,
        EngineError when llama.cpp does not accept it.
        """
        lost = self._cells.restore(self.before(number), self.most_bytes)
        for later in [n for n in self._kept if n >= number]:
            del self._kept[later]
        return lost
