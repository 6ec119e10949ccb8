"""The prefix tree against a dictionary of lists."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import takewhile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kvdesk.policies.prefix_tree import PrefixTree

TOKENS = st.lists(st.integers(0, 2), max_size=12)
SEQ = st.integers(0, 4)


def common(a: list[int], b: list[int]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))


def runs(tree: PrefixTree) -> Iterator[tuple[int, int, frozenset[int]]]:
    """(start, end, holders) of every run of tokens that the same sequences hold."""
    waiting = [(tree._root, 0)]
    while waiting:
        node, start = waiting.pop()
        end = start + len(node.tokens)
        if node.parent is not None:
            yield start, end, frozenset(node.holders)
        waiting += [(child, end) for child in node.children.values()]


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

    @rule(seq=SEQ)
    def remove(self, seq: int) -> None:
        self.tree.remove(seq)
        self.held.pop(seq, None)
        self.order = [s for s in self.order if s != seq]

    @rule(prompt=TOKENS, without=st.integers(-1, 4))
    def longest_prefix(self, prompt: list[int], without: int) -> None:
        lengths = {s: common(held, prompt) for s, held in self.held.items() if s != without}
        match = self.tree.longest_prefix(prompt, without={without})
        assert match.n_tokens == max(lengths.values(), default=0)
        if match.n_tokens:
            assert lengths[match.seq_id] == match.n_tokens

    @rule(prompt=TOKENS)
    def longest_whole_prefix(self, prompt: list[int]) -> None:
        whole = [len(held) for held in self.held.values() if held == prompt[: len(held)]]
        assert self.tree.longest_prefix(prompt, whole=True).n_tokens == max(whole, default=0)

    @invariant()
    def same(self) -> None:
        cells = {tuple(held[:i]) for held in self.held.values() for i in range(1, len(held) + 1)}
        found = list(runs(self.tree))
        assert sum(end - start for start, end, _ in found) == len(cells), "each common prefix is there once"
        for seq, held in self.held.items():
            assert max((end for _, end, holders in found if seq in holders), default=0) == len(held)
        for start, end, holders in found:
            assert start < end
            assert not any(other == end and who == holders for other, _, who in found), "two runs that are one"


AgainstLists.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAgainstLists = AgainstLists.TestCase


def test_of_several_lenders_it_is_one_that_holds_nothing_else() -> None:
    tree = PrefixTree()
    tree.insert([1, 2, 3], 0)
    tree.insert([1, 2, 3, 6], 1)
    tree.touch(1)
    assert tree.longest_prefix([1, 2, 3, 9]).seq_id == 0
    assert tree.longest_prefix([1, 2, 9]).seq_id == 1, "else the last used"


def test_eight_long_sequences_are_quick() -> None:
    base = list(range(130_000))
    tree = PrefixTree()
    start = time.process_time()
    for seq in range(8):
        tree.insert([*base[: 10_000 * (seq + 1)], *(os.urandom(1)[0] for _ in range(50_000))], seq)
    assert tree.longest_prefix(base).n_tokens == 80_000
    for token in range(1000):
        tree.extend(7, (token,))
    assert time.process_time() - start < 2.0
