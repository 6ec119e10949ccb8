"""Random operations on engine and mirror together, every one audited fully. Deterministic in its seed.

The engine side is a protocol, so the same walk drives the real engine and, for the breakage tests, a second mirror.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from kvdesk.benchmarks.random_operations import WEIGHTS, Operation, RandomOperations, Range
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
        self.tally = Tally()
        self.shift = shift and mirror.geometry.facts.can_shift
        limits = Range(side.n_vocab, self.shift, max_pos, first_pos, stop_rate, large=0.6)
        self.choice = RandomOperations(seed, mirror, limits, WEIGHTS | {"illegal": 0})
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
        op = self.choice.next()
        self.tally.calls[op.kind] += 1
        problem = self._do(op)
        return f"{op.kind}: {problem}" if problem else self._audit(op.kind)

    # --- operations: "" or what differed -----------------------------------------------------------------------------

    def _do(self, op: Operation) -> str:
        side, mirror, s = self.side, self.mirror, op.seq_id
        match op.kind:
            case "decode" | "bad":
                assert op.batch is not None
                return self._run_batch(op.batch, op.stop)
            case "rm":
                return self._same("seq_rm", side.seq_rm(s, op.p0, op.p1), mirror.seq_rm(s, op.p0, op.p1))
            case "cp":
                self._copy(op)
            case "keep":
                side.seq_keep(s)
                mirror.seq_keep(s)
            case "add" if self.shift:
                side.seq_add(s, op.p0, op.p1, op.shift)
                mirror.seq_add(s, op.p0, op.p1, op.shift)
            case "clear":
                side.clear(op.data)
                mirror.clear(op.data)
            case "save":
                self.blobs = [side.state(), *self.blobs][:3]
            case "load" if self.blobs:
                blob = self.blobs[op.which % len(self.blobs)]
                return self._same("restore", side.set_state(blob) != 0, mirror.restore(blob).ok)
            case "save_seq":
                return self._save_seq(s)
            case "load_seq" if self.seq_blobs:
                return self._load_seq(s, self.seq_blobs[op.which % len(self.seq_blobs)])
        return ""

    def _copy(self, op: Operation) -> None:
        """The engine aborts on a part between streams."""
        streams = self.mirror.geometry.n_stream > 1
        p0, p1 = (-1, -1) if streams else (op.p0, op.p1)
        if op.fresh and not streams:
            self.side.seq_rm(op.dst, -1, -1)
            self.mirror.seq_rm(op.dst, -1, -1)
        self.side.seq_cp(op.seq_id, op.dst, p0, p1)
        self.mirror.seq_cp(op.seq_id, op.dst, p0, p1)

    def _save_seq(self, s: int) -> str:
        blob = self.side.seq_state(s)
        found = compare_seq_blob(self.mirror, s, parse_seq_state(blob, self.mirror.geometry))
        self.seq_blobs = [blob, *self.seq_blobs][:4]
        return str(found) if found else ""

    def _load_seq(self, s: int, blob: bytes) -> str:
        self.side.take_dumps()
        ok = self.side.set_seq_state(s, blob) != 0
        record = self.mirror.restore_seq(s, blob)
        found = self._lines(record.slots)
        return self._same("restore_seq", ok, record.ok) or (str(found) if found else "")

    # --- private -----------------------------------------------------------------------------------------------------

    def _run_batch(self, batch: Batch, stop: int) -> str:
        self.side.take_dumps()
        expected = self.mirror.predict(batch)
        rc = self.side.decode(batch, -1 if self.mirror.pending_shift else stop)
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
