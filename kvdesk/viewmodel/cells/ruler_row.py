"""The values of a ruler: the positions that one sequence holds, their holes, and the next valid one. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.snapshot import SeqId, SequenceSpan
from kvdesk.quantities import cells_text
from kvdesk.translation import tr
from kvdesk.values import replace

_MOST_RANGES: Final = 6  # that are written


@dataclass(frozen=True, eq=False)
class RulerRow:
    """One sequence. `positions` are all positions it holds, in any order. Its `seq_id` is -1 if there is none.

    colour   `palette.branch_index`; None: no conversation leases it
    branch   its number where the conversation has several in the cache, else 0
    follows  the row above is of the same conversation: the title need not be said again
    """

    title: str
    colour: int | None
    span: SequenceSpan
    positions: NDArray[np.int32] = field(repr=False)
    conversation: str = ""
    branch: int = 0
    follows: bool = False

    def says_the_same(self, other: RulerRow) -> bool:
        """Whether nothing that is shown differs."""
        mine, theirs = ((one.name, one.colour, one.follows, one.span) for one in (self, other))
        return mine == theirs and np.array_equal(self.positions, other.positions)

    @property
    def name(self) -> str:
        """Title and sequence."""
        if not self.branch:
            return self.title
        return tr("{title}, sequence {seq_id}").format(title=self.title, seq_id=self.span.seq_id)

    @property
    def short_name(self) -> str:
        """The title of a row below another of the same conversation."""
        return tr("sequence {seq_id}").format(seq_id=self.span.seq_id) if self.follows else self.title

    @property
    def range_text(self) -> str:
        """The positions it holds; with holes between them each range, and how many positions that are."""
        if self.span.pos_max < 0:
            return tr("empty")
        if len(self.held) < 2:
            return f"{self.span.pos_min:,}–{self.span.pos_max:,}"
        ranges = [f"{start:,}–{stop - 1:,}" if stop - start > 1 else f"{start:,}" for start, stop in self.held]
        more = ", …" if len(ranges) > _MOST_RANGES else ""
        n = sum(stop - start for start, stop in self.held)
        return f"{', '.join(ranges[:_MOST_RANGES])}{more} ({n:,})"

    @property
    def next_text(self) -> str:
        """The next valid position: pos_max + 1."""
        return f"{self.span.pos_max + 1:,}"

    @cached_property
    def held(self) -> list[tuple[int, int]]:
        """Maximal runs of positions, as half-open intervals, rising."""
        return runs(self.positions)

    @property
    def holes(self) -> tuple[tuple[int, int], ...]:
        """Positions between the first and the last that are missing, as half-open intervals."""
        return tuple((a[1], b[0]) for a, b in pairwise(self.held))

    @property
    def tip(self) -> str:
        """Everything about it, in words."""
        holes = self.holes
        where_it_is = (
            tr("sequence {seq_id}").format(seq_id=self.span.seq_id) if self.span.seq_id >= 0 else tr("no sequence")
        )
        missing = sum(stop - start for start, stop in holes)
        where = ", ".join(f"[{start:,}, {stop:,})" for start, stop in holes[:4]) + (", …" if len(holes) > 4 else "")
        said = tr(
            "{name}\n{sequence}, {cells}, {shared} of them shared\n"
            "positions [{first}, {end}), {missing} missing between{where}\n"
            "next valid position {end}"
        )
        return said.format(
            name=self.name,
            sequence=where_it_is,
            cells=cells_text(self.span.n_cells),
            shared=f"{self.span.n_shared:,}",
            first=f"{max(self.span.pos_min, 0):,}",
            end=f"{self.span.pos_max + 1:,}",
            missing=f"{missing:,}",
            where=f": {where}" if holes else "",
        )


def empty_row(title: str, colour: int) -> RulerRow:
    """Of the conversation that is shown while it has no sequence: its first turn then changes no layout."""
    return RulerRow(title, colour, SequenceSpan(SeqId(-1), -1, -1, 0, 0), np.zeros(0, np.int32))


def together(rows: list[RulerRow]) -> list[RulerRow]:
    """Branches of a conversation below each other, in the order of their numbers; else by the lowest seq_id."""
    lowest: dict[str, int] = {}
    for row in rows:
        lowest.setdefault(row.conversation, row.span.seq_id)
    place = {row.span.seq_id: lowest[row.conversation] if row.conversation else row.span.seq_id for row in rows}
    ordered = sorted(rows, key=lambda row: (place[row.span.seq_id], row.branch))
    above = [-1, *(place[row.span.seq_id] for row in ordered)]
    return [replace(row, follows=before == place[row.span.seq_id]) for before, row in zip(above, ordered, strict=False)]


def runs(positions: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Maximal runs of positions as half-open intervals, rising."""
    if positions.size == 0:
        return []
    rising = np.sort(positions)
    breaks = np.flatnonzero(np.diff(rising) > 1)
    starts = np.concatenate((rising[:1], rising[breaks + 1]))
    stops = np.concatenate((rising[breaks], rising[-1:])) + 1
    return [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
