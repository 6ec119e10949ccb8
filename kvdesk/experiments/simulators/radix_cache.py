"""SGLang's radix cache, simulated: all texts in one tree, token by token, whose leaves are evicted when room is needed.

From SGLang (python/sglang/srt/mem_cache/radix_cache.py), with its default of one token a page: a prompt takes the
longest prefix in the tree, its last token left out, and locks that path; it is added to the tree once it is read, its
answer when it ends; slots that turn out to be in the tree already are given back. When slots are short the leaves that
nobody uses go, the one used longest ago first, and a parent left without children is a leaf.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.experiments.simulators.block_pool import NoRoom
from kvdesk.experiments.simulators.paged_cache import Use
from kvdesk.values import dataclass, field


@dataclass(slots=True, eq=False)
class Node:
    """Tokens on the way from the parent, and the slot of each. locks: of running requests; used_at: a count of uses."""

    tokens: tuple[int, ...]
    slots: list[int]
    parent: Node | None
    locks: int = 0
    used_at: int = 0
    children: dict[int, Node] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Running:
    """A request: its tokens, the slot of each, how many of those are in the tree, and the node they end in."""

    tokens: list[int]
    slots: list[int]
    n_in_tree: int
    node: Node


class RadixCache:
    """n_evicted: tokens that were in the tree and are not any more."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.root = Node((), [], None, locks=1)
        self.running: dict[int, Running] = {}
        self.n_evicted = 0
        self._free = deque(range(n_slots))
        self._clock = 0

    @property
    def free(self) -> list[int]:
        """Slots without a token. Read-only."""
        return list(self._free)

    def begin(self, seq_id: int, prompt: Sequence[int]) -> int:
        """A request with this prompt: how many of its tokens were in the tree. Raises NoRoom; leaves may be gone."""
        assert seq_id not in self.running
        assert prompt
        node, slots = self._match(tuple(prompt[:-1]))
        n_found = len(slots)
        self._lock(node, 1)
        try:
            slots += self._take(len(prompt) - n_found)
        except NoRoom:
            self._lock(node, -1)
            raise
        request = self.running[seq_id] = Running(list(prompt), slots, n_found, node)
        self._store(request)
        return n_found

    def append(self, seq_id: int, tokens: Sequence[int]) -> None:
        """Tokens of the answer. Raises NoRoom; what came before the token without a slot stays."""
        request = self.running[seq_id]
        for token in tokens:
            request.slots += self._take(1)
            request.tokens.append(token)

    def end(self, seq_id: int) -> None:
        """The answer is complete: all of it is in the tree, and nothing of it is locked."""
        request = self.running.pop(seq_id)
        self._store(request)
        self._lock(request.node, -1)

    def use(self) -> Use:
        """What running requests hold now: without blocks no slot is empty."""
        held = {slot for request in self.running.values() for slot in request.slots}
        n_runs = sum(1 + sum(b != a + 1 for a, b in pairwise(r.slots)) for r in self.running.values())
        return Use(len(held), len(held), n_runs)

    def nodes(self) -> Iterator[Node]:
        """All but the root. Read-only."""
        waiting = list(self.root.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children.values()

    def _store(self, request: Running) -> None:
        """Put all its tokens into the tree and lock their end; slots that are there twice are given back."""
        key = tuple(request.tokens)
        node, slots = self._match(key)
        n = len(slots)
        self._free.extend(request.slots[request.n_in_tree : n])
        if n < len(key):
            new = Node(key[n:], request.slots[n:], node, used_at=self._clock)
            node.children[key[n]] = node = new
        request.slots[:n] = slots
        self._lock(node, 1)
        self._lock(request.node, -1)
        request.node, request.n_in_tree = node, len(key)

    def _match(self, key: tuple[int, ...]) -> tuple[Node, list[int]]:
        """The node in which the longest known prefix ends, and its slots. A node that goes on behind it is split."""
        self._clock += 1
        node, slots = self.root, list[int]()
        node.used_at = self._clock
        while len(slots) < len(key) and (child := node.children.get(key[len(slots)])) is not None:
            child.used_at = self._clock
            n = common_prefix(child.tokens, key[len(slots) : len(slots) + len(child.tokens)])
            node = child if n == len(child.tokens) else self._split(child, n)
            slots += node.slots
            if node is not child:
                break
        return node, slots

    def _split(self, node: Node, n: int) -> Node:
        """Cut before its token `n`: the new node has what is before, as many locks, and `node` as its child."""
        assert node.parent is not None
        head = Node(node.tokens[:n], node.slots[:n], node.parent, node.locks, self._clock, {node.tokens[n]: node})
        node.parent.children[node.tokens[0]] = head
        node.tokens, node.slots, node.parent = node.tokens[n:], node.slots[n:], head
        return head

    def _lock(self, node: Node, by: int) -> None:
        """The node and all above it but the root, which is always locked."""
        while node.parent is not None:
            node.locks += by
            node = node.parent

    def _take(self, n: int) -> list[int]:
        """Raises NoRoom if eviction does not help."""
        if len(self._free) < n:
            self._evict(n - len(self._free))
        if len(self._free) < n:
            raise NoRoom
        return [self._free.popleft() for _ in range(n)]

    def _evict(self, n: int) -> None:
        """Leaves that nobody uses, until `n` slots are free or there are no more."""
        leaves = [
            (node.used_at, i, node) for i, node in enumerate(self.nodes()) if not node.children and not node.locks
        ]
        heapq.heapify(leaves)
        order = len(leaves)
        while n > 0 and leaves:
            _, _, leaf = heapq.heappop(leaves)
            parent = leaf.parent
            assert parent is not None
            del parent.children[leaf.tokens[0]]
            self._free.extend(leaf.slots)
            self.n_evicted += len(leaf.slots)
            n -= len(leaf.slots)
            if not parent.children and not parent.locks:
                order += 1
                heapq.heappush(leaves, (parent.used_at, order, parent))
