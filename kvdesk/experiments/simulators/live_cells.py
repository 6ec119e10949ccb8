"""What llama.cpp's own cells were like during a recording: holes and runs."""

from statistics import fmean

from kvdesk.cache.flat import Flat
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.metrics import hole_ratio, scatter
from kvdesk.cache.seq_bits import seqs_in
from kvdesk.cache.snapshot import StreamMap
from kvdesk.values import dataclass

MOST_LOOKS = 1000
"""Moments of a recording that are looked at, evenly apart."""


@dataclass(frozen=True, slots=True)
class LiveCells:
    """Of the first cache, all its streams together; means over the moments with a cell in use.

    holes  share of the cells below the high-water mark that is free
    runs   intervals of cells of one sequence
    most_high_water  at most at a time
    """

    holes: float = 0.0
    runs: float = 0.0
    most_high_water: int = 0


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
        return LiveCells()
    holes, runs, high_water = zip(*rows, strict=True)
    return LiveCells(fmean(holes), fmean(runs), max(high_water))


def _row(streams: list[StreamMap]) -> tuple[float, float, int]:
    runs = [1 + scatter(s, seq_id) for s in streams for seq_id in seqs_in(s.seq_bits)]
    return fmean(map(hole_ratio, streams)), fmean(runs or [0]), sum(s.high_water for s in streams)
