"""The cells of a cache as one piece of HTML: nothing is loaded, no script runs, and every text is escaped.

Pure: a snapshot and calls in, HTML or text out. Neighbours in a row that belong to the same sequences are one
rectangle.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.metrics import largest_free_run, shared_cells
from kvdesk.cache.seq_bits import seq_members
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, StreamMap
from kvdesk.translation import plural, tr

_COLUMNS: Final = 64
_SIDE: Final = 8
"""Of a cell, in pixels."""
_MOST_ROWS: Final = 128
_MOST_CALLS: Final = 12
FIRST_HUE: Final = 205
"""Of sequence 0: blue, and 1 is rose, which nobody takes for the same."""
GOLDEN_ANGLE: Final = 137.508
"""Degrees between the colours of two sequences."""


def text_of(snapshot: CacheSnapshot, model: str) -> str:
    """What a terminal shows: the numbers of each stream."""
    numbers = [_numbers(cache, n, cells) for cache in snapshot.maps for n, cells in enumerate(cache.streams)]
    states = [_states(snapshot)] if snapshot.recurrent else []
    return "\n".join([f"{model} · {_state(snapshot)}", *numbers, *states])


def page(snapshot: CacheSnapshot, calls: Sequence[Operation], model: str) -> str:
    """A `<div>` that follows the colours of the page it is put into."""
    parts = [f"<p><b>{escape(model)}</b> · {escape(_state(snapshot))}</p>"]
    for cache in snapshot.maps:
        for number, cells in enumerate(cache.streams):
            parts.append(f"<p>{escape(_numbers(cache, number, cells))}</p>{_drawn(cells)}")
    if snapshot.recurrent:
        parts.append(f"<p>{escape(_states(snapshot))}</p>")
    if calls:
        rows = "".join(map(_row, calls[-_MOST_CALLS:]))
        parts.append(f"<table><caption>{escape(_caption(len(calls)))}</caption>{rows}</table>")
    return f'<div style="font-family:sans-serif">{"".join(parts)}</div>'


def _state(snapshot: CacheSnapshot) -> str:
    found = snapshot.verification
    if found.state == "mismatch":
        return tr("not followed after operation {n}: {detail}").format(n=found.operation, detail=found.detail)
    if found.state == "verified":
        return tr("operation {n}, verified with the engine's state").format(n=snapshot.operation)
    return tr("operation {n}, positions verified").format(n=snapshot.operation)


def _numbers(cache: CacheMap, number: int, cells: StreamMap) -> str:
    text = tr("{cache}, stream {n}: {used:,} of {size:,} cells used, {shared:,} shared, largest free run {run:,}")
    return text.format(
        cache=cache.name,
        n=number,
        used=cells.used,
        size=cells.size,
        shared=shared_cells(cells),
        run=largest_free_run(cells),
    )


def _states(snapshot: CacheSnapshot) -> str:
    spans = ", ".join(f"{span.seq_id} ({span.pos_max})" for span in snapshot.recurrent)
    return tr("Recurrent states of sequences, each with its last position: {spans}").format(spans=spans)


def _caption(n: int) -> str:
    return tr("The last {n} of {all:,} calls").format(n=min(n, _MOST_CALLS), all=n)


def _row(call: Operation) -> str:
    return f"<tr><td>{call.number}</td><td><code>{escape(call.call)}</code></td><td>{call.ms:.2f} ms</td></tr>"


def _drawn(cells: StreamMap) -> str:
    rows = min(_MOST_ROWS, -(-cells.size // _COLUMNS))
    size = f'width="{_COLUMNS * _SIDE}" height="{rows * _SIDE}"'
    frame = f'<rect {size} fill="none" stroke="currentColor" stroke-opacity="0.3"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{frame}{"".join(_rectangles(cells, rows))}</svg>'
    left = cells.size - rows * _COLUMNS
    if left <= 0:
        return svg
    more = plural("1 more cell is not drawn.", "%n more cells are not drawn.", left)
    return f"{svg}<p>{escape(more)}</p>"


def _rectangles(cells: StreamMap, rows: int) -> Iterator[str]:
    members = [seq_members(bits) for bits in cells.seq_bits[: rows * _COLUMNS]]
    for row in range(-(-len(members) // _COLUMNS)):
        places = range(row * _COLUMNS, min(len(members), (row + 1) * _COLUMNS))
        for owners, group in groupby(places, lambda cell: members[cell]):
            run = list(group)
            if not owners:
                continue
            x, width = run[0] % _COLUMNS * _SIDE, len(run) * _SIDE - 1
            colour = f"hsl({(FIRST_HUE + owners[0] * GOLDEN_ANGLE) % 360:.0f} 60% 55%)"
            outline = ' stroke="currentColor"' if len(owners) > 1 else ""
            place = f'x="{x}" y="{row * _SIDE}" width="{width}" height="{_SIDE - 1}"'
            yield f'<rect {place} fill="{colour}"{outline}><title>{escape(_title(cells, run, owners))}</title></rect>'


def _title(cells: StreamMap, run: Sequence[int], owners: Sequence[int]) -> str:
    pos = cells.pos[run]
    return tr("cells {first} to {last}: sequence {owners}, positions {p0} to {p1}").format(
        first=run[0], last=run[-1], owners=", ".join(map(str, owners)), p0=int(pos.min()), p1=int(pos.max())
    )
