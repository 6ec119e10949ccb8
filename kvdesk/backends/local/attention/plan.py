"""Which cells of a live sequence a second context gets, and which tokens it decodes again. Pure: maps in, plan out.

A token sees the cells before it. Those are copied. If the state of a sequence lacks some of them (a window that has
moved on, a recurrent part), the text in front is read again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.attention_weights import AttentionColumns
from kvdesk.cache.geometry import Geometry
from kvdesk.cache.memories.cells import masked_swa
from kvdesk.cache.seq_bits import seq_has
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot
from kvdesk.cache.state.excerpt import Choice
from kvdesk.errors import UserError
from kvdesk.protocol.attention import Queries
from kvdesk.translation import tr
from kvdesk.values import dataclass

_Index = NDArray[np.int64]


class Run(NamedTuple):
    """Tokens at successive positions, the first at `p0`."""

    p0: int
    tokens: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class SavedCells:
    """The sequence's cells of one cache that a saved state contains, by index. rank: of each, among all cells of its
    stream in the state.
    """

    cache: CacheMap
    index: _Index
    pos: NDArray[np.int32]
    rank: _Index

    def hidden(self, pos: NDArray[np.int32], at: int) -> NDArray[np.bool_]:
        """Which positions have left the window of a token at position `at`."""
        return masked_swa(self.cache.n_swa, self.cache.swa_type if self.cache.n_swa else "none", pos, at)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionPlan:
    """How `queries` are answered.

    runs     the tokens asked for
    columns  the cells that they may look at
    copied   the cells of each cache that are copied from the state; (): the text is read again instead
    whole    the state is of the whole context, else of the sequence alone
    before   text in front of the first run that is read again, from position `start` on
    """

    queries: Queries
    runs: tuple[Run, ...]
    columns: AttentionColumns
    copied: tuple[SavedCells, ...]
    whole: bool
    before: list[int]
    start: int

    @property
    def n_queries(self) -> int:
        return sum(len(run.tokens) for run in self.runs)

    @property
    def n_rows(self) -> int:
        return self.n_queries if self.queries.each else 1

    @property
    def pos(self) -> NDArray[np.int32]:
        """Positions of the tokens asked for."""
        return np.concatenate([np.arange(run.p0, run.p0 + len(run.tokens), dtype=np.int32) for run in self.runs])

    @property
    def n_cells(self) -> int:
        """Cells that the second context needs."""
        if not self.copied:
            return len(self.before) + self.n_queries
        last = self.runs[-1]
        return max(int((cells.pos < last.p0).sum()) for cells in self.copied) + len(last.tokens)

    def choices(self, run: Run, *, jumps: bool) -> list[Choice]:
        """The copied cells of each cache before the run. `jumps`: llama.cpp accepts a gap before a token (M-RoPE).
        Otherwise it refuses one (llama-batch.cpp:331), so the last cell before a gap gets the position at its end. K
        stays rotated for its own position and the mask stays the same, so the result is not affected. Raises UserError
        if it is.
        """
        return [_choice(cells, run, jumps=jumps) for cells in self.copied]

    def column_of(self, cache: int, cells: _Index) -> _Index:
        """The columns of these cells of a live cache, -1 for those in front of the first column."""
        known = self.columns.cells[cache]
        order = np.argsort(known, kind="stable")
        at = np.searchsorted(known[order], cells)
        at = np.minimum(at, len(order) - 1)
        found = order[at]
        return np.where(known[found] == cells, found, -1)

    def column_at(self, pos: NDArray[np.int32]) -> _Index:
        """The columns at these positions, the first of several; -1: no column."""
        known = self.columns.pos
        at = np.minimum(np.searchsorted(known, pos), len(known) - 1)
        return np.where(known[at] == pos, at, -1)


def plan_attention(snapshot: CacheSnapshot, geometry: Geometry, queries: Queries) -> AttentionPlan:
    """Plan it for the cache as it is now.

    Raises UserError if no such token exists, or if the text must be read again but is not in the cache.
    """
    every = [_of_sequence(cache, queries.seq_id, geometry) for cache in snapshot.maps]
    base = every[0]
    if not len(base.pos):
        raise UserError(tr("Sequence {seq_id} holds no cell.").format(seq_id=queries.seq_id))
    stream = base.cache.streams[_stream(queries.seq_id, geometry)]
    order = np.argsort(base.pos, kind="stable")
    pos, token = base.pos[order], stream.token[base.index[order]]
    last = int(pos[-1])
    p0 = last if queries.p0 < 0 else queries.p0
    p1 = last + 1 if queries.p1 < 0 or queries.p0 < 0 else min(queries.p1, last + 1)
    runs = _runs(pos, token, p0, p1)
    saved, whole, before = _copied(every, runs, last), False, list[int]()
    if geometry.facts.has_state:
        saved = ()
    elif not saved:
        saved, whole = _copied_whole(every, runs, geometry, queries.seq_id), True
    if not saved:
        before = _all_before(pos, token, runs)
    shown = order[(pos < p1) & (pos >= queries.first)]
    columns = AttentionColumns(
        pos=base.pos[shown],
        token=stream.token[base.index[shown]],
        cells=tuple(_cells_at(cells, base.pos[shown]) for cells in every),
        stream=_stream(queries.seq_id, geometry),
    )
    if not len(shown):
        raise UserError(tr("No cell is at position {first:,} or behind it.").format(first=queries.first))
    return AttentionPlan(queries, runs, columns, saved, whole, before, int(pos[0]))


def plan_text(tokens: Sequence[int], n_last: int) -> AttentionPlan:
    """Plan it for the last `n_last` tokens of a text that is in no cache: the others are read. Raises UserError."""
    n = len(tokens)
    if not n:
        raise UserError(tr("The text has no token."))
    cells = np.arange(n, dtype=np.int32)
    columns = AttentionColumns(cells, np.array(tokens, np.int32), (cells, cells), 0)
    p0 = max(0, n - n_last)
    queries = Queries(0, p0=p0, each=True)
    return AttentionPlan(queries, (Run(p0, list(tokens[p0:])),), columns, (), False, list(tokens[:p0]), 0)


def _stream(seq_id: int, geometry: Geometry) -> int:
    return seq_id if geometry.n_stream > 1 else 0


def _of_sequence(cache: CacheMap, seq_id: int, geometry: Geometry) -> SavedCells:
    if not 0 <= seq_id < geometry.n_seq_max:
        raise UserError(
            tr("Sequence {seq_id} does not exist: this context has sequences 0 to {last}.").format(
                seq_id=seq_id, last=geometry.n_seq_max - 1
            )
        )
    stream = cache.streams[_stream(seq_id, geometry)]
    index = np.flatnonzero((stream.pos >= 0) & seq_has(stream.seq_bits, seq_id))
    return SavedCells(cache, index, stream.pos[index], np.arange(len(index)))


def _copied(every: Sequence[SavedCells], runs: Sequence[Run], last: int) -> tuple[SavedCells, ...]:
    """What llama_state_seq_get_data contains: no cells that have left the window at the sequence's last position
    (llama-kv-cache.cpp:2084). () if a token of the runs saw more than that.
    """
    kept = []
    for cells in every:
        stays = ~cells.hidden(cells.pos, last)
        n = int(stays.sum())
        kept.append(SavedCells(cells.cache, cells.index[stays], cells.pos[stays], np.arange(n)))
    return tuple(kept) if _hold_all(kept, every[0].pos, runs) else ()


def _copied_whole(
    every: Sequence[SavedCells], runs: Sequence[Run], geometry: Geometry, seq_id: int
) -> tuple[SavedCells, ...]:
    """What llama_state_get_data contains: every cell. () if the window has been overwritten."""
    if not _hold_all(every, every[0].pos, runs):
        return ()
    streams = [cells.cache.streams[_stream(seq_id, geometry)] for cells in every]
    return tuple(
        SavedCells(cells.cache, cells.index, cells.pos, np.searchsorted(np.flatnonzero(one.pos >= 0), cells.index))
        for cells, one in zip(every, streams, strict=True)
    )


def _runs(pos: NDArray[np.int32], token: NDArray[np.int32], p0: int, p1: int) -> tuple[Run, ...]:
    asked = (pos >= p0) & (pos < p1)
    pos, token = pos[asked], token[asked]
    if not len(pos):
        raise UserError(tr("The sequence holds no token at these positions."))
    if (np.diff(pos) == 0).any():
        raise UserError(tr("Two cells have the same position: which token is meant cannot be said."))
    if (token < 0).any():
        raise UserError(tr("Which token lies in one of these cells is not known, so it cannot be decoded again."))
    starts = np.flatnonzero(np.diff(pos, prepend=pos[0] - 2) != 1)
    parts = zip(np.split(pos, starts[1:]), np.split(token, starts[1:]), strict=True)
    return tuple(Run(int(at[0]), ids.tolist()) for at, ids in parts)


def _hold_all(kept: Sequence[SavedCells], pos: NDArray[np.int32], runs: Sequence[Run]) -> bool:
    """Whether each cache has everything that the first token of each run sees; later tokens see less of it."""
    for cells in kept[1:]:
        for run in runs:
            seen = pos[pos < run.p0]
            if not np.isin(seen[~cells.hidden(seen, run.p0)], cells.pos).all():
                return False
    return True


def _all_before(pos: NDArray[np.int32], token: NDArray[np.int32], runs: tuple[Run, ...]) -> list[int]:
    """The tokens in front of the first run. Raises UserError if any is missing, up to the last run's end."""
    end = runs[-1].p0 + len(runs[-1].tokens)
    pos, token = pos[pos < end], token[pos < end]
    if (np.diff(pos) != 1).any() or (token < 0).any():
        raise UserError(
            tr("The text in front would have to be read again, and a part of it was removed from the cache.")
        )
    return [int(t) for t in token[pos < runs[0].p0]]


