"""Random operations on engine and mirror together, every one audited fully. Deterministic in its seed.

The engine side is a protocol, so the same walk drives the real engine and, for the breakage tests, a second mirror.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from kvdesk.cache.batch import Batch
from kvdesk.cache.blob import parse_seq_state, parse_state
from kvdesk.cache.dump import SlotDump
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import SlotState
from kvdesk.cache.verify import Difference, compare_blob, compare_lines, compare_seq_blob, compare_spans


class Side(Protocol):
    """What the walk asks of the side that is right by definition."""

    n_vocab: int

    def decode(self, batch: Batch, stop_after: int) -> int: ...
    def take_dumps(self) -> list[SlotDump]: ...
    def clear(self, data: bool) -> None: ...
    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool: ...
    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None: ...
    def seq_keep(self, seq_id: int) -> None: ...
    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None: ...
    def pos_min(self, seq_id: int) -> int: ...
    def pos_max(self, seq_id: int) -> int: ...
    def state(self) -> bytes: ...
    def set_state(self, blob: bytes) -> int: ...
    def seq_state(self, seq_id: int) -> bytes: ...
    def set_seq_state(self, seq_id: int, blob: bytes) -> int: ...


@dataclass
class Tally:
    """What a walk did and found."""

    operations: int = 0
    maps: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    mismatch: str = ""


class Walk:
    """One walk. `step` does one operation and returns "" or what differed."""

    def __init__(
        self,
        side: Side,
        mirror: Mirror,
        seed: int,
        shift: bool = True,
        max_pos: int = 1 << 20,
        stop_rate: float = 0.06,
        first_pos: int = 0,
    ) -> None:
        self.side, self.mirror = side, mirror
        self.rng = random.Random(seed)
        self.tally = Tally()
        self.n_seq = mirror.geometry.n_seq_max
        self.shift, self.max_pos = shift, max_pos  # whether positions move; no positions from max_pos on
        self.first_pos = first_pos  # of an empty sequence
        self.stop_rate = stop_rate  # share of decodes that are stopped in the middle
        self.blobs: list[bytes] = []
        self.seq_blobs: list[bytes] = []
        self.mirror.capture = True

    def run(self, n_operations: int) -> Tally:
        for _ in range(n_operations):
            problem = self.step()
            self.tally.operations += 1
            if problem:
                self.tally.mismatch = f"operation {self.tally.operations}: {problem}"
                break
        return self.tally

    def step(self) -> str:
        kind = self.rng.choices(
            ["decode", "bad", "rm", "cp", "keep", "add", "clear", "save", "load", "save_seq", "load_seq"],
            [60, 4, 10, 8, 1, 5, 1, 2, 2, 3, 4],
        )[0]
        self.tally.calls[kind] += 1
        problem = getattr(self, f"_{kind}")()
        return f"{kind}: {problem}" if problem else self._audit(kind)

    # --- operations: "" or what differed -----------------------------------------------------------------------------

    def _decode(self) -> str:
        return self._run_batch(self._batch(), self.rng.random() < self.stop_rate)

    def _bad(self) -> str:
        """A batch that breaks a rule, most of the time."""
        batch = self._batch()
        pos = list(batch.pos)
        i = self.rng.randrange(len(pos))
        pos[i] = max(0, pos[i] + self.rng.choice([-2, -1, 1, 2]))
        return self._run_batch(Batch(batch.tokens, pos, batch.seq_ids, batch.output), False)

    def _rm(self) -> str:
        s = self._seq()
        p0, p1 = self._range(s)
        if self.rng.random() < 0.05:
            s = -1
        if self.rng.random() < 0.3:
            p0, p1 = -1, -1
        return self._same("seq_rm", self.side.seq_rm(s, p0, p1), self.mirror.seq_rm(s, p0, p1))

    def _cp(self) -> str:
        src, dst = self._seq(), self._seq()
        p0, p1 = self._range(src)
        if self._streams() or self.rng.random() < 0.5:
            p0, p1 = -1, -1
        if self.rng.random() < 0.5 and not self._streams():
            self.side.seq_rm(dst, -1, -1)
            self.mirror.seq_rm(dst, -1, -1)
        self.side.seq_cp(src, dst, p0, p1)
        self.mirror.seq_cp(src, dst, p0, p1)
        return ""

    def _keep(self) -> str:
        s = self._seq()
        self.side.seq_keep(s)
        self.mirror.seq_keep(s)
        return ""

    def _add(self) -> str:
        if not self.shift or not self.mirror.geometry.facts.can_shift:
            return ""
        s = self._seq()
        p0, p1 = self._range(s)
        shift = self.rng.choice([-40, -7, -1, 1, 3, 25])
        self.side.seq_add(s, p0, p1, shift)
        self.mirror.seq_add(s, p0, p1, shift)
        return ""

    def _clear(self) -> str:
        data = self.rng.random() < 0.5
        self.side.clear(data)
        self.mirror.clear(data)
        return ""

    def _save(self) -> str:
        self.blobs.append(self.side.state())
        return ""

    def _load(self) -> str:
        if not self.blobs:
            return ""
        blob = self.rng.choice(self.blobs[-3:])
        return self._same("restore", self.side.set_state(blob) != 0, self.mirror.restore(blob).ok)

    def _save_seq(self) -> str:
        s = self._seq()
        blob = self.side.seq_state(s)
        found = compare_seq_blob(self.mirror, s, parse_seq_state(blob, self.mirror.geometry))
        self.seq_blobs.append(blob)
        return str(found) if found else ""

    def _load_seq(self) -> str:
        if not self.seq_blobs:
            return ""
        blob, s = self.rng.choice(self.seq_blobs[-4:]), self._seq()
        self.side.take_dumps()
        ok = self.side.set_seq_state(s, blob) != 0
        record = self.mirror.restore_seq(s, blob)
        found = self._lines(record.slots)
        return self._same("restore_seq", ok, record.ok) or (str(found) if found else "")

    # --- private -----------------------------------------------------------------------------------------------------

    def _run_batch(self, batch: Batch, stop: bool) -> str:
        if max(batch.pos) >= self.max_pos:
            return self._clear()
        self.side.take_dumps()
        stop = stop and not self.mirror.pending_shift
        expected = self.mirror.predict(batch)
        rc = self.side.decode(batch, self.rng.randrange(self.rng.choice([30, 120, 600, 1800])) if stop else -1)
        self.tally.codes[rc] += 1
        record = self.mirror.decode(batch, rc, self.side.pos_max)
        if record.mismatch:
            return record.mismatch
        if record.expected_rc != expected or (rc in (0, 1, -1) and rc != expected):
            return f"rc {rc}, predicted {expected}, followed {record.expected_rc}"
        found = self._lines(record.slots)
        return str(found) if found else ""

    def _lines(self, slots: tuple[SlotState, ...]) -> Difference | None:
        dumps = self.side.take_dumps()
        self.tally.maps += sum(dump.position_map is not None for dump in dumps)
        return compare_lines(slots, dumps)

    def _audit(self, kind: str) -> str:
        found = compare_spans(self.mirror, self.side.pos_min, self.side.pos_max)
        if not found and (kind != "decode" or self.tally.operations % 4 == 0):
            found = compare_blob(self.mirror, parse_state(self.side.state(), self.mirror.geometry))
        return f"after {kind}: {found}" if found else ""

    def _same(self, what: str, theirs: object, ours: object) -> str:
        return "" if theirs == ours else f"{what}: engine {theirs}, mirror {ours}"

    def _streams(self) -> bool:
        return not self.mirror.geometry.kv_unified and self.n_seq > 1

    def _seq(self) -> int:
        return self.rng.randrange(self.n_seq)

    def _range(self, s: int) -> tuple[int, int]:
        top = max(1, self.mirror.seq_pos_max(s) + 1)
        p0 = self.rng.randint(-1, top)
        return p0, (-1 if self.rng.random() < 0.4 else self.rng.randint(max(p0, 0), top + 2))

    def _batch(self) -> Batch:
        """Continuations of some sequences, now and then with shared tokens, of every size up to n_batch."""
        g = self.mirror.geometry
        room = self.rng.choice([1, 1, 1, 2, 5, 17, g.n_ubatch, g.n_ubatch + 3, g.n_batch // 2, g.n_batch])
        room = max(1, min(room, g.n_batch))
        chosen = self.rng.sample(range(self.n_seq), self.rng.randint(1, self.n_seq))
        if self.rng.random() < 0.5:
            chosen.sort()
        groups = self._groups(chosen)
        ends = {g0: max(self.mirror.seq_pos_max(s) for s in g0) for g0 in groups}
        next_pos = {g0: end + 1 if end >= 0 else self.first_pos for g0, end in ends.items()}
        entries: list[tuple[int, tuple[int, ...]]] = []
        interleave = self.rng.random() < 0.4
        share = max(1, room // len(groups))
        left = {g0: (share if self.rng.random() < 0.7 else self.rng.randint(1, share)) for g0 in groups}
        while len(entries) < room and any(left.values()):
            alive = [g0 for g0 in groups if left[g0]]
            g0 = self.rng.choice(alive) if interleave else alive[0]
            entries.append((next_pos[g0], g0))
            next_pos[g0] += 1
            left[g0] -= 1
        tokens = [self.rng.randrange(self.side.n_vocab) for _ in entries]
        output = [False] * (len(entries) - 1) + [True]
        return Batch(tokens, [p for p, _ in entries], [s for _, s in entries], output)

    def _groups(self, chosen: list[int]) -> list[tuple[int, ...]]:
        """Sets of sequences that share their tokens: mostly one each, now and then several that hold the same range."""
        if self.rng.random() >= (0.05 if self._streams() else 0.4):
            return [(s,) for s in chosen]
        alike: dict[tuple[int, int], list[int]] = {}
        for s in range(self.n_seq):
            alike.setdefault((self.mirror.seq_pos_min(s), self.mirror.seq_pos_max(s)), []).append(s)
        several = [group for group in alike.values() if len(group) > 1]
        group = chosen if not several or self.rng.random() < 0.15 else self.rng.choice(several)
        self.rng.shuffle(group)
        return [tuple(group), *((s,) for s in chosen if s not in group)]
