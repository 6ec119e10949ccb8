"""vLLM's rule, step by step on paper, and what is true of its blocks after any calls."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvdesk.experiments.simulators.block_pool import NoRoom
from kvdesk.experiments.simulators.paged_cache import PagedCache, Use


def tokens(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


def test_hits_and_evictions_of_six_blocks() -> None:
    """Six blocks of four slots. `free` is the queue, whose first block is taken next."""
    cache = PagedCache(24, 4)
    pool = cache.pool
    # A reads 1..10: blocks 0 1 2, of which 0 and 1 are full. It writes 11 12, which fills block 2.
    assert cache.begin(0, tokens(1, 10)) == 0
    cache.append(0, [11, 12])
    assert cache.tables[0].blocks == [0, 1, 2]
    # It ends: the last block is freed first, so that the end of the text is evicted before its beginning.
    cache.end(0)
    assert pool.free == [3, 4, 5, 2, 1, 0]
    # B reads 1..8 21 22: both full blocks are found; block 3 is the first free one.
    assert cache.begin(1, [*tokens(1, 8), 21, 22]) == 8
    assert cache.tables[1].blocks == [0, 1, 3]
    # C reads 1..8: the last token must be computed, so only one block counts; block 4 gets what block 1 has.
    assert cache.begin(2, tokens(1, 8)) == 4
    assert cache.tables[2].blocks == [0, 4]
    assert [pool.holders(block) for block in range(6)] == [2, 1, 0, 1, 1, 0]
    assert pool.content(4) == pool.content(1)
    cache.end(1)
    assert pool.free == [5, 2, 3, 1]  # C holds block 0
    cache.end(2)
    assert pool.free == [5, 2, 3, 1, 4, 0]
    # D reads 31..42 into 5, 2, 3: what block 2 held (9..12) cannot be found any more.
    assert cache.begin(3, tokens(31, 42)) == 0
    assert cache.tables[3].blocks == [5, 2, 3]
    assert cache.n_evicted == 4
    # E reads 1..12 51: found are 0 and 1, which are free, and two more are needed: one is there. Nothing changes.
    with pytest.raises(NoRoom):
        cache.begin(4, [*tokens(1, 12), 51])
    assert pool.free == [1, 4, 0]
    cache.end(3)
    assert pool.free == [1, 4, 0, 3, 2, 5]
    assert cache.begin(4, [*tokens(1, 12), 51]) == 8
    assert cache.tables[4].blocks == [0, 1, 4, 3]
    assert cache.n_evicted == 12  # block 4, the second with 5..8, and block 3
    assert cache.use() == Use(16, 13, 3)


def test_a_fork_is_copied_when_one_of_both_writes() -> None:
    cache = PagedCache(24, 4)
    cache.begin(0, tokens(1, 6))
    cache.fork(0, 1, 6)
    assert cache.tables[1].blocks == cache.tables[0].blocks == [0, 1]
    assert cache.use() == Use(8, 6, 2)
    cache.append(1, [21])  # the two slots of block 1 are copied into block 2
    assert (cache.tables[0].blocks, cache.tables[1].blocks) == ([0, 1], [0, 2])
    assert cache.n_copied == 2
    cache.append(0, [31])  # alone in block 1 now
    assert (cache.tables[0].blocks, cache.n_copied) == ([0, 1], 2)
    assert cache.use() == Use(12, 10, 3)
    cache.fork(0, 2, 4)  # a full block: nothing is written into it
    cache.append(2, [41])
    assert (cache.tables[2].blocks, cache.n_copied) == ([0, 3], 2)


def test_a_cut_block_that_can_be_found_is_not_written() -> None:
    cache = PagedCache(24, 4)
    cache.begin(0, tokens(1, 8))
    cache.cut(0, 6)
    cache.append(0, [21])
    assert cache.tables[0].blocks == [0, 2]
    assert cache.n_copied == 2
    assert cache.begin(1, tokens(1, 9)) == 8  # block 1 still has 5..8


class Calls(RuleBasedStateMachine):
    """Any calls. Texts are of three tokens only, so that they often begin alike."""

    @initialize(size=st.sampled_from([1, 2, 3, 8]), n_blocks=st.integers(1, 12))
    def create(self, size: int, n_blocks: int) -> None:
        self.cache = PagedCache(size * n_blocks, size)
        self.texts: dict[int, list[int]] = {}
        self.next_id = 0

    @rule(prompt=st.lists(st.integers(0, 2), min_size=1, max_size=20))
    def begin(self, prompt: list[int]) -> None:
        before = list(self.cache.pool.free)
        self.next_id += 1
        try:
            found = self.cache.begin(self.next_id, prompt)
        except NoRoom:
            assert self.cache.pool.free == before
            return
        assert found < len(prompt)
        assert found % self.cache.block_size == 0
        self.texts[self.next_id] = prompt

    @rule(data=st.data(), more=st.lists(st.integers(0, 2), min_size=1, max_size=9))
    def append(self, data: st.DataObject, more: list[int]) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            try:
                self.cache.append(seq_id, more)
            except NoRoom:
                more = self.cache.tables[seq_id].tokens[len(self.texts[seq_id]) :]
            self.texts[seq_id] = self.texts[seq_id] + more

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            n = data.draw(st.integers(1, len(self.texts[seq_id])))
            self.next_id += 1
            self.cache.fork(seq_id, self.next_id, n)
            self.texts[self.next_id] = self.texts[seq_id][:n]

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            n = data.draw(st.integers(1, len(self.texts[seq_id])))
            self.cache.cut(seq_id, n)
            self.texts[seq_id] = self.texts[seq_id][:n]

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            self.cache.end(seq_id)
            del self.texts[seq_id]

    @invariant()
    def every_block_is_where_it_belongs(self) -> None:
        pool, tables, size = self.cache.pool, self.cache.tables, self.cache.block_size
        held = Counter(block for table in tables.values() for block in table.blocks)
        assert all(len(set(table.blocks)) == len(table.blocks) for table in tables.values())
        assert [pool.holders(block) for block in range(pool.n_blocks)] == [held[b] for b in range(pool.n_blocks)]
        assert sorted([*pool.free, *held]) == list(range(pool.n_blocks))  # free and used are all, and none twice
        use = self.cache.use()
        assert use.n_slots == len(held) * size >= use.n_filled

    @invariant()
    def every_sequence_has_its_text(self) -> None:
        """What a block was given stays in it while anybody holds it, whoever writes elsewhere."""
        pool, size = self.cache.pool, self.cache.block_size
        assert {seq_id: table.tokens for seq_id, table in self.cache.tables.items()} == self.texts
        slots: dict[tuple[int, int], list[int]] = {}
        texts: dict[int, list[int]] = {}
        for table in self.cache.tables.values():
            assert len(table.blocks) == -(-len(table.tokens) // size)
            for i, block in enumerate(table.blocks):
                for j, token in enumerate(table.tokens[i * size : (i + 1) * size]):
                    before = [*table.tokens[: i * size], token]
                    assert slots.setdefault((block, j), before) == before
                content = pool.content(block)
                if content is not None and len(table.tokens) >= (i + 1) * size:
                    whole = table.tokens[: (i + 1) * size]
                    assert texts.setdefault(content, whole) == whole


Calls.TestCase.settings = settings(stateful_step_count=30)
TestCalls = Calls.TestCase