def _cells_at(cells: SavedCells, pos: NDArray[np.int32]) -> NDArray[np.int32]:
    """The cells of a cache at these ascending positions, in index order where a position has several; -1 if it has
    none.
    """
    order = np.argsort(cells.pos, kind="stable")
    known, index = cells.pos[order], cells.index[order]
    rank = np.arange(len(pos)) - np.searchsorted(pos, pos)
    at = np.searchsorted(known, pos) + rank
    inside = at < len(known)
    at = np.where(inside, at, 0)
    if not len(known):
        return np.full(len(pos), -1, np.int32)
    return np.where(inside & (known[at] == pos), index[at], -1).astype(np.int32)


def _choice(cells: SavedCells, run: Run, *, jumps: bool) -> Choice:
    before = cells.pos < run.p0
    rank, pos = cells.rank[before], cells.pos[before]
    if not len(pos) or jumps or pos.max() == run.p0 - 1:
        return rank, pos
    at = int(pos.argmax())
    ends = np.array([pos[at], run.p0 - 1], np.int32)
    for asked in range(run.p0, run.p0 + len(run.tokens)):
        was, will_be = cells.hidden(ends, asked)
        if was != will_be:
            raise UserError(tr("So much was removed in front of this token that its window cannot be copied."))
    pos = pos.copy()
    pos[at] = ends[1]
    return rank, pos
