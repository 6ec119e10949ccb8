"""A batch of tokens as the engine sees it: what it refuses, and how it cuts the rest into ubatches.

Owns the rules of llama-batch.cpp. Must never know cells: positions already in the cache come in as functions.
All `file:line` references are llama.cpp 0c1e57098.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.translation import tr
from kvdesk.values import dataclass

LogitsOf = Literal["none", "last", "all"]
_YES, _NO = (True,), (False,)


class Batch(NamedTuple):
    """Tokens for one llama_decode call: one entry per token in each field. `output` asks for logits."""

    tokens: Sequence[int]
    pos: Sequence[int]
    seq_ids: Sequence[tuple[int, ...]]
    output: Sequence[bool]

    @classmethod
    def of(cls, seq_id: int, pos: int, tokens: Sequence[int], logits: LogitsOf = "none") -> Batch:
        """Tokens of one sequence at `pos` and the following positions."""
        n = len(tokens)
        if n == 1:  # the most frequent case
            return cls(tokens, (pos,), ((seq_id,),), _NO if logits == "none" else _YES)
        output = [logits == "all"] * n
        if logits == "last" and n:
            output[-1] = True
        return cls(tokens, range(pos, pos + n), [(seq_id,)] * n, output)

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """One batch of several, in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            [token for part in parts for token in part.tokens],
            [pos for part in parts for pos in part.pos],
            [ids for part in parts for ids in part.seq_ids],
            [wanted for part in parts for wanted in part.output],
        )

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)


