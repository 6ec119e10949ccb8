"""An audit: random operations through the real context, every one compared with the engine in every cell.

Owns carrying operations out and counting. Whatever the context refuses or the engine rejects is part of the play; only
a difference between mirror and engine counts against it.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kvdesk.backends.local.llama.binding import CountdownFlag, engine_version
from kvdesk.backends.local.llama.context import MAPS, Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.open_model import open_model
from kvdesk.cache.batch import Batch
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import DecodeError, RefusedCall
from kvdesk.experiments.benchmarks.random_operations import Operation, RandomOperations, Range
from kvdesk.settings import ContextSettings
from kvdesk.values import dataclass, field, names

LAST_CHUNK = 8150
"""First position where a window is a chunk of 8192 (llama4), so that a chunk ends early."""
_KEPT = 4  # blobs of each kind to restore from


@dataclass
class Tally:
    """The result of an audit. `maps` counts maps of streams compared cell by cell, `blobs` whole states."""

    model: str
    settings: dict[str, object]
    seed: int
    engine: str
    ops: int = 0
    decodes: int = 0
    maps: int = 0
    blobs: int = 0
    mismatches: int = 0
    refused: int = 0
    rejected: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    first: str = ""
    report: str = ""

    def as_json(self) -> dict[str, object]:
        """Plain values, without the report, which is a separate JSON text."""
        value = {name: getattr(self, name) for name in names(self) if name != "report"}
        value["codes"] = {str(code): n for code, n in sorted(self.codes.items())}
        value["calls"] = dict(sorted(self.calls.items()))
        return value


class Audit:
    """One audit of `model` with `settings`. `step` does one operation; `rebuilds`: it goes on after a mismatch."""

    def __init__(
        self, model: Model, settings: ContextSettings, seed: int, stop_rate: float = 0.06, *, rebuilds: bool = True
    ) -> None:
        self._rebuilds = rebuilds
        self._flag = CountdownFlag()
        self.context = Context(model, settings, inspect=MAPS, stop=self._flag)
        self._mirror = self.context.memory.mirror
        self.tally = Tally(model.path.name, settings.model_dump(mode="json"), seed, str(engine_version()))
        self._blobs: list[Blob] = []
        self._seq_blobs: list[Blob] = []
        self._choice = RandomOperations(
            seed,
            self._mirror,
            Range(
                n_vocab=model.vocab.n_tokens,
                can_shift=self.context.can("seq_add"),
                max_pos=model.traits.n_positions or 1 << 20,
                first_pos=LAST_CHUNK if model.facts.swa_type == "chunked" else 0,
                stop_rate=stop_rate,
            ),
        )
        self._conclude()

    def next(self) -> Operation:
        """The operation that `step` would choose. Read-only but for the choice."""
        return self._choice.next()

    def step(self) -> None:
        """One operation, audited. After a mismatch the map is taken from the engine again."""
        self.play(self.next())

    def play(self, operation: Operation) -> None:
        """This operation, audited."""
        self.tally.calls[operation.kind] += 1
        try:
            self._do(operation)
        except RefusedCall:
            self.tally.refused += 1
        except DecodeError as error:
            self.tally.codes[error.code] += 1
            self.tally.decodes += 1
            self.tally.rejected += 1
        self.tally.ops += 1
        self._flag.left = -1
        self.context.auditor.audit(whole=True)
        self.tally.blobs += 1
        self._conclude()

    def close(self) -> None:
        self.context.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _do(self, op: Operation) -> None:
        memory, states = self.context.memory, self.context.states
        match op.kind:
            case "decode" | "bad" | "illegal":
                assert op.batch is not None
                self._decode(op.batch, op.stop)
            case "rm":
                memory.seq_rm(op.seq_id, op.p0, op.p1)
            case "cp":
                if op.fresh:
                    memory.seq_rm(op.dst, -1, -1)
                memory.seq_cp(op.seq_id, op.dst, op.p0, op.p1)
            case "keep":
                memory.seq_keep(op.seq_id)
            case "add":
                memory.seq_add(op.seq_id, op.p0, op.p1, op.shift)
            case "clear":
                memory.clear(data=op.data)
            case "save":
                self._blobs = [states.get(), *self._blobs][:_KEPT]
            case "load" if self._blobs:
                states.set(self._blobs[op.which % len(self._blobs)])
            case "save_seq":
                self._seq_blobs = [states.seq_get(op.seq_id), *self._seq_blobs][:_KEPT]
            case "load_seq" if self._seq_blobs:
                states.seq_set(op.seq_id, self._seq_blobs[op.which % len(self._seq_blobs)])

    def _decode(self, batch: Batch, stop: int) -> None:
        """A decode, its prediction compared too. The flag is set for this decode only, not for a flush before it."""
        if self._mirror.pending_shift:
            with contextlib.suppress(RefusedCall):
                self.context.memory.flush()
        self._flag.left = stop
        expected = self._mirror.predict(batch) if all(batch.seq_ids) else -1
        decoded = self.context.decode(batch)
        self.tally.codes[decoded.rc] += 1
        self.tally.decodes += 1
        self.tally.maps += len(self.context.memory.last_record.slots)
        if decoded.rc != 2 and decoded.rc != expected:
            self._found(f"rc {decoded.rc}, predicted {expected}")

    def _conclude(self) -> None:
        if self.context.memory.verification.state == "mismatch":
            self._found(self.context.memory.verification.detail)
            if self.context.verifier.report is not None:
                self.tally.report = self.context.verifier.report.to_json()
            if self._rebuilds:
                self.context.auditor.rebuild()

    def _found(self, what: str) -> None:
        self.tally.mismatches += 1
        self.tally.first = self.tally.first or f"operation {self.tally.ops}: {what}"


def run(
    path: Path, settings: ContextSettings, n_ops: int, seed: int, on_progress: Callable[[Tally], None] | None = None
) -> Tally:
    """Load the model and audit `n_ops` operations. Stops at the first mismatch after which the map cannot be rebuilt.

    Raises ModelFileError, ContextError.
    """
    start = time.perf_counter()
    with closing(open_model(path, settings).model) as model, closing(Audit(model, settings, seed)) as audit:
        while audit.tally.ops < n_ops and audit.context.memory.verification.state != "mismatch":
            audit.step()
            audit.tally.seconds = round(time.perf_counter() - start, 2)
            if on_progress is not None:
                on_progress(audit.tally)
        return audit.tally
