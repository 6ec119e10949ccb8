"""Plays cases in a separate process, on whatever libllama that has loaded. It may die of it at any call."""

from contextlib import closing
from pathlib import Path

import numpy as np

from kvdesk.backends.local.llama.binding import engine_log, lib
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.batch_buffer import BatchBuffer
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import SlotDump, parse_log, read_cells, render_position_map, render_sequence_map
from kvdesk.cache.seq_bits import seq_members
from kvdesk.cache.snapshot import StreamMap
from kvdesk.children.entry import Parent
from kvdesk.errors import ContextError, ModelFileError
from kvdesk.experiments.benchmarks.audit import Audit
from kvdesk.experiments.other_engine.messages import Answer, Case, Cells, Outcome
from kvdesk.settings import ContextSettings

_BESIDE = 2
"""Cells that are shown before the first one that differs and after the last."""
_MOST_ROWS = 40


def play_cases(parent: Parent) -> int:
    """One case after another, until the parent ends it."""
    models = _Models()
    while True:
        case = parent.receive_value(Case)
        try:
            outcome = _played(parent, models.open(Path(case.model)), case)
        except (ModelFileError, ContextError) as error:
            outcome = Outcome(not_played=str(error))
        parent.send_value(Answer(outcome=outcome))


class _Models:
    """The model that was used last stays loaded."""

    def __init__(self) -> None:
        self._model: Model | None = None

    def open(self, path: Path) -> Model:
        if self._model is None or self._model.path != path:
            if self._model is not None:
                self._model.close()
                self._model = None
            self._model = Model(path)
        return self._model


def _played(parent: Parent, model: Model, case: Case) -> Outcome:
    """The case up to the first difference. Raises ContextError."""
    settings = ContextSettings.model_validate(case.settings)
    architecture = model.facts.architecture
    if model.facts.kind == "unknown":
        return Outcome(architecture, not_played=model.facts.reason)
    if not settings.swa_full and not model.facts.n_swa:
        return Outcome(architecture, not_played="no sliding window")
    if settings.n_rs_seq and not model.facts.rollback:
        return Outcome(architecture, not_played="no earlier states")
    with closing(Audit(model, settings, case.seed, rebuilds=False)) as audit:
        tally = audit.tally
        for i in range(len(case.operations) or case.n_ops):
            if tally.mismatches:
                break
            operation = case.operations[i] if case.operations else audit.next()
            parent.send_value(Answer(operation))
            audit.play(operation)
        cells = _cells(audit.context) if tally.mismatches else ()
        counts = tally.ops, tally.decodes, tally.maps, tally.blobs
        return Outcome(architecture, *counts, tally.first.partition(": ")[2], cells)


def _cells(context: Context) -> tuple[Cells, ...]:
    """Every stream whose cells are printed otherwise than expected."""
    found = []
    mirror = context.memory.mirror
    printed = [dump for stream in range(mirror.geometry.n_stream) for dump in _printed(context, stream)]
    for cache in mirror.caches:
        for stream, cells in enumerate(cache.streams):
            expected, at = cells.freeze(), (stream, cache.n_swa)
            dump = next((dump for dump in printed if (dump.line.stream, dump.line.n_swa) == at), None)
            if dump is None or dump.position_map is None or dump.sequence_map is None:
                continue
            maps = render_position_map(expected), dump.position_map, render_sequence_map(expected), dump.sequence_map
            rows = _rows(expected, read_cells(dump))
            if rows or maps[0] != maps[1] or maps[2] != maps[3]:
                found.append(Cells(cache.name, stream, rows, *maps))
    return tuple(found)


def _printed(context: Context, stream: int) -> list[SlotDump]:
    """The cells that the engine prints before it decodes one token more. Changes its cache, and the mirror does not
    follow.
    """
    memory = context.memory
    n_stream = memory.mirror.geometry.n_stream
    seq_ids = [stream] if n_stream > 1 else list(range(context.n_seq_max))
    seq_id = max(seq_ids, key=memory.seq_pos_max)
    buffer = BatchBuffer(1, context.n_seq_max)
    buffer.fill(Batch.of(seq_id, memory.seq_pos_max(seq_id) + 1, (0,), "last"))
    log = engine_log()
    log.capture_start()
    lib.llama_decode(memory.ctx, buffer.raw)
    dumps = parse_log(line.decode("utf-8", "replace") for line in log.capture_stop())
    lib.llama_memory_seq_rm(lib.llama_get_memory(memory.ctx), seq_id, memory.seq_pos_max(seq_id), -1)
    buffer.close()
    return dumps


def _rows(expected: StreamMap, printed: StreamMap | None) -> tuple[tuple[int, str, str], ...]:
    """The cells from the first that differs to the last, at most _MOST_ROWS; none if the engine's cannot be read."""
    if printed is None:
        return ()
    ours, theirs = _words(expected), _words(printed)
    n = max(len(ours), len(theirs))
    ours += ["free"] * (n - len(ours))
    theirs += ["free"] * (n - len(theirs))
    differ = np.flatnonzero([mine != other for mine, other in zip(ours, theirs, strict=True)])
    if not len(differ):
        return ()
    first, end = max(0, int(differ[0]) - _BESIDE), min(n, int(differ[-1]) + _BESIDE + 1)
    return tuple((i, ours[i], theirs[i]) for i in range(first, min(end, first + _MOST_ROWS)))


def _words(cells: StreamMap) -> list[str]:
    pos, bits = cells.columns(len(cells.pos)).pos, cells.seq_bits
    return [
        "free" if p == -1 else f"position {p}, sequence {', '.join(map(str, seq_members(row)))}"
        for p, row in zip(pos.tolist(), bits, strict=False)
    ]
