"""The prefix tree of a server's blocks, as far as its events tell: a logical map, not its memory.

It is known from the first event that was heard. Blocks that were stored before are seen only where a later one names
them as its parent; messages that were missed are counted, and what they changed stays unknown.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.blocks.events import AllBlocksCleared, Batch, BlockHash, BlockRemoved, BlockStored
from kvdesk.values import dataclass, replace

BlockKey = tuple[int, BlockHash]
"""Group and hash: groups of layers have their own caches and names."""
MOST_BLOCKS: Final = 200_000
"""That many are remembered; the ones that were stored first are forgotten before the others."""


@dataclass(frozen=True, slots=True)
class Block:
    """stored_s: when it was first stored, by the server's clock; n_stored: how often it was reported; n_used: how many
    requests of this window had it in their prompt; tiers: where it lies, in the order in which it came there.
    """

    key: BlockKey
    parent: BlockKey | None
    token_ids: tuple[int, ...]
    tiers: tuple[str, ...]
    stored_s: float
    n_stored: int = 1
    n_used: int = 0


@dataclass(frozen=True, slots=True)
class BlockMap:
    """The tree laid out: a chain of blocks is a row; each further child of a block begins its own row below.

    blocks            in the order of rows, then of depths
    row, depth        int32 of each block: where it is drawn
    parent            int32 of each block: its parent's place in `blocks`; -1 if it begins a prompt, -2 if the
                      parent is not known
    n_children        int32 of each block
    first_seq         number of the first message that was heard; -1 if none was
    n_messages, n_missed, n_restarts, n_removed, n_forgotten
                      messages heard, missed; starts of the server noticed; blocks removed, forgotten here
    """

    blocks: tuple[Block, ...]
    row: NDArray[np.int32]
    depth: NDArray[np.int32]
    parent: NDArray[np.int32]
    n_children: NDArray[np.int32]
    first_seq: int = -1
    n_messages: int = 0
    n_missed: int = 0
    n_restarts: int = 0
    n_removed: int = 0
    n_forgotten: int = 0

    @property
    def n_tokens(self) -> int:
        return sum(len(block.token_ids) for block in self.blocks)

    @property
    def n_rows(self) -> int:
        return int(self.row.max()) + 1 if len(self.row) else 0

    @property
    def n_shared(self) -> int:
        """Blocks with more than one child: beginnings that several prompts share."""
        return int((self.n_children > 1).sum())


class BlockTree:
    """Follows the messages of one publisher. Not for several threads."""

    def __init__(self) -> None:
        self._blocks: dict[BlockKey, Block] = {}
        self._children: dict[BlockKey | None, dict[BlockKey, None]] = {}
        self._first_seq, self._next_seq = -1, -1
        self._n_messages = self._n_missed = self._n_restarts = 0
        self._n_removed = self._n_forgotten = 0

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def next_seq(self) -> int:
        """The number that the next message should have; -1 before the first."""
        return self._next_seq

    def missing(self, seq: int) -> range:
        """The numbers that are missing before message `seq`; none if it is the next, an old one, or the first."""
        return range(self._next_seq, max(seq, self._next_seq)) if self._next_seq >= 0 else range(0)

    def restarted(self) -> None:
        """The server restarted: nothing known before holds."""
        self._clear()
        self._next_seq = -1
        self._n_restarts += 1

    def apply(self, seq: int, batch: Batch) -> bool:
        """Take in message `seq`; the ones before it that were not heard are counted as missed. An old one changes
        nothing: False.
        """
        if self._next_seq >= 0 and seq < self._next_seq:
            return False
        missing = self.missing(seq)
        self._n_missed += missing.stop - missing.start  # a number of 64 bits is no length
        if self._first_seq < 0 or self._next_seq < 0:
            self._first_seq = seq
        self._next_seq = seq + 1
        self._n_messages += 1
        for event in batch.events:
            match event:
                case BlockStored():
                    self._store(event, batch.at_s)
                case BlockRemoved():
                    self._remove(event)
                case AllBlocksCleared():
                    self._n_removed += len(self._blocks)
                    self._clear()
        return True

    def match(self, tokens: Sequence[int], group: int = 0) -> list[Block]:
        """The blocks that hold the beginning of a prompt, in order, as far as they are known and unbroken."""
        found, at, parent = list[Block](), 0, None
        while (block := self._child(parent, tokens, at, group)) is not None:
            found.append(block)
            at += len(block.token_ids)
            parent = block.key
        return found

    def use(self, blocks: Sequence[Block]) -> None:
        """Count a request of this window that had these blocks in its prompt."""
        for block in blocks:
            if block.key in self._blocks:
                now = self._blocks[block.key]
                self._blocks[block.key] = replace(now, n_used=now.n_used + 1)

    def layout(self) -> BlockMap:
        """The tree as it is drawn."""
        keys, rows, depths = list[BlockKey](), list[int](), list[int]()
        for key, row, depth in self._walk():
            keys.append(key)
            rows.append(row)
            depths.append(depth)
        place = {key: i for i, key in enumerate(keys)}
        blocks = tuple(self._blocks[key] for key in keys)
        parents = [-1 if block.parent is None else place.get(block.parent, -2) for block in blocks]
        children = [len(self._children.get(key, ())) for key in keys]
        return BlockMap(
            blocks,
            row=np.array(rows, np.int32),
            depth=np.array(depths, np.int32),
            parent=np.array(parents, np.int32),
            n_children=np.array(children, np.int32),
            first_seq=self._first_seq,
            n_messages=self._n_messages,
            n_missed=self._n_missed,
            n_restarts=self._n_restarts,
            n_removed=self._n_removed,
            n_forgotten=self._n_forgotten,
        )

    # --- inside -------------------------------------------------------------------------------------------------------

    def _store(self, event: BlockStored, at_s: float) -> None:
        parent = None if event.parent is None else (event.group, event.parent)
        for i, name in enumerate(event.hashes):
            key = (event.group, name)
            known = self._blocks.get(key)
            if known is None:
                tokens = event.token_ids[i * event.block_size : (i + 1) * event.block_size]
                self._blocks[key] = Block(key, parent, tokens, (event.tier,), at_s)
                self._children.setdefault(parent, {})[key] = None
            else:
                tiers = known.tiers if event.tier in known.tiers else (*known.tiers, event.tier)
                self._blocks[key] = replace(known, tiers=tiers, n_stored=known.n_stored + 1)
            parent = key
        while len(self._blocks) > MOST_BLOCKS:
            self._drop(next(iter(self._blocks)))
            self._n_forgotten += 1

    def _remove(self, event: BlockRemoved) -> None:
        for name in event.hashes:
            block = self._blocks.get((event.group, name))
            if block is None:
                continue
            tiers = tuple(tier for tier in block.tiers if tier != event.tier)
            if tiers:
                self._blocks[block.key] = replace(block, tiers=tiers)
            else:
                self._drop(block.key)
                self._n_removed += 1

    def _drop(self, key: BlockKey) -> None:
        """Its children stay: their parent is unknown then."""
        block = self._blocks.pop(key)
        siblings = self._children[block.parent]
        del siblings[key]
        if not siblings:
            del self._children[block.parent]

    def _clear(self) -> None:
        self._blocks.clear()
        self._children.clear()

    def _child(self, parent: BlockKey | None, tokens: Sequence[int], at: int, group: int) -> Block | None:
        for key in self._children.get(parent, ()):
            block = self._blocks[key]
            n = len(block.token_ids)
            if n and key[0] == group and tuple(tokens[at : at + n]) == block.token_ids:
                return block
        return None

    def _walk(self) -> Iterator[tuple[BlockKey, int, int]]:
        """Every block with its row and depth, rows in order. A block whose parent is not known begins a row at 0."""
        begin = [key for key, block in self._blocks.items() if block.parent is None or block.parent not in self._blocks]
        waiting = [(key, 0) for key in reversed(begin)]
        row = -1
        while waiting:
            key, depth = waiting.pop()
            row += 1
            at: BlockKey | None = key
            while at is not None:
                yield at, row, depth
                children = list(self._children.get(at, ()))
                waiting += [(other, depth + 1) for other in reversed(children[1:])]
                at, depth = children[0] if children else None, depth + 1


EMPTY: Final = BlockTree().layout()
"""Before anything was heard."""
