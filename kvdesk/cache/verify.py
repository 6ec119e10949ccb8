"""Compares the mirror with the engine: its log lines, its maps, its state blob, its spans of positions.

Pure functions: None if both sides agree, else the first `Difference`, with both sides in words. Must never know how the
engine is asked.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kvdesk.cache.dump import SlotDump, render_position_map, render_sequence_map
from kvdesk.cache.geometry import SwaType
from kvdesk.cache.memories.cells import masked_swa
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import FindSlotLine, SlotState, SpanLine
from kvdesk.cache.seq_bits import rows_of, seq_has, seq_members
from kvdesk.cache.snapshot import CacheMap, Columns, StreamMap
from kvdesk.cache.state.blob import StateBlob, StreamBlob
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Where mirror and engine differ. `cell` -1: not about one cell. Both sides are words for the user."""

    what: str
    mirror: str
    engine: str
    cache: str = ""
    stream: int = -1
    cell: int = -1

    def __str__(self) -> str:
        place = [self.cache and f"{self.cache} cache", self.stream >= 0 and f"stream {self.stream}"]
        place.append(self.cell >= 0 and f"cell {self.cell}")
        where = ", ".join(str(p) for p in place if p)
        return f"{self.what}{' (' + where + ')' if where else ''}: mirror says {self.mirror}, engine says {self.engine}"


def compare_lines(expected: Sequence[SlotState], dumps: Sequence[SlotDump]) -> Difference | None:
    """The level 1 lines of one call, in order; and the maps (level 2 and 3) where both sides have them."""
    for i, (state, dump) in enumerate(zip(expected, dumps, strict=False)):
        found = _compare_slot(state, dump, i)
        if found:
            return found
    if len(expected) != len(dumps):
        return Difference("number of slot searches", str(len(expected)), str(len(dumps)))
    return None


def compare_map(cache: CacheMap, stream: int, dump: SlotDump) -> Difference | None:
    """One stream, cell by cell, with the maps of a level 3 dump (level 2 for a window cache)."""
    cells = cache.streams[stream]
    if dump.sequence_map is None or dump.position_map is None:
        return Difference("the engine's maps", "expected", "not printed", cache.name, stream)
    found = _compare_text(render_position_map(cells), dump.position_map, cells, "position")
    found = found or _compare_text(render_sequence_map(cells), dump.sequence_map, cells, "sequence")
    if found:
        what, mirror, engine, cell = found
        return Difference(what, mirror, engine, cache.name, stream, cell)
    return None


def compare_blob(mirror: Mirror, blob: StateBlob) -> Difference | None:
    """Positions and sequences of every used cell in index order with a full state blob; recurrent states too."""
    for cache, streams in zip(mirror.caches, blob.caches, strict=True):
        for s, stored in enumerate(streams):
            found = _compare_cells(cache.streams[s].freeze(), stored, None, cache.name, s)
            if found:
                return found
    for s, stored in enumerate(blob.follower):
        found = _compare_cells(mirror.caches[0].streams[s].freeze(), stored, None, "indexer", s)
        if found:
            return found
    return _compare_states(mirror.states.in_order() if mirror.states else [], blob)


def compare_seq_blob(mirror: Mirror, seq_id: int, blob: StateBlob) -> Difference | None:
    """The cells of one sequence in index order with its state blob; a window cache leaves out masked cells."""
    for cache, streams in zip(mirror.caches, blob.caches, strict=True):
        for s, stored in enumerate(streams):
            keep = (seq_id, cache.n_swa, cache.swa_type, cache.seq_pos_max(seq_id))
            found = _compare_cells(cache.streams[s].freeze(), stored, keep, cache.name, s)
            if found:
                return found
    owned = mirror.states.in_order() if mirror.states else []
    return _compare_states([(pos, ()) for pos, seq_ids in owned if seq_id in seq_ids], blob)


def compare_spans(mirror: Mirror, pos_min: Callable[[int], int], pos_max: Callable[[int], int]) -> Difference | None:
    """llama_memory_seq_pos_min and _max of every sequence. Cheap enough for every operation."""
    for s in range(mirror.geometry.n_seq_max):
        ours, theirs = (mirror.seq_pos_min(s), mirror.seq_pos_max(s)), (pos_min(s), pos_max(s))
        if ours != theirs:
            return Difference(f"positions of sequence {s}", _span(ours), _span(theirs))
    return None


def _span(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]} to {bounds[1]}" if bounds[1] >= 0 or bounds[0] >= 0 else "none"


def _line_words(line: FindSlotLine) -> str:
    return f"n = {line.high_water}, used = {line.used}, head = {line.head}, size = {line.size}, n_swa = {line.n_swa}"


