"""A pool of blocks of equal size: who holds each, what full ones contain, and which is taken next.

The rules are those of vLLM v1 (vllm/v1/core/block_pool.py and kv_cache_utils.py): a block that nobody holds any more
keeps its content at the end of a queue, and can be found by it until it is taken from the front for something else. Of
what vLLM has its reserved null block, groups of layers and events are left out.
"""

from collections import OrderedDict
from collections.abc import Iterable


class NoRoom(Exception):
    """Every block, or slot, is held."""


class BlockPool:
    """`n_blocks` blocks, all free. A content is a number that stands for a block's tokens and all tokens before them.

    n_evicted  blocks whose content could have been found and was given up for another
    """

    def __init__(self, n_blocks: int) -> None:
        self.n_blocks = n_blocks
        self.n_evicted = 0
        self._holders = [0] * n_blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(n_blocks))
        self._content: list[int | None] = [None] * n_blocks
        self._by_content: dict[int, OrderedDict[int, None]] = {}  # one content can be in several blocks

    @property
    def n_free(self) -> int:
        """Blocks that nobody holds, those with a content that can be found included."""
        return len(self._free)

    @property
    def free(self) -> list[int]:
        """The blocks that nobody holds, those that are taken first in front. Read-only."""
        return list(self._free)

    def holders(self, block: int) -> int:
        """How many tables hold the block."""
        return self._holders[block]

    def content(self, block: int) -> int | None:
        """What it can be found by; None for a block that is not full, or whose content was given up."""
        return self._content[block]

    def find(self, content: int) -> int | None:
        """The first block with this content, held or not."""
        blocks = self._by_content.get(content)
        return next(iter(blocks)) if blocks else None

    def take(self) -> int:
        """A free block, now held once: the one that has been free longest. Its content is given up. Raises NoRoom."""
        if not self._free:
            raise NoRoom
        block, _ = self._free.popitem(last=False)
        self._holders[block] = 1
        content = self._content[block]
        if content is not None:
            self.n_evicted += 1
            self._content[block] = None
            blocks = self._by_content[content]
            del blocks[block]
            if not blocks:
                del self._by_content[content]
        return block

    def hold(self, block: int) -> None:
        """One more holder; a free block is not free any more and keeps its content."""
        if self._holders[block] == 0:
            del self._free[block]
        self._holders[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """One holder less of each. Those without any are free, in this order: the first of them is taken first."""
        for block in blocks:
            self._holders[block] -= 1
            if self._holders[block] == 0:
                self._free[block] = None

    def remember(self, block: int, content: int) -> None:
        """The block is full and can be found."""
        assert self._content[block] is None
        self._content[block] = content
        self._by_content.setdefault(content, OrderedDict())[block] = None
