"""A radix tree over the token ids that the sequences in the cache hold: which one can lend a prefix.

SGLang's idea on llama.cpp's cells: a prompt takes the longest prefix that is there by `seq_cp`. A sequence whose
positions were shifted must be held only up to the shift: behind it K is not what a prefill would make. Must never know
cells or the engine. What is evicted is decided per sequence, in `kvdesk.policies.swap`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence, Set
from dataclasses import dataclass

from kvdesk.cache.prefix import common_prefix

_TOKEN = "i"  # llama_token: 32 bits
Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Match:
    """The first `n_tokens` of a prompt are held by sequence `seq_id`; -1 and 0 when none matches."""

    seq_id: int
    n_tokens: int


class _Node:
    """Tokens that the same sequences hold. A node ends where the set of holders changes."""

    __slots__ = ("children", "holders", "parent", "tokens")

    def __init__(self, tokens: array[int], parent: _Node | None, holders: set[int]) -> None:
        self.tokens = tokens
        self.parent = parent
        self.holders = holders
        self.children: dict[int, _Node] = {}


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

    def remove(self, seq_id: int) -> None:
        """The sequence holds nothing any more and is forgotten; unknown ones are ignored."""
        node = self._ends.pop(seq_id, None)
        if node is None:
            return
        del self._used[seq_id]
        while node.parent is not None:
            parent = node.parent
            node.holders.discard(seq_id)
            if not node.holders:
                del parent.children[node.tokens[0]]
            else:
                self._join(node)
            node = parent

    def touch(self, seq_id: int) -> None:
        """Mark the sequence as used now."""
        self._clock += 1
        self._used[seq_id] = self._clock

    # --- what is asked ------------------------------------------------------------------------------------------------

    def longest_prefix(self, prompt: Tokens, *, without: Set[int] = frozenset(), whole: bool = False) -> Match:
        """The longest prefix of `prompt` that a sequence other than those `without` holds, and who lends it.

        whole: only sequences of which everything matches, for streams, where a part cannot be copied. Of several
        lenders one that holds nothing else, then the last used. Read-only: whoever copies inserts: that is the use.
        """
        wanted = array(_TOKEN, prompt)
        best, node, depth = Match(-1, 0), self._root, 0
        while depth < len(wanted):
            child = node.children.get(wanted[depth])
            if child is None:
                break
            n = common_prefix(child.tokens, wanted[depth : depth + len(child.tokens)])
            full = n == len(child.tokens)
            ending = {s for s in child.holders if full and self._ends[s] is child}
            lenders = (ending if whole else child.holders) - without
            depth += n
            if lenders:
                lender = max(lenders, key=lambda s: (s in ending, self._used[s]))
                best = Match(lender, depth)
            if not full:
                break
            node = child
        return best

    # --- private ------------------------------------------------------------------------------------------------------

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