def _spans_words(spans: Sequence[SpanLine]) -> str:
    return "; ".join(f"sequence {s.seq_id} at {s.pos_min} to {s.pos_max}" for s in spans) or "no sequences"


def _compare_slot(state: SlotState, dump: SlotDump, i: int) -> Difference | None:
    stream = state.line.stream
    if state.line != dump.line:
        ours = f"stream {stream}, {_line_words(state.line)}"
        theirs = f"stream {dump.line.stream}, {_line_words(dump.line)}"
        return Difference(f"slot search {i}", ours, theirs, state.cache, stream)
    if state.spans != dump.spans:
        return Difference(f"slot search {i}", _spans_words(state.spans), _spans_words(dump.spans), state.cache, stream)
    if state.cells is not None and dump.position_map is not None:
        one = CacheMap(state.cache, (state.cells,), state.line.n_swa)
        found = compare_map(one, 0, dump)
        if found:
            return Difference(found.what, found.mirror, found.engine, state.cache, stream, found.cell)
    return None


def _compare_text(ours: str, theirs: str, cells: StreamMap, what: str) -> tuple[str, str, str, int] | None:
    """The first cell whose column differs. Up to there both texts are equal, so our own columns give its index."""
    if ours.rstrip("\n") == theirs.rstrip("\n"):
        return None
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    c = cells.columns(cells.size)
    cell = _cell_at(ours, at, c, what)
    width = 5 if what == "position" else 1
    mine = f"position {c.pos[cell]}" if c.pos[cell] != -1 else "free"
    if what == "sequence":
        mine = _members_words(seq_members(c.seq_bits[cell]))
    return f"{what} map", mine, repr(theirs[at : at + width].strip() or theirs[at : at + width]), cell


def _cell_at(text: str, at: int, cells: Columns, what: str) -> int:
    offset = 1  # the text starts with a line break
    for i in range(len(cells.pos)):
        if what == "position":
            offset += max(5, len(str(cells.pos[i]))) + (2 if i % 256 == 255 else 0) + (1 if i % 64 == 63 else 0)
        else:
            members = seq_members(cells.seq_bits[i])
            offset += (len(str(members[0])) if len(members) == 1 else 1) + (3 if i % 256 == 255 else 0)
        if at < min(offset, len(text)):
            return i
    return len(cells.pos) - 1


def _members_words(seq_ids: Sequence[int]) -> str:
    if not seq_ids:
        return "free"
    return ("sequence " if len(seq_ids) == 1 else "sequences ") + ", ".join(map(str, seq_ids))


def _compare_cells(
    cells: StreamMap, stored: StreamBlob, keep: tuple[int, int, SwaType, int] | None, cache: str, stream: int
) -> Difference | None:
    mask = cells.pos != -1
    if keep:
        seq_id, n_swa, swa_type, pos_max = keep
        mask &= seq_has(cells.seq_bits, seq_id)
        mask &= ~masked_swa(n_swa, swa_type, cells.pos, pos_max)
    index = np.flatnonzero(mask)
    ours = cells.pos[index]
    n = min(len(ours), stored.n_cells)
    wrong = np.flatnonzero(ours[:n] != stored.pos[:n])
    if len(wrong):
        i = int(wrong[0])
        what = f"position of used cell number {i}"
        return Difference(what, str(ours[i]), str(stored.pos[i]), cache, stream, int(index[i]))
    if len(ours) != stored.n_cells:
        return Difference("used cells", str(len(ours)), str(stored.n_cells), cache, stream)
    if keep:
        return None  # the blob of a sequence names no others
    n_words = cells.seq_bits.shape[1]
    fit = all(s < 64 * n_words for ids in set(stored.seq_ids) for s in ids)
    if fit and np.array_equal(cells.seq_bits[index], rows_of(stored.seq_ids, n_words)):
        return None
    same = None
    for cell, row, ids in zip(index.tolist(), cells.seq_bits[index].tolist(), stored.seq_ids, strict=True):
        if same == (row, ids):
            continue  # like the cell before it
        members, theirs = seq_members(cells.seq_bits[cell]), tuple(sorted(ids))
        if members != theirs:
            return Difference("sequences", _members_words(members), _members_words(theirs), cache, stream, cell)
        same = row, ids
    return None


def _compare_states(ours: Sequence[tuple[int, tuple[int, ...]]], blob: StateBlob) -> Difference | None:
    if list(ours) != list(blob.states):
        return Difference("recurrent states", str(list(ours)), str(list(blob.states)))
    return None
