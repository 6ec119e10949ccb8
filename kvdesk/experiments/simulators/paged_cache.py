"""vLLM's paged cache, simulated: each sequence has a table of blocks, and full blocks are found again by their content.

From vLLM v1 (vllm/v1/core/kv_cache_manager.py, single_type_kv_cache_manager.py): a prompt takes the blocks of its
longest known prefix, full blocks only and never its last token, which has to be computed for its logits; blocks fill up
token by token; a sequence that ends gives its blocks back last one first, so that the end of a text is evicted before
its beginning. v1 never writes into a block that others hold, because it shares full ones only; `fork` with copy on
write is the rule of the PagedAttention paper and of vLLM v0, where a sequence is split and shares its last block too.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kvdesk.experiments.simulators.block_pool import BlockPool, NoRoom
from kvdesk.values import dataclass, field


class Use(NamedTuple):
    """Slots that are taken, those of them with a token, and runs of neighbouring slots over all sequences."""

    n_slots: int
    n_filled: int
    n_runs: int


@dataclass(slots=True)
class Table:
    """The blocks of one sequence, in order, its tokens, and the contents of its full blocks."""

    blocks: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    contents: list[int] = field(default_factory=list)


class PagedCache:
    """`n_slots` slots in blocks of `block_size`; what is over is not used.

    n_copied  slots that were copied because a block was written that others hold, or that is known by its content
    """

    def __init__(self, n_slots: int, block_size: int) -> None:
        if block_size < 1:
            raise ValueError(f"a block has at least one slot, not {block_size}")
        self.block_size = block_size
        self.pool = BlockPool(n_slots // block_size)
        self.tables: dict[int, Table] = {}
        self.n_copied = 0
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}  # (content before it, tokens) of every full block

    @property
    def n_evicted(self) -> int:
        """Slots with a known content that were given up."""
        return self.pool.n_evicted * self.block_size

    def begin(self, seq_id: int, prompt: Sequence[int]) -> int:
        """A new sequence with this prompt: how many of its tokens were found. Raises NoRoom, with nothing changed."""
        assert seq_id not in self.tables
        assert prompt
        size = self.block_size
        contents = self._contents(prompt)
        found: list[int] = []
        for content in contents[: (len(prompt) - 1) // size]:
            block = self.pool.find(content)
            if block is None:
                break
            found.append(block)
        n_new = -(-len(prompt) // size) - len(found)
        if n_new + sum(self.pool.holders(block) == 0 for block in found) > self.pool.n_free:
            raise NoRoom
        for block in found:
            self.pool.hold(block)
        new = [self.pool.take() for _ in range(n_new)]
        table = self.tables[seq_id] = Table([*found, *new], list(prompt), contents)
        for block, content in zip(table.blocks[len(found) :], contents[len(found) :], strict=False):
            self.pool.remember(block, content)
        return len(found) * size

    def append(self, seq_id: int, tokens: Sequence[int]) -> None:
        """Tokens behind those of the sequence. Raises NoRoom; what came before the token without a slot stays."""
        table = self.tables[seq_id]
        for token in tokens:
            self._make_room(table)
            table.tokens.append(token)
            if len(table.tokens) % self.block_size == 0:
                table.contents = self._contents(table.tokens, table.contents)
                self.pool.remember(table.blocks[-1], table.contents[-1])

    def fork(self, parent: int, child: int, n_tokens: int) -> None:
        """A new sequence with the first tokens of another, in the same blocks, the last one included."""
        assert child not in self.tables
        source = self.tables[parent]
        assert 0 < n_tokens <= len(source.tokens)
        blocks = source.blocks[: -(-n_tokens // self.block_size)]
        for block in blocks:
            self.pool.hold(block)
        self.tables[child] = Table(blocks, source.tokens[:n_tokens], source.contents[: n_tokens // self.block_size])

    def cut(self, seq_id: int, n_tokens: int) -> None:
        """Only the first `n_tokens` stay, at least one."""
        table = self.tables[seq_id]
        n_blocks = -(-n_tokens // self.block_size)
        self.pool.release(reversed(table.blocks[n_blocks:]))
        del table.blocks[n_blocks:], table.tokens[n_tokens:], table.contents[n_tokens // self.block_size :]

    def end(self, seq_id: int) -> None:
        """The sequence holds nothing any more; what its full blocks contain can be found until they are taken."""
        self.pool.release(reversed(self.tables.pop(seq_id).blocks))

    def use(self) -> Use:
        """What the sequences hold now. A block of several counts once, with as many tokens as any of them has in it."""
        filled: dict[int, int] = {}
        n_runs = 0
        for table in self.tables.values():
            for i, block in enumerate(table.blocks):
                n = min(self.block_size, len(table.tokens) - i * self.block_size)
                filled[block] = max(filled.get(block, 0), n)
            n_runs += 1 + sum(b != a + 1 for a, b in pairwise(table.blocks))
        return Use(len(filled) * self.block_size, sum(filled.values()), n_runs)

    def _make_room(self, table: Table) -> None:
        """A slot for one more token that only this table writes. Raises NoRoom."""
        n_in_last = len(table.tokens) % self.block_size
        if n_in_last == 0:
            table.blocks.append(self.pool.take())
            return
        last = table.blocks[-1]
        if self.pool.holders(last) > 1 or self.pool.content(last) is not None:
            table.blocks[-1] = self.pool.take()
            self.pool.release([last])
            self.n_copied += n_in_last

    def _contents(self, tokens: Sequence[int], known: Sequence[int] = ()) -> list[int]:
        """The contents of all full blocks; `known`: of the first of them."""
        contents = list(known)
        for start in range(len(contents) * self.block_size, len(tokens) - self.block_size + 1, self.block_size):
            key = contents[-1] if contents else -1, tuple(tokens[start : start + self.block_size])
            contents.append(self._numbers.setdefault(key, len(self._numbers)))
        return contents
