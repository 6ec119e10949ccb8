"""Random operations on a mirror with a journal beside it, and the maps of every moment."""

import random

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord
from kvdesk.cache.snapshot import CacheMap, Verification

FACTS = [
    ModelFacts("plain", "attention"),
    ModelFacts("window", "iswa", n_swa=16, swa_type="standard"),
    ModelFacts("chunks", "iswa", n_swa=16, swa_type="chunked"),
    ModelFacts("both", "hybrid"),
    ModelFacts("states", "recurrent"),
]


def maps_of(mirror: Mirror) -> tuple[CacheMap, ...]:
    return mirror.snapshot(Verification("mirrored", 0)).maps


def assert_same_maps(found: tuple[CacheMap, ...], expected: tuple[CacheMap, ...]) -> None:
    assert [(m.name, m.n_swa, m.swa_type) for m in found] == [(m.name, m.n_swa, m.swa_type) for m in expected]
    assert [len(m.streams) for m in found] == [len(m.streams) for m in expected]
    for a_map, b_map in zip(found, expected, strict=True):
        for a, b in zip(a_map.streams, b_map.streams, strict=True):
            for name in ("pos", "seq_bits", "token", "written_at_op"):
                left, right = getattr(a, name), getattr(b, name)
                assert left.dtype == right.dtype
                assert (left == right).all(), name
                assert not left.flags.writeable
            assert (a.head, a.used, a.high_water) == (b.head, b.used, b.high_water)


def one_token(seq_id: int, token: int, mirror: Mirror | None) -> tuple[Mirror, DecodeRecord | None]:
    """Decode one token in `mirror` (a new one without it); None when it is full."""
    if mirror is None:
        mirror = Mirror(plan(FACTS[0], ContextParams(n_ctx=256, n_seq_max=2, kv_unified=True)))
    batch = Batch([token], [mirror.seq_pos_max(seq_id) + 1], [(seq_id,)], [True])
    return mirror, mirror.decode(batch, 0) if mirror.predict(batch) == 0 else None


class Player:
    """A mirror with random operations, each recorded."""

    def __init__(self, facts: ModelFacts, unified: bool, swa_full: bool, n_seq_max: int, seed: int) -> None:
        asked = ContextParams(512, n_seq_max, n_batch=200, n_ubatch=16, kv_unified=unified, swa_full=swa_full)
        self.mirror = Mirror(plan(facts, asked))
        self.journal = Journal(self.mirror)
        self.rng = random.Random(seed)
        self.sequences = [0, 1, n_seq_max - 1]
        self.states = {0: maps_of(self.mirror)}

    def play(self, n: int) -> dict[int, tuple[CacheMap, ...]]:
        """Do `n` operations; the maps after each operation so far, by number."""
        for i in range(n):
            name, record = self._step()
            number = self.mirror.operation
            seq = self.rng.choice(["", "one", "two"])
            operation = Operation(number, 1.7e9 + i / 100, name, f"{name} {number}", self.rng.random(), seq, "test")
            self.journal.record([operation], record)
            self.states[number] = maps_of(self.mirror)
        return self.states

    def _step(self) -> tuple[str, DecodeRecord | None]:
        rng, mirror = self.rng, self.mirror
        a, b = rng.choice(self.sequences), rng.choice(self.sequences)
        p0, p1 = rng.randint(-1, 60), rng.randint(-1, 60)
        kind = rng.choices(["decode", "one", "rm", "cp", "keep", "add", "clear"], [8, 8, 5, 3, 1, 3, 1])[0]
        if kind in ("decode", "one"):
            return "decode", self._decode(a, 1 if kind == "one" else rng.randint(1, 150))
        if kind == "rm":
            mirror.seq_rm(a, p0, p1)
        elif kind == "cp":
            mirror.seq_cp(a, b, -1, -1)
        elif kind == "keep":
            mirror.seq_keep(a)
        elif kind == "add":
            mirror.seq_add(a, p0, p1, rng.randint(-20, 20))
        else:
            mirror.clear()
        return kind, None

    def _decode(self, seq: int, n: int) -> DecodeRecord:
        start = self.mirror.seq_pos_max(seq) + 1
        tokens = [self.rng.randrange(49_000) for _ in range(n)]
        batch = Batch(tokens, range(start, start + n), [(seq,)] * n, [False] * n)
        rc = self.mirror.predict(batch)
        if rc == 0 and n > 20 and not self.mirror.states and self.rng.random() < 0.2:  # stopped in the first ubatch
            before = {s: self.mirror.seq_pos_max(s) for s in range(self.mirror.geometry.n_seq_max)}
            return self.mirror.decode(batch, 2, before.__getitem__)
        return self.mirror.decode(batch, rc)
