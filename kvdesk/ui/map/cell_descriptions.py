"""Descriptions in words of a cell and of a selection of cells. No Qt."""

from collections.abc import Mapping, Sequence

import numpy as np

from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.translation import plural, tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.map.frame import MapFrame, strip_name
from kvdesk.viewmodel.cells.attention import attention_at
from kvdesk.viewmodel.cells.links import CellRun, span_at
from kvdesk.viewmodel.cells.readout import describe_cell, owner, sequences_of

_NAMED = 3  # conversations that are named; the rest are counted


def cell_words(frame: MapFrame, strip: int, cell: int, texts: Mapping[int, str]) -> tuple[str, str]:
    """Two lines about a cell: where and what it is; its text, its owner, its message, and the meaning of its marks."""
    part = frame.strips[strip]
    stream, scene = part.stream, frame.scene
    more = []
    if cell < stream.high_water and stream.seq_bits[cell].any():
        for seq in sequences_of(stream, cell):
            known = scene.spans.get(seq)
            found = span_at(known, int(stream.pos[cell])) if known else None
            if known and found:
                more.append(tr("message {number} of {n}").format(number=found[0] + 1, n=len(known.spans)))
                parts, pos = scene.tools.get(seq, ()), int(stream.pos[cell])
                more += [tr("tools of {server}").format(server=name) for name, p0, p1 in parts if p0 <= pos < p1]
                break
        marks = int(part.layer(cell, cell + 1).marks[0])
        if marks & raster.HIDDEN:
            more.append(tr("out of the sliding window: overwritten next"))
        if marks & raster.SHIFTED:
            more.append(tr("K-shift pending"))
        if scene.mode is ColourBy.ATTENTION and scene.attention is not None:
            place = part.strip.map_index, part.strip.stream_index
            more += attention_at(scene.attention, *place, stream, cell)
        if scene.pages and part.strip.map_index < len(scene.pages):
            page = int(scene.pages[part.strip.map_index].page_of[part.strip.stream_index][cell])
            more.append(tr("page {page}").format(page=page) if page >= 0 else tr("no page yet"))
        if written_at_op := int(stream.written_at_op[cell]):
            more.append(tr("written {ago}").format(ago=_ago(frame.operation - written_at_op)))
    return describe_cell(stream, cell, part.strip.label, scene.titles, texts, more)


def selection_words(snapshot: CacheSnapshot, runs: Sequence[CellRun], titles: Mapping[int, str]) -> tuple[str, str]:
    """Two lines about selected cells: how many, where, their positions; and their owners."""
    n_cells = n_used = 0
    low, high = -1, -1
    owners: set[int] = set()
    where = []
    for run in runs:
        if run.cache >= len(snapshot.maps) or run.stream >= len(snapshot.maps[run.cache].streams):
            continue
        stream = snapshot.maps[run.cache].streams[run.stream]
        cells = run.cells[run.cells < stream.size]
        used = cells[cells < stream.high_water]
        used = used[np.any(stream.seq_bits[used], axis=1)]
        n_cells, n_used = n_cells + len(cells), n_used + len(used)
        if name := strip_name(snapshot.maps, run.cache, run.stream):
            where.append(name)
        if len(used):
            first, last = int(stream.pos[used].min()), int(stream.pos[used].max())
            low, high = (first if low < 0 else min(low, first)), max(high, last)
            bits = np.bitwise_or.reduce(stream.seq_bits[used], axis=0)
            owners |= {64 * w + b for w, word in enumerate(bits.tolist()) for b in range(64) if word >> b & 1}
    line = plural("1 cell selected", "%n cells selected", n_cells)
    if where:
        line += "  ·  " + (tr(" and ").join(where) if len(where) <= 2 else tr("{n} streams").format(n=len(where)))
    if high >= 0:
        line += (
            "  ·  " + tr("position {low}").format(low=f"{low:,}")
            if low == high
            else "  ·  " + tr("positions {low} to {high}").format(low=f"{low:,}", high=f"{high:,}")
        )
    if n_used < n_cells:
        line += "  ·  " + tr("{n} free").format(n=f"{n_cells - n_used:,}")
    names = [owner(titles, seq) for seq in sorted(owners)]
    more = [tr("and {n} more").format(n=len(names) - _NAMED)] if len(names) > _NAMED else []
    return line, tr(", ").join(names[:_NAMED] + more)


def _ago(operations: int) -> str:
    if operations <= 0:
        return tr("by the last operation")
    return plural("1 operation ago", "%n operations ago", operations)
