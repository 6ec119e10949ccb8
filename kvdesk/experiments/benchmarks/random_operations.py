"""Random operations on a KV cache, legal and illegal ones, deterministic in a seed: what audits are made of.

Owns what is chosen, from what the mirror says the cache holds. Must never know who carries the operations out.
"""

import random
from typing import Literal

from kvdesk.cache.batch import Batch
from kvdesk.cache.mirror import Mirror
from kvdesk.values import dataclass

Kind = Literal[
    "decode", "bad", "illegal", "rm", "cp", "keep", "add", "clear", "save", "load", "save_seq", "load_seq"
]  # fmt: skip
WEIGHTS: dict[Kind, int] = {
    "decode": 62, "bad": 4, "illegal": 3, "rm": 10, "cp": 8, "keep": 1, "add": 5, "clear": 1,
    "save": 1, "load": 2, "save_seq": 3, "load_seq": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Ranges are `[p0, p1)`, -1 for open ends.

    batch   of "decode", "bad" (a rule of positions is broken) and "illegal" (would crash, must be refused)
    stop    of "decode": stop it at this call of the abort callback, -1 never
    fresh   of "cp": remove all of `dst` first, so that both hold the same and may share tokens
    which   of "load" and "load_seq": how many saves ago the blob was made
    """

    kind: Kind
    batch: Batch | None = None
    stop: int = -1
    seq_id: int = -1
    dst: int = -1
    p0: int = -1
    p1: int = -1
    shift: int = 0
    data: bool = False
    fresh: bool = False
    which: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Limits of what is chosen. max_pos: positions from there on are not used; stop_rate: share of stopped decodes;
    large: share of batches larger than a few tokens."""

    n_vocab: int
    can_shift: bool
    max_pos: int = 1 << 20
    first_pos: int = 0
    stop_rate: float = 0.06
    large: float = 0.4


class RandomOperations:
    """An endless choice. The same seed and the same answers of the engine give the same operations."""

    def __init__(self, seed: int, mirror: Mirror, limits: Range) -> None:
        self._rng = random.Random(seed)
        self._mirror = mirror
        self._limits = limits
        self._n_seq = mirror.geometry.n_seq_max

    def next(self) -> Operation:
        """The next operation. Read-only."""
        kind = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        match kind:
            case "decode" | "bad" | "illegal":
                return self._batch_operation(kind)
            case "rm":
                return self._remove()
            case "cp":
                return self._copy()
            case "add" if not self._limits.can_shift:
                return Operation("add", seq_id=self._seq(), p0=0, p1=-1, shift=1)
            case "add":
                seq_id = self._seq()
                p0, p1 = self._span(seq_id)
                return Operation("add", seq_id=seq_id, p0=p0, p1=p1, shift=self._rng.choice([-40, -7, -1, 1, 3, 25]))
            case "clear":
                return Operation("clear", data=self._rng.random() < 0.5)
            case _:
                return Operation(kind, seq_id=self._seq(), which=self._rng.randrange(4))

    # --- private ------------------------------------------------------------------------------------------------------

    def _batch_operation(self, kind: Kind) -> Operation:
        batch = self._batch()
        if max(batch.pos) >= self._limits.max_pos:
            return Operation("clear")
        if kind == "bad":
            return Operation(kind, _replaced(batch, self._rng.randrange(batch.n_tokens), self._off()))
        if kind == "illegal":
            return Operation(kind, self._illegal(batch))
        stop = -1
        if self._rng.random() < self._limits.stop_rate:
            stop = self._rng.randrange(self._rng.choice([30, 120, 600, 1800]))
        return Operation(kind, batch, stop=stop)

    def _off(self) -> int:
        return self._rng.choice([-2, -1, 1, 2])

    def _illegal(self, batch: Batch) -> Batch:
        """A batch that would crash or leave a cell that nothing can remove."""
        i = self._rng.randrange(batch.n_tokens)
        tokens, pos, seq_ids = list(batch.tokens), list(batch.pos), list(batch.seq_ids)
        match self._rng.randrange(5):
            case 0:
                tokens[i] = self._limits.n_vocab + self._rng.randrange(3)
            case 1:
                pos[i] = -1
            case 2:
                seq_ids[i] = ()
            case 3:
                seq_ids[i] = (self._rng.choice([-1, self._n_seq, 300]),)
            case _:
                return Batch((), (), (), ())
        return Batch(tokens, pos, seq_ids, batch.output)

    def _remove(self) -> Operation:
        seq_id = self._seq()
        p0, p1 = self._span(seq_id)
        if self._rng.random() < 0.05:
            seq_id = -1
        if self._rng.random() < 0.3:
            p0, p1 = -1, -1
        elif seq_id >= 0 and (n := self._mirror.removable(seq_id)):  # of a state: what there is an earlier one of
            p0, p1 = self._mirror.seq_pos_max(seq_id) + 1 - self._rng.randint(1, n + 1), -1
        return Operation("rm", seq_id=seq_id, p0=p0, p1=p1)

    def _copy(self) -> Operation:
        src, dst = self._seq(), self._seq()
        p0, p1 = self._span(src)
        if self._rng.random() < (0.9 if self._streams else 0.5):
            p0, p1 = -1, -1
        fresh = src != dst and self._rng.random() < 0.5
        return Operation("cp", seq_id=src, dst=dst, p0=p0, p1=p1, fresh=fresh)

    @property
    def _streams(self) -> bool:
        return self._mirror.geometry.n_stream > 1

    def _seq(self) -> int:
        return self._rng.randrange(self._n_seq)

    def _span(self, seq_id: int) -> tuple[int, int]:
        top = max(1, self._mirror.seq_pos_max(seq_id) + 1)
        p0 = self._rng.randint(-1, top)
        return p0, (-1 if self._rng.random() < 0.4 else self._rng.randint(max(p0, 0), top + 2))

    def _size(self) -> int:
        g = self._mirror.geometry
        sizes = [1, 1, 1, 2]
        if self._rng.random() < self._limits.large:
            sizes = [5, 17, g.n_ubatch, g.n_ubatch + 3, g.n_batch // 2, g.n_batch]
        return max(1, min(self._rng.choice(sizes), g.n_batch))

    def _batch(self) -> Batch:
        """Continuations of some sequences, now and then with shared tokens, of every size up to n_batch."""
        room = self._size()
        chosen = self._rng.sample(range(self._n_seq), self._rng.randint(1, self._n_seq))
        if self._rng.random() < 0.5:
            chosen.sort()
        groups = self._groups(chosen)
        ends = {group: max(self._mirror.seq_pos_max(s) for s in group) for group in groups}
        next_pos = {group: end + 1 if end >= 0 else self._limits.first_pos for group, end in ends.items()}
        interleave = self._rng.random() < 0.4
        share = max(1, room // len(groups))
        left = {group: (share if self._rng.random() < 0.7 else self._rng.randint(1, share)) for group in groups}
        entries: list[tuple[int, tuple[int, ...]]] = []
        while len(entries) < room and any(left.values()):
            alive = [group for group in groups if left[group]]
            group = self._rng.choice(alive) if interleave else alive[0]
            entries.append((next_pos[group], group))
            next_pos[group] += 1
            left[group] -= 1
        tokens = [self._rng.randrange(self._limits.n_vocab) for _ in entries]
        output = [False] * (len(entries) - 1) + [True]
        return Batch(tokens, [pos for pos, _ in entries], [group for _, group in entries], output)

    def _groups(self, chosen: list[int]) -> list[tuple[int, ...]]:
        """Sets of sequences that share their tokens: mostly one each, sometimes several that hold the same range."""
        if self._rng.random() >= (0.05 if self._streams else 0.4):
            return [(s,) for s in chosen]
        alike: dict[tuple[int, int], list[int]] = {}
        for s in range(self._n_seq):
            alike.setdefault((self._mirror.seq_pos_min(s), self._mirror.seq_pos_max(s)), []).append(s)
        several = [group for group in alike.values() if len(group) > 1]
        wild = self._rng.random() < 0.15  # will be refused, most of the time
        if not wild and not several:
            return [(s,) for s in chosen]
        group = chosen if wild else self._rng.choice(several)
        self._rng.shuffle(group)
        return [tuple(group), *((s,) for s in chosen if s not in group)]


def _replaced(batch: Batch, i: int, by: int) -> Batch:
    pos = list(batch.pos)
    pos[i] = max(0, pos[i] + by)
    return Batch(batch.tokens, pos, batch.seq_ids, batch.output)
