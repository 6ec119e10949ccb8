"""A radix tree over the token ids that the sequences in the cache hold: who can lend a prefix, who yields cells.

SGLang's idea on llama.cpp's cells: a prompt takes the longest prefix that is there by `seq_cp`, and eviction takes
leaves, least recently used first, never a prefix that others hold. Equal tokens are equal cells as long as whoever
fills the cache asks `longest_prefix` first and copies what it offers. A sequence whose positions were shifted must be
held only up to the shift: behind it K is not what a prefill would make. Must never know cells or the engine.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from kvdesk.cache.prefix import common_prefix

_TOKEN = "i"  # llama_token: 32 bits
Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Match:
    """The first `n_tokens` of a prompt are in the cache; `seq_id` lends them, -1 when nothing matches.

    whole       the lender holds nothing else: all of it may be copied, which is all that streams allow
    n_holders   sequences that hold them already
    """

    seq_id: int
    n_tokens: int
    whole: bool
    n_holders: int


@dataclass(frozen=True, slots=True)
class Eviction:
    """Keep the first `keep` tokens of the sequences: `seq_rm(seq, keep, -1)` each (all: -1, -1) frees `n_cells`."""

    seq_ids: tuple[int, ...]
    keep: int
    n_cells: int
    reason: str


class _Node:
    """Tokens that the same sequences hold. A node ends where the set of holders changes."""

    __slots__ = ("children", "holders", "parent", "tokens")

    def __init__(self, tokens: array[int], parent: _Node | None, holders: set[int]) -> None:
        self.tokens = tokens
        self.parent = parent
        self.holders = holders
        self.children: dict[int, _Node] = {}

    @property
    def depth(self) -> int:
        """Tokens from the root up to and with this node."""
        node, n = self, 0
        while node.parent is not None:
            n += len(node.tokens)
            node = node.parent
        return n


class PrefixTree:
    """Every operation is O(tokens it is about); a decoded token appended to an unshared end is O(1)."""

    def __init__(self) -> None:
        self._root = _Node(array(_TOKEN), None, set())
        self._ends: dict[int, _Node] = {}
        self._used: dict[int, int] = {}
        self._clock = 0

    # --- what is held -------------------------------------------------------------------------------------------------

    def insert(self, tokens: Tokens, seq_id: int) -> None:
        """Sequence `seq_id` now holds exactly `tokens`; what it held before is forgotten. Counts as a use."""
        self.remove(seq_id)
        self._ends[seq_id] = self._root
        self.extend(seq_id, tokens)

    def extend(self, seq_id: int, tokens: Tokens) -> None:
        """Append what was decoded. Counts as a use. Raises KeyError for a sequence never inserted."""
        self.touch(seq_id)
        rest = array(_TOKEN, tokens)
        end = self._ends[seq_id]
        if end is not self._root and not end.children and len(end.holders) == 1:
            end.tokens.extend(rest)
        else:
            self._ends[seq_id] = self._descend(end, rest, seq_id)
            self._join(end)

    def truncate(self, seq_id: int, n_tokens: int) -> None:
        """Only the first `n_tokens` stay: `seq_rm(seq, n_tokens, -1)` was done. Raises KeyError as `extend`."""
        node = self._ends[seq_id]
        depth = node.depth
        while node.parent is not None and depth > n_tokens:
            start = depth - len(node.tokens)
            if start < n_tokens:
                self._split(node, n_tokens - start)
                node, start = next(iter(node.children.values())), n_tokens
            parent = node.parent
            assert parent is not None
            node.holders.discard(seq_id)
            if not node.holders:
                del parent.children[node.tokens[0]]
            else:
                self._join(node)
            node, depth = parent, start
        self._ends[seq_id] = node
        self._join(node)

    def remove(self, seq_id: int) -> None:
        """The sequence holds nothing any more and is forgotten; unknown ones are ignored."""
        if seq_id in self._ends:
            self.truncate(seq_id, 0)
            del self._ends[seq_id], self._used[seq_id]

    def touch(self, seq_id: int) -> None:
        """Mark the sequence as used now."""
        self._clock += 1
        self._used[seq_id] = self._clock

    # --- what is asked ------------------------------------------------------------------------------------------------

    def longest_prefix(self, prompt: Tokens, *, without: int = -1, whole: bool = False) -> Match:
        """The longest prefix of `prompt` that a sequence other than `without` holds, and who lends it.

        whole: only sequences of which everything matches, for streams, where a part cannot be copied. Of several
        lenders one that holds nothing else, then the last used. Read-only: whoever copies inserts: that is the use.
        """
        wanted = array(_TOKEN, prompt)
        best, node, depth = Match(-1, 0, False, 0), self._root, 0
        while depth < len(wanted):
            child = node.children.get(wanted[depth])
            if child is None:
                break
            n = common_prefix(child.tokens, wanted[depth : depth + len(child.tokens)])
            full = n == len(child.tokens)
            ending = {s for s in child.holders if full and self._ends[s] is child}
            lenders = (ending if whole else child.holders) - {without}
            depth += n
            if lenders:
                lender = max(lenders, key=lambda s: (s in ending, self._used[s]))
                best = Match(lender, depth, lender in ending, len(child.holders))
            if not full:
                break
            node = child
        return best

    def n_tokens(self, seq_id: int) -> int:
        """Tokens the sequence holds, 0 when unknown."""
        end = self._ends.get(seq_id)
        return 0 if end is None else end.depth

    def n_shared(self, seq_id: int) -> int:
        """Leading tokens of the sequence that others hold as well."""
        node = self._ends.get(seq_id, self._root)
        while node.parent is not None and len(node.holders) == 1:
            node = node.parent
        return node.depth

    def runs(self) -> Iterator[tuple[int, int, frozenset[int]]]:
        """(start, end, holders) of every run of tokens that the same sequences hold, parents before children."""
        waiting = [(self._root, 0)]
        while waiting:
            node, start = waiting.pop()
            end = start + len(node.tokens)
            if node.parent is not None:
                yield start, end, frozenset(node.holders)
            waiting += [(child, end) for child in node.children.values()]

    @property
    def n_cells(self) -> int:
        """Distinct tokens: the cells needed when every common prefix is shared."""
        return sum(end - start for start, end, _ in self.runs())

    def evictions(self, n_cells: int, busy: Set[int] = frozenset(), *, parts: bool = True) -> list[Eviction]:
        """What leaves so that `n_cells` cells get free, in order; less is freed when no more may leave.

        Leaves first, least recently used first; their parents only once nobody holds more of them. Nothing that a
        sequence of `busy` holds. parts: False where a memory gives back whole sequences only. Read-only: after each
        `seq_rm` call `truncate` or `remove`.
        """
        return self._leaf_evictions(n_cells, busy) if parts else self._whole_evictions(n_cells, busy)

    # --- private ------------------------------------------------------------------------------------------------------

    def _leaf_evictions(self, n_cells: int, busy: Set[int]) -> list[Eviction]:
        result: list[Eviction] = []
        left = {id(node): len(node.children) for node in (self._root, *self._nodes())}
        leaves = [(self._last_used(node), id(node), node) for node in self._nodes() if not node.children]
        heapq.heapify(leaves)
        while leaves and n_cells > 0:
            _, _, node = heapq.heappop(leaves)
            if node.holders & busy:
                continue
            n, end = len(node.tokens), node.depth
            take = min(n, n_cells)
            who = tuple(sorted(node.holders))
            reason = f"least recently used, and no other sequence holds tokens [{end - take}, {end})"
            result.append(Eviction(who, end - take, take, reason))
            n_cells -= take
            parent = node.parent
            assert parent is not None
            left[id(parent)] -= 1
            if take == n and not left[id(parent)] and parent is not self._root:
                heapq.heappush(leaves, (self._last_used(parent), id(parent), parent))
        return result

    def _whole_evictions(self, n_cells: int, busy: Set[int]) -> list[Eviction]:
        result: list[Eviction] = []
        gone: set[int] = set()
        for seq_id in sorted(self._ends.keys() - busy, key=lambda s: self._used[s]):
            if n_cells <= 0:
                break
            gone.add(seq_id)
            freed = sum(len(n.tokens) for n in self._path(seq_id) if n.holders <= gone)
            result.append(Eviction((seq_id,), 0, freed, "least recently used, and only whole sequences can be removed"))
            n_cells -= freed
        return [e for e in result if self._ends[e.seq_ids[0]] is not self._root]

    def _descend(self, node: _Node, rest: array[int], seq_id: int) -> _Node:
        """Add `rest` below `node` for the sequence; returns where it ends."""
        while rest:
            child = node.children.get(rest[0])
            if child is None:
                child = node.children[rest[0]] = _Node(rest, node, {seq_id})
                return child
            n = common_prefix(child.tokens, rest)
            if n < len(child.tokens):
                self._split(child, n)
            child.holders.add(seq_id)
            node, rest = child, rest[n:]
        return node

    def _split(self, node: _Node, n: int) -> None:
        """Cut behind `n` tokens: `node` keeps them, a new child gets the rest, its children and its ends."""
        tail = _Node(node.tokens[n:], node, set(node.holders))
        self._hand_over(node, tail)
        node.tokens = node.tokens[:n]
        node.children = {tail.tokens[0]: tail}

    def _join(self, node: _Node) -> None:
        """Undo a split that no longer separates different holders."""
        if node.parent is None or len(node.children) != 1:
            return
        (child,) = node.children.values()
        if child.holders != node.holders:
            return
        node.tokens.extend(child.tokens)
        self._hand_over(child, node)

    def _hand_over(self, old: _Node, new: _Node) -> None:
        """What goes on or ends behind `old` does so behind `new`, which has the same holders."""
        new.children = old.children
        for child in new.children.values():
            child.parent = new
        for seq_id in new.holders:
            if self._ends[seq_id] is old:
                self._ends[seq_id] = new

    def _nodes(self) -> Iterator[_Node]:
        waiting = list(self._root.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children.values()

    def _path(self, seq_id: int) -> Iterator[_Node]:
        node = self._ends[seq_id]
        while node.parent is not None:
            yield node
            node = node.parent

    def _last_used(self, node: _Node) -> int:
        return max(self._used[s] for s in node.holders)
