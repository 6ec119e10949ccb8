"""Saved states of the whole cache from before operations by hand, so that each can be undone.

Owns these states; the oldest are dropped first. Runs on the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict

from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy, HandCells
from kvdesk.chat import ConversationId
from kvdesk.errors import UserError
from kvdesk.library.estimate import total_bytes
from kvdesk.translation import tr

MOST_BYTES = 512 << 20
SHARE = 32
"""All blobs together take at most this part of the machine's memory (256 MB of 8 GB), and never more than MOST_BYTES.
A cache larger than that is not copied."""


class UndoBlobs:
    """The blobs of one context, by the number of the operation that came after each."""

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
        """Of all blobs."""
        return sum(kept.n_bytes for kept in self._kept.values())

    def take(self) -> CacheCopy | None:
        """The cache as it is now; None if it cannot be saved or is too large. Applies what is pending."""
        return self._cells.save(self.most_bytes)

    def keep(self, number: int, kept: CacheCopy) -> None:
        """Operation `number` was made after `kept`."""
        self._kept[number] = kept
        while self.n_bytes > self.most_bytes:
            self._kept.popitem(last=False)

    def drop_of(self, conversation: ConversationId) -> None:
        """It, or a message of it, was deleted: no copy of the cache brings it back."""
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
        """Put everything back as it was before operation `number`; what came after can no longer be undone.

        Answers what of it is not as it was, in a sentence: "" for nothing. Raises UserError if its blob is gone,
        EngineError when llama.cpp does not take it.
        """
        lost = self._cells.restore(self.before(number), self.most_bytes)
        for later in [n for n in self._kept if n >= number]:
            del self._kept[later]
        return lost
