"""What llama.cpp's own cells were like during a recording: holes, runs, and the cells that attention walks over."""

import numpy as np

from kvdesk.cache.flat import Flat
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.metrics import free_runs, hole_ratio, n_kv, scatter
from kvdesk.cache.seq_bits import seqs_in
from kvdesk.cache.snapshot import StreamMap
from kvdesk.values import dataclass

MOST_LOOKS = 1000
"""Moments of a recording that are looked at, evenly apart."""


@dataclass(frozen=True, slots=True)
class LiveCells:
    """Of the first cache, all its streams together; means over the moments with a cell in use.

    holes      share of the cells below the high-water mark that is free
    unread     share of the cells that attention walks over (n_kv) that holds nothing
    free_runs  intervals of free cells; runs: intervals of cells of one sequence
    most_high_water  at most at a time
    """

    holes: float
    unread: float
    free_runs: float
    runs: float
    most_high_water: int


def live_cells(recording: Recording) -> LiveCells:
    """All zeros without operations."""
    flat = Flat(recording.shape)
    flat.apply(recording.base())
    every = max(1, len(recording) // MOST_LOOKS)
    rows = []
    for i, (_, patch) in enumerate(recording.patches()):
        flat.apply(patch)
        if i % every == 0 or i == len(recording) - 1:
            streams = [stream for stream in flat.maps()[0].streams if stream.used]
            if streams:
                rows.append(_row(streams))
    if not rows:
        return LiveCells(0.0, 0.0, 0.0, 0.0, 0)
    table = np.array(rows)
    holes, unread, free, runs = table[:, :4].mean(axis=0).tolist()
    return LiveCells(holes, unread, free, runs, int(table[:, 4].max()))


def _row(streams: list[StreamMap]) -> tuple[float, ...]:
    used, walked = sum(s.used for s in streams), sum(n_kv(s) for s in streams)
    runs = [1 + scatter(s, seq_id) for s in streams for seq_id in seqs_in(s.seq_bits)]
    return (
        sum(hole_ratio(s) for s in streams) / len(streams),
        1 - used / walked,
        float(sum(len(free_runs(s)) for s in streams)),
        sum(runs) / len(runs) if runs else 0.0,
        float(sum(s.high_water for s in streams)),
    )