ProblemKind = Literal[
    "empty", "shape", "token", "seq_id", "no_seq", "pos", "gap", "consecutive", "coupled", "decreasing"
]


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Why the engine refuses a batch with rc -1 (nothing placed, a pending shift stays pending).

    `x` is the last position of sequence `seq_id` in the cache and `y` the first one in the batch where the rule is
    about positions. Kinds "shape", "no_seq" and "pos" are kvdesk's own: the engine would crash on the first two and
    make a cell at position -1 that nothing can remove by position from the third.
    """

    kind: ProblemKind
    sentence: str
    seq_id: int = -1
    index: int = -1
    x: int = -1
    y: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ubatch:
    """Tokens computed in one graph, in the engine's order. `index`: their places in the batch.

    n_seqs      sequence sets (equal split) or 1; with streams every one has n_tokens / n_seqs tokens, one after another
    seq_id_unq  sequence ids that take part, ascending
    """

    index: NDArray[np.int64]
    tokens: NDArray[np.int32]
    pos: NDArray[np.int32]
    seq_ids: tuple[tuple[int, ...], ...]
    seq_id_unq: tuple[int, ...]
    n_seqs: int

    @property
    def n_tokens(self) -> int:
        return len(self.seq_ids)

    @property
    def n_seq_tokens(self) -> int:
        return self.n_tokens // self.n_seqs


_BUCKETS = (13, 29, 59, 127, 257, 541)  # the sizes a libstdc++ hash table of 1 to 541 small integers goes through


def engine_order(seq_ids: Iterable[int]) -> tuple[int, ...]:
    """The order in which the engine walks a token's sequence ids; [0] is the one that owns it.

    llama-batch.cpp:1276 puts them in a std::unordered_set. This is libstdc++'s order (identity hash; a new node goes to
    the front of the list when its bucket is empty, else to the front of its bucket; a rehash reverses likewise). Other
    standard libraries differ: with them a token of several sequences cannot be predicted in every detail.
    """
    order: list[int] = []
    seen: set[int] = set()
    buckets = _BUCKETS[0]
    for seq_id in seq_ids:
        if seq_id in seen:
            continue
        seen.add(seq_id)
        if len(seen) > buckets:
            buckets = next(size for size in _BUCKETS if size > buckets)
            walk, order = order, []
            for node in walk:
                _link(order, node, buckets)
        _link(order, seq_id, buckets)
    return tuple(order)


def _link(order: list[int], node: int, buckets: int) -> None:
    """Insert `node` where libstdc++ would: in front of the first node of its bucket, or of the whole list."""
    bucket = node % buckets
    at = next((i for i, other in enumerate(order) if other % buckets == bucket), 0)
    order.insert(at, node)


def check_batch(
    batch: Batch,
    *,
    n_seq_max: int,
    seq_pos_min: Callable[[int], int],
    seq_pos_max: Callable[[int], int],
    n_pos_per_embd: int = 1,
) -> BatchProblem | None:
    """The rules by which llama_decode returns -1, in the engine's order (llama-batch.cpp:28-424). Read-only.

    `seq_pos_min` and `seq_pos_max` give the first and last position of a sequence in the cache, -1 for an empty one.
    """
    return (
        _check_entries(batch, n_seq_max)
        or _check_positions(batch, seq_pos_max, n_pos_per_embd)
        or _check_coupled(batch, seq_pos_min, seq_pos_max)
        or _check_order(batch)
    )


def _check_entries(batch: Batch, n_seq_max: int) -> BatchProblem | None:
    n = batch.n_tokens
    if n == 0:
        return BatchProblem("empty", tr("The batch has no tokens."))
    if not len(batch.pos) == len(batch.seq_ids) == len(batch.output) == n:
        return BatchProblem(
            "shape", tr("The batch must have one position, one set of sequences and one flag per token.")
        )
    for i, token in enumerate(batch.tokens):
        if token < 0:
            return BatchProblem(
                "token",
                tr("Token {i} of the batch is {token}, which the model does not know.").format(i=i, token=token),
                index=i,
            )
    for i, seq_ids in enumerate(batch.seq_ids):
        if not seq_ids:
            return BatchProblem("no_seq", tr("Token {i} of the batch belongs to no sequence.").format(i=i), index=i)
        for s in seq_ids:
            if not 0 <= s < n_seq_max:
                sentence = tr(
                    "Token {i} of the batch names sequence {s}; the context has sequences 0 to {n_seq_max}."
                ).format(i=i, s=s, n_seq_max=n_seq_max - 1)
                return BatchProblem("seq_id", sentence, seq_id=s, index=i)
        if batch.pos[i] < 0:
            return BatchProblem(
                "pos", tr("Token {i} of the batch has position {pos}.").format(i=i, pos=batch.pos[i]), index=i
            )
    return None


def _positions_by_seq(batch: Batch) -> dict[int, set[int]]:
    by_seq: dict[int, set[int]] = {}
    for pos, seq_ids in zip(batch.pos, batch.seq_ids, strict=True):
        for s in seq_ids:
            by_seq.setdefault(s, set()).add(pos)
    return dict(sorted(by_seq.items()))


def _check_positions(batch: Batch, seq_pos_max: Callable[[int], int], n_pos_per_embd: int) -> BatchProblem | None:
    """llama-batch.cpp:289-349: every sequence goes on where it ends in the cache, without a gap."""
    for s, positions in _positions_by_seq(batch).items():
        x, y = seq_pos_max(s), min(positions)
        if n_pos_per_embd > 1:
            if x >= 0 and x >= y:
                sentence = tr(
                    "Sequence {s} ends at position X = {x} and the batch starts at Y = {y}; M-RoPE needs X < Y."
                ).format(s=s, x=x, y=y)
                return BatchProblem("consecutive", sentence, seq_id=s, x=x, y=y)
            continue
        if x >= 0 and y != x + 1:
            sentence = tr(
                "Sequence {s} ends at position X = {x} and the batch starts at Y = {y}; it must be Y = X + 1."
            ).format(s=s, x=x, y=y)
            return BatchProblem("consecutive", sentence, seq_id=s, x=x, y=y)
        if max(positions) - y + 1 > len(positions):
            return BatchProblem(
                "gap", tr("The positions of sequence {s} in the batch have a gap.").format(s=s), seq_id=s, x=x, y=y
            )
    return None


def _check_coupled(
    batch: Batch, seq_pos_min: Callable[[int], int], seq_pos_max: Callable[[int], int]
) -> BatchProblem | None:
    """llama-batch.cpp:351-365: sequences that share a token must hold the same range of positions."""
    pairs: set[tuple[int, int]] = set()
    for seq_ids in set(batch.seq_ids):
        if len(seq_ids) > 1:
            first, *others = engine_order(seq_ids)
            pairs.update((s, first) for s in others)
    for s, first in sorted(pairs):
        mine, other = (seq_pos_min(s), seq_pos_max(s)), (seq_pos_min(first), seq_pos_max(first))
        if mine != other:
            sentence = tr(
                "Sequences {s} and {first} share a token of the batch, but hold different positions: {mine_first} to "
                "{mine_last} and {other_first} to {other_last}."
            ).format(s=s, first=first, mine_first=mine[0], mine_last=mine[1], other_first=other[0], other_last=other[1])
            return BatchProblem("coupled", sentence, seq_id=s, x=mine[1], y=other[1])
    return None


def _check_order(batch: Batch) -> BatchProblem | None:
    """llama-batch.cpp:411: the positions of a sequence do not decrease within the batch.

    The rule next to it, incompatible sequence sets (:406), cannot fire: every set that it intersects has the sequence.
    """
    last: dict[int, int] = {}
    for i, (pos, seq_ids) in enumerate(zip(batch.pos, batch.seq_ids, strict=True)):
        for s in seq_ids:
            if pos < last.get(s, -1):
                return BatchProblem(
                    "decreasing", tr("The positions of sequence {s} decrease.").format(s=s), seq_id=s, index=i, y=pos
                )
            last[s] = pos
    return None


def _ubatch(batch: Batch, index: Sequence[int], n_seqs: int) -> Ubatch:
    seq_ids = tuple(ids if len(ids := batch.seq_ids[i]) == 1 else engine_order(ids) for i in index)
    return Ubatch(
        index=np.asarray(index, dtype=np.int64),
        tokens=np.asarray([batch.tokens[i] for i in index], dtype=np.int32),
        pos=np.asarray([batch.pos[i] for i in index], dtype=np.int32),
        seq_ids=seq_ids,
        seq_id_unq=tuple(sorted({s for ids in seq_ids for s in ids})),
        n_seqs=n_seqs,
    )


def split_simple(batch: Batch, n_ubatch: int) -> list[Ubatch]:
    """Consecutive chunks of `n_ubatch` tokens in batch order (llama-batch.cpp:508)."""
    n = batch.n_tokens
    return [_ubatch(batch, range(i, min(n, i + n_ubatch)), 1) for i in range(0, n, n_ubatch)]


def split_equal(batch: Batch, n_ubatch: int, sequential: bool, n_rs_seq: int = 0) -> list[Ubatch] | None:
    """Equally many tokens of several sequence sets per ubatch (llama-batch.cpp:542).

    sequential: only sets whose ids follow each other; then a token of several sequences cannot be split and the answer
    is None, which llama_decode turns into rc 1. n_rs_seq: the last tokens of a set, one more than these, are in the
    same ubatch, so that its earlier states can be kept.
    """
    sets = [frozenset(ids) for ids in batch.seq_ids]
    if sequential and any(len(ids) > 1 for ids in sets):
        return None
    members: dict[frozenset[int], list[int]] = {}
    for i, ids in enumerate(sets):
        members.setdefault(ids, []).append(i)
    taken = dict.fromkeys(members, 0)
    first_id = {ids: engine_order(batch.seq_ids[index[0]])[0] for ids, index in members.items()}
    n_left = batch.n_tokens
    ubatches = []
    while n_left:
        chosen = _choose_sets(members, taken, first_id, n_ubatch, sequential)
        count = min(len(members[ids]) - taken[ids] for ids in chosen)
        count = max(1, min(count, n_ubatch // len(chosen)))
        if n_rs_seq:
            left = [len(members[ids]) - taken[ids] - count for ids in chosen]
            n_kept, count = _keep_tails(left, count, n_ubatch, n_rs_seq + 1)
            chosen = chosen[:n_kept]
        index = [i for ids in chosen for i in members[ids][taken[ids] : taken[ids] + count]]
        for ids in chosen:
            taken[ids] += count
        n_left -= len(index)
        ubatches.append(_ubatch(batch, index, len(chosen)))
    return ubatches


def _choose_sets(
    members: dict[frozenset[int], list[int]],
    taken: dict[frozenset[int], int],
    first_id: dict[frozenset[int], int],
    n_ubatch: int,
    sequential: bool,
) -> list[frozenset[int]]:
    """The sequence sets of the next ubatch: disjoint, in the order of their first unused token.

    A skipped set may be taken at a later token, so with `sequential` every unused token counts.
    """
    if sequential:
        left = sorted((i, ids) for ids, index in members.items() for i in index[taken[ids] :])
        walk = [ids for _, ids in left]
    else:
        walk = sorted((ids for ids in members if taken[ids] < len(members[ids])), key=lambda s: members[s][taken[s]])
    chosen: list[frozenset[int]] = []
    used: set[int] = set()
    last = -1
    for ids in walk:
        if used & ids or (sequential and chosen and first_id[ids] != last + 1):
            continue
        chosen.append(ids)
        used |= ids
        last = first_id[ids]
        if len(chosen) > n_ubatch:
            break
    return chosen


def _keep_tails(left: Sequence[int], count: int, n_ubatch: int, n_tail: int) -> tuple[int, int]:
    """How many of the chosen sets are in the ubatch, and with how many tokens each (llama-batch.cpp:637-698).

    left: tokens of each set behind the `count` ones; the last `n_tail` of a set must stay together.
    """
    n_kept = next((i for i, n in enumerate(left) if 0 < n < n_tail), len(left))
    if n_kept:
        return n_kept, count
    return 1, count + left[0] if count + left[0] <= n_ubatch else count + left[0] - n_tail


def split_seq(batch: Batch, n_ubatch: int) -> list[Ubatch]:
    """One sequence set per ubatch, then its subsets (llama-batch.cpp:677); used when all tokens are output."""
    sets = [frozenset(ids) for ids in batch.seq_ids]
    left = list(range(batch.n_tokens))
    ubatches = []
    while left:
        current = sets[left[0]]
        index: list[int] = []
        for i in left:
            if len(index) < n_ubatch and sets[i] <= current:
                index.append(i)
                current = sets[i]
        done = set(index)
        left = [i for i in left if i not in done]
        ubatches.append(_ubatch(batch, index, 1))
    return ubatches


def first_positions(ubatch: Ubatch) -> dict[int, int]:
    """The first position of each sequence that is the first one of a token."""
    first: dict[int, int] = {}
    for pos, seq_ids in zip(ubatch.pos.tolist(), ubatch.seq_ids, strict=True):
        first[seq_ids[0]] = min(pos, first.get(seq_ids[0], pos))
    return first


def restored_ubatch(seq_id: int, positions: Sequence[int] | NDArray[np.int32], known: Sequence[int] = ()) -> Ubatch:
    """The ubatch that the engine makes of a saved sequence."""
    n, pos = len(positions), np.asarray(positions, dtype=np.int32)
    tokens, there = np.full(n, -1, dtype=np.int32), (pos >= 0) & (pos < len(known))
    tokens[there] = np.asarray(known, dtype=np.int32)[pos[there]]
    return Ubatch(
        index=np.arange(n, dtype=np.int64),
        tokens=tokens,
        pos=pos,
        seq_ids=((seq_id,),) * n,
        seq_id_unq=(seq_id,),
        n_seqs=1,
    )
