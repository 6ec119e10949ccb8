"""The prefix tree against a dictionary of lists, and the rules of eviction."""

from __future__ import annotations

import os
import time
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kvdesk.policies.prefix_tree import PrefixTree

TOKENS = st.lists(st.integers(0, 2), max_size=12)
SEQ = st.integers(0, 4)


def common(a: list[int], b: list[int]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))


class AgainstLists(RuleBasedStateMachine):
    """The same operations on the tree and on plain lists."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = PrefixTree()
        self.held: dict[int, list[int]] = {}
        self.order: list[int] = []

    def use(self, seq: int) -> None:
        self.order = [s for s in self.order if s != seq] + [seq]

    @rule(seq=SEQ, tokens=TOKENS)
    def insert(self, seq: int, tokens: list[int]) -> None:
        self.tree.insert(tokens, seq)
        self.held[seq] = list(tokens)
        self.use(seq)

    @rule(seq=SEQ, tokens=TOKENS)
    def extend(self, seq: int, tokens: list[int]) -> None:
        if seq in self.held:
            self.tree.extend(seq, tokens)
            self.held[seq] += tokens
            self.use(seq)

    @rule(seq=SEQ, n=st.integers(0, 14))
    def truncate(self, seq: int, n: int) -> None:
        if seq in self.held:
            self.tree.truncate(seq, n)
            del self.held[seq][n:]

    @rule(seq=SEQ)
    def remove(self, seq: int) -> None:
        self.tree.remove(seq)
        self.held.pop(seq, None)
        self.order = [s for s in self.order if s != seq]

    @rule(prompt=TOKENS, without=st.integers(-1, 4))
    def longest_prefix(self, prompt: list[int], without: int) -> None:
        lengths = {s: common(held, prompt) for s, held in self.held.items() if s != without}
        match = self.tree.longest_prefix(prompt, without=without)
        assert match.n_tokens == max(lengths.values(), default=0)
        if match.n_tokens:
            assert lengths[match.seq_id] == match.n_tokens
            assert match.whole == (len(self.held[match.seq_id]) == match.n_tokens)
            assert match.n_holders == sum(common(held, prompt) >= match.n_tokens for held in self.held.values())

    @rule(prompt=TOKENS)
    def longest_whole_prefix(self, prompt: list[int]) -> None:
        whole = [len(held) for held in self.held.values() if held == prompt[: len(held)]]
        assert self.tree.longest_prefix(prompt, whole=True).n_tokens == max(whole, default=0)

    @rule(n=st.integers(1, 30), busy=st.frozensets(SEQ))
    def evict(self, n: int, busy: frozenset[int]) -> None:
        kept = {tuple(held[:i]) for s, held in self.held.items() if s in busy for i in range(1, len(held) + 1)}
        before = self.cells()
        plan = self.tree.evictions(n, busy)
        assert sum(e.n_cells for e in plan) == min(n, before - len(kept))
        for e in plan:
            cells = self.cells()
            for seq in e.seq_ids:
                assert seq not in busy
                self.tree.truncate(seq, e.keep)
                del self.held[seq][e.keep :]
            assert cells - self.cells() == e.n_cells

    @rule(n=st.integers(1, 30), busy=st.frozensets(SEQ))
    def evict_whole(self, n: int, busy: frozenset[int]) -> None:
        for e in self.tree.evictions(n, busy, parts=False):
            cells = self.cells()
            (seq,) = e.seq_ids
            assert e.keep == 0
            assert seq not in busy
            self.tree.remove(seq)
            del self.held[seq]
            self.order.remove(seq)
            assert cells - self.cells() == e.n_cells

    def cells(self) -> int:
        return len({tuple(held[:i]) for held in self.held.values() for i in range(1, len(held) + 1)})

    @invariant()
    def same(self) -> None:
        assert self.tree.n_cells == self.cells()
        for seq, held in self.held.items():
            assert self.tree.n_tokens(seq) == len(held)
            others = [common(held, other) for s, other in self.held.items() if s != seq]
            assert self.tree.n_shared(seq) == max(others, default=0)
        runs = list(self.tree.runs())
        for start, end, holders in runs:
            assert start < end
            assert not any(other == end and who == holders for other, _, who in runs), "two runs that are one"


AgainstLists.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAgainstLists = AgainstLists.TestCase


@given(st.lists(TOKENS, min_size=1, max_size=5))
def test_without_pressure_nothing_leaves(sequences: list[list[int]]) -> None:
    tree = PrefixTree()
    for seq, tokens in enumerate(sequences):
        tree.insert(tokens, seq)
    assert tree.evictions(0) == []


def test_leaves_leave_before_what_they_share() -> None:
    tree = PrefixTree()
    tree.insert([1, 2, 3, 4, 5], 0)
    tree.insert([1, 2, 3, 6], 1)
    tree.touch(0)
    plan = tree.evictions(4)
    assert [(e.seq_ids, e.keep, e.n_cells) for e in plan] == [((1,), 3, 1), ((0,), 3, 2), ((0, 1), 2, 1)]
    assert "no other sequence" in plan[0].reason


def test_eight_long_sequences_are_quick() -> None:
    base = list(range(130_000))
    tree = PrefixTree()
    start = time.process_time()
    for seq in range(8):
        tree.insert([*base[: 10_000 * (seq + 1)], *(os.urandom(1)[0] for _ in range(50_000))], seq)
    assert tree.longest_prefix(base).n_tokens == 80_000
    for token in range(1000):
        tree.extend(7, (token,))
    tree.evictions(200_000)
    assert time.process_time() - start < 2.0
