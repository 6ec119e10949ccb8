"""SGLang's rule, step by step on paper, and what is true of its tree after any calls."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvdesk.experiments.simulators.block_pool import NoRoom
from kvdesk.experiments.simulators.paged_cache import Use
from kvdesk.experiments.simulators.radix_cache import Node, RadixCache


def tree(cache: RadixCache) -> list[tuple[tuple[int, ...], int]]:
    """The tokens of every node and its locks, parents first."""

    def below(node: Node) -> list[tuple[tuple[int, ...], int]]:
        found = []
        for token in sorted(node.children):
            child = node.children[token]
            found += [(child.tokens, child.locks), *below(child)]
        return found

    return below(cache.root)


def test_hits_and_evictions_of_twelve_slots() -> None:
    cache = RadixCache(12)
    # A reads 1..6 into slots 0..5 and writes 7 8, which come into the tree at its end.
    assert cache.begin(0, [1, 2, 3, 4, 5, 6]) == 0
    assert tree(cache) == [((1, 2, 3, 4, 5, 6), 1)]
    cache.append(0, [7, 8])
    cache.end(0)
    assert tree(cache) == [((1, 2, 3, 4, 5, 6), 0), ((7, 8), 0)]
    # B reads 1 2 3 4 9: the first four are there, and A's text is split behind them.
    assert cache.begin(1, [1, 2, 3, 4, 9]) == 4
    assert tree(cache) == [((1, 2, 3, 4), 1), ((5, 6), 0), ((7, 8), 0), ((9,), 1)]
    cache.append(1, [10])
    assert cache.use() == Use(6, 6, 2)  # 0 1 2 3, then 8 9
    cache.end(1)
    assert cache.free == [10, 11]
    # C reads 20..23 and needs two slots more: of the leaves 7 8 and 10 the first was used longest ago.
    assert cache.begin(2, [20, 21, 22, 23]) == 0
    assert cache.n_evicted == 2
    assert tree(cache) == [((1, 2, 3, 4), 0), ((5, 6), 0), ((9,), 0), ((10,), 0), ((20, 21, 22, 23), 1)]
    cache.end(2)
    # D reads 1..8: six are there. 10 goes, then 9, which has become a leaf: both were used before C.
    assert cache.begin(3, [1, 2, 3, 4, 5, 6, 7, 8]) == 6
    assert cache.n_evicted == 4
    assert tree(cache) == [((1, 2, 3, 4), 1), ((5, 6), 1), ((7, 8), 1), ((20, 21, 22, 23), 0)]
    # Twelve slots are held or evictable; a prompt of five finds four that may go.
    with pytest.raises(NoRoom):
        cache.begin(4, [30, 31, 32, 33, 34])


def test_the_last_token_of_a_known_prompt_is_computed_and_given_back() -> None:
    cache = RadixCache(8)
    cache.begin(0, [1, 2, 3])
    cache.end(0)
    assert cache.begin(1, [1, 2, 3]) == 2
    assert len(cache.free) == 5  # not 4: the third was in the tree already
    assert cache.running[1].slots == [0, 1, 2]


class Calls(RuleBasedStateMachine):
    """Any calls, on texts of three tokens."""

    @initialize(n_slots=st.integers(1, 40))
    def create(self, n_slots: int) -> None:
        self.cache = RadixCache(n_slots)
        self.texts: dict[int, list[int]] = {}
        self.next_id = 0

    @rule(prompt=st.lists(st.integers(0, 2), min_size=1, max_size=12))
    def begin(self, prompt: list[int]) -> None:
        self.next_id += 1
        try:
            assert self.cache.begin(self.next_id, prompt) < len(prompt)
        except NoRoom:
            return
        self.texts[self.next_id] = prompt

    @rule(data=st.data(), more=st.lists(st.integers(0, 2), min_size=1, max_size=5))
    def append(self, data: st.DataObject, more: list[int]) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            try:
                self.cache.append(seq_id, more)
            except NoRoom:
                more = self.cache.running[seq_id].tokens[len(self.texts[seq_id]) :]
            self.texts[seq_id] = self.texts[seq_id] + more

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.texts:
            seq_id = data.draw(st.sampled_from(sorted(self.texts)))
            self.cache.end(seq_id)
            del self.texts[seq_id]

    @invariant()
    def every_slot_is_where_it_belongs(self) -> None:
        cache = self.cache
        nodes = list(cache.nodes())
        in_tree = [slot for node in nodes for slot in node.slots]
        own = [slot for request in cache.running.values() for slot in request.slots[request.n_in_tree :]]
        assert sorted([*cache.free, *in_tree, *own]) == list(range(cache.n_slots))
        for node in nodes:
            assert len(node.slots) == len(node.tokens) > 0
            assert all(child.tokens[0] == token and child.parent is node for token, child in node.children.items())
            ends = sum(request.node is node for request in cache.running.values())
            assert node.locks == ends + sum(child.locks for child in node.children.values())

    @invariant()
    def every_request_has_its_text(self) -> None:
        nodes = self.cache.nodes()
        token_of = {slot: token for node in nodes for slot, token in zip(node.slots, node.tokens, strict=True)}
        for seq_id, request in self.cache.running.items():
            assert request.tokens == self.texts[seq_id]
            n = request.n_in_tree
            assert [token_of[slot] for slot in request.slots[:n]] == request.tokens[:n]


Calls.TestCase.settings = settings(stateful_step_count=30)
TestCalls = Calls.TestCase
