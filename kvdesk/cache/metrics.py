"""Numbers about a cache that follow from its cells alone: one definition each, in the docstring.

Pure functions on frozen views, vectorised. Must never know the engine or time; sizes of rows in bytes are passed in.
"""

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import SwaType, n_kv_of
from kvdesk.cache.memories.cells import masked_swa
from kvdesk.cache.seq_bits import seq_count, seq_has
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """All numbers of one stream; see the function of the same name for each definition."""

    capacity: int
    used: int
    high_water: int
    n_kv: int
    hole_ratio: float
    n_free_runs: int
    largest_free_run: int
    external_fragmentation: float
    n_shared: int
    sharing_factor: float


@dataclass(frozen=True, slots=True)
class SequenceMetrics:
    """Numbers of one sequence in one stream; see the function of the same name for each definition."""

    n_cells: int
    scatter: int
    position_holes: int
    position_duplicates: int
    wasted_span: int


def stream_metrics(cells: StreamMap) -> StreamMetrics:
    """All numbers of one stream."""
    largest = largest_free_run(cells)
    return StreamMetrics(
        capacity=cells.size,
        used=cells.used,
        high_water=cells.high_water,
        n_kv=n_kv(cells),
        hole_ratio=hole_ratio(cells),
        n_free_runs=len(free_runs(cells)),
        largest_free_run=largest,
        external_fragmentation=external_fragmentation(cells),
        n_shared=shared_cells(cells),
        sharing_factor=sharing_factor(cells),
    )


def sequence_metrics(cells: StreamMap, seq_id: int, n_swa: int = 0, swa_type: SwaType = "none") -> SequenceMetrics:
    """All numbers of one sequence in its stream."""
    return SequenceMetrics(
        n_cells=int(seq_has(cells.seq_bits, seq_id).sum()),
        scatter=scatter(cells, seq_id),
        position_holes=position_holes(cells, seq_id),
        position_duplicates=position_duplicates(cells, seq_id),
        wasted_span=wasted_span(cells, seq_id, n_swa, swa_type),
    )


def n_kv(cells: StreamMap) -> int:
    """min(N, max(256, H rounded up to 256)): the cells that attention walks over (llama-kv-cache.cpp:1260)."""
    return n_kv_of(cells.size, cells.high_water)


def snapshot_n_kv(snapshot: CacheSnapshot) -> int:
    """n_kv of a batch over all streams: the maximum over streams and caches."""
    return max((n_kv(stream) for cache in snapshot.maps for stream in cache.streams), default=0)


def hole_ratio(cells: StreamMap) -> float:
    """(H - U) / H, 0 when H is 0: the share of the span below the high-water mark that is free."""
    return (cells.high_water - cells.used) / cells.high_water if cells.high_water else 0.0


def free_runs(cells: StreamMap) -> NDArray[np.int64]:
    """Maximal intervals of free cells as rows [start, end), of shape (runs, 2), in index order."""
    runs = _runs(np.append(cells.pos == -1, len(cells.pos) < cells.size))
    runs[runs > len(cells.pos)] = cells.size
    return runs


def largest_free_run(cells: StreamMap) -> int:
    """Length of the longest maximal interval of free cells, 0 when full."""
    runs = free_runs(cells)
    return int((runs[:, 1] - runs[:, 0]).max()) if len(runs) else 0


def external_fragmentation(cells: StreamMap) -> float:
    """1 - largest free run / free cells, 0 when full. Informational: placement is cell by cell and needs no run."""
    free = cells.size - cells.used
    return 1.0 - largest_free_run(cells) / free if free else 0.0


def shared_cells(cells: StreamMap) -> int:
    """Cells with more than one sequence."""
    return int((seq_count(cells.seq_bits) > 1).sum())


def sharing_factor(cells: StreamMap) -> float:
    """Sum of sequences per used cell / U, 0 when empty: 1 means nothing is shared."""
    return float(seq_count(cells.seq_bits).sum()) / cells.used if cells.used else 0.0


def scatter(cells: StreamMap, seq_id: int) -> int:
    """Number of index runs of the sequence's cells - 1, 0 for an empty sequence."""
    return max(0, len(_runs(seq_has(cells.seq_bits, seq_id))) - 1)


def position_holes(cells: StreamMap, seq_id: int) -> int:
    """(max - min + 1) - distinct positions, 0 for an empty sequence."""
    pos = cells.pos[seq_has(cells.seq_bits, seq_id)]
    return int(pos.max()) - int(pos.min()) + 1 - len(np.unique(pos)) if len(pos) else 0


def position_duplicates(cells: StreamMap, seq_id: int) -> int:
    """Cells of the sequence - distinct positions."""
    pos = cells.pos[seq_has(cells.seq_bits, seq_id)]
    return len(pos) - len(np.unique(pos))


def wasted_span(cells: StreamMap, seq_id: int, n_swa: int = 0, swa_type: SwaType = "none") -> int:
    """n_kv - cells visible to the sequence at its next position (its own cells, those out of the window left out)."""
    mine = cells.pos[seq_has(cells.seq_bits, seq_id)]
    if not len(mine):
        return n_kv(cells)
    hidden = int(masked_swa(n_swa, swa_type, mine, int(mine.max()) + 1).sum())
    return n_kv(cells) - (len(mine) - hidden)


def _runs(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Maximal intervals of True as rows [start, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return edges.reshape(-1, 2)
