"""What ways of defragmenting would move in the course of a history, and what the cells would be like: on the mirror.

Nothing is computed and nothing is timed: cells move as the rules of each way say.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout, plan_compaction
from kvdesk.cache.geometry import Geometry
from kvdesk.cache.memories.cells import Index, StreamCells
from kvdesk.cache.metrics import scatter
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.cache.take_out import take_out
from kvdesk.errors import ContextError
from kvdesk.experiments.scenarios import history as days
from kvdesk.experiments.simulators.hole_filling import move_cells, plan_moves
from kvdesk.translation import marked, tr
from kvdesk.values import replace


class Way(StrEnum):
    """Of defragmenting one stream.

    FILL      holes are filled from the end: llama.cpp until #15473
    IN_ORDER  the whole state is read and written again, in its order: kvdesk's compaction; all used cells are moved
    CLOSE_UP  the same cells at the end, but those that stay where they are are not moved
    GROUPED   the cells of one sequence side by side: #13497; those that stay where they are are not moved
    """

    FILL = marked("holes filled (#12253)")
    IN_ORDER = marked("whole state, in order")
    CLOSE_UP = marked("in order, moved cells only")
    GROUPED = marked("grouped by sequence (#13497)")


When = Callable[[StreamCells, days.Event], bool]
"""Whether to defragment before this event."""


class Moved(NamedTuple):
    """n: times; n_cells: cells that were moved in all; most_cells: at one time.

    n_kv  mean cells that attention walks over for a token of an answer; runs: mean runs of cells of a sequence then
    """

    n: int
    n_cells: int
    most_cells: int
    n_kv: float
    runs: float


def simulate(history: Iterable[days.Event], geometry: Geometry, way: Way, when: When, most_moves: int) -> Moved:
    """Only the first stream of the first cache is defragmented. Raises ContextError if the history does not fit."""
    mirror = Mirror(geometry)
    cells = mirror.caches[0].streams[0]
    sequences = days.Sequences()
    moved, spans, runs = [], [], []
    for event in days.each_token(history):
        if when(cells, event):
            n = _defragment(mirror, way, most_moves)
            if n:
                moved.append(n)
        _follow(mirror, event, sequences)
        if isinstance(event, days.Wrote):
            spans.append(cells.n_kv)
        elif isinstance(event, days.Paused):
            stream = cells.freeze()
            runs += [1 + scatter(stream, seq_id) for seq_id in cells.sequences]
    return Moved(
        len(moved),
        sum(moved),
        max(moved, default=0),
        float(np.mean(spans)) if spans else 0.0,
        float(np.mean(runs)) if runs else 0.0,
    )


def _defragment(mirror: Mirror, way: Way, most_moves: int) -> int:
    """How many cells were moved."""
    cells = mirror.caches[0].streams[0]
    top = cells.high_water
    if way is Way.FILL:
        return move_cells(cells, plan_moves(cells.pos[:top] == -1, most_moves))
    layout = Layout.BY_CONVERSATION if way is Way.GROUPED else Layout.KEEP_ORDER
    plan = plan_compaction(mirror.snapshot(Verification("mirrored", 0)), layout)
    if plan.changes_nothing:
        return 0
    order = plan.streams[0].order
    source = np.flatnonzero(cells.pos[:top] != -1)[order]
    n_moved = int((source != np.arange(len(source))).sum())
    _put_in_front(cells, source)
    return len(source) if way is Way.IN_ORDER else n_moved


def _put_in_front(cells: StreamCells, source: Index) -> None:
    saved = cells.save(source)
    cells.free(source)
    target = np.arange(len(source), dtype=np.int64)
    cells.restore_cells(replace(saved, index=target))
    cells.head = 0


def _follow(mirror: Mirror, event: days.Event, sequences: days.Sequences) -> None:
    held = sequences.tokens
    match event:
        case days.Read(seq_id, tokens) | days.Wrote(seq_id, tokens) | days.Loaded(seq_id, tokens):
            n_batch, start = mirror.geometry.n_batch, len(held.get(seq_id, ()))
            for at in range(0, len(tokens), n_batch):
                part = [0] * len(tokens[at : at + n_batch])  # which token it is does not matter to a cell
                batch = Batch.of(seq_id, start + at, part)
                if mirror.decode(batch, 0).mismatch:
                    raise ContextError(
                        tr("The history does not fit into {n_cells:,} cells.").format(n_cells=mirror.geometry.n_cells)
                    )
        case days.Copied(source, target, n):
            mirror.seq_cp(source, target, len(held.get(target, ())), n)
        case days.Kept(seq_id, n):
            mirror.seq_rm(seq_id, n, -1)
        case days.Slid(seq_id, start, n):
            take_out(mirror, seq_id, [(start, start + n)])
        case days.Paused():
            pass
    sequences.follow(event)
