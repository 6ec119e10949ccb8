"""Plans compaction: where every used cell would go, and a state blob with its cells in that order.

llama.cpp has no defragmentation any more (removed in #15473). But a whole state that is restored goes to the front of
its stream in the order of the blob (llama-kv-cache.cpp:2468-2523), and shared cells stay shared. So compaction is get,
permute, set. Owns the order and the moving of bytes. Must never know the engine: the caller applies pending K-shifts
first (a blob does not carry them), and keeps the old blob until the new one is accepted.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.memories.cells import Index, masked_swa
from kvdesk.cache.metrics import n_kv, scatter
from kvdesk.cache.seq_bits import seq_count, seq_has, seqs_in
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, StreamMap
from kvdesk.cache.state.blob import Blob, BlobError, Section, StreamBlob, parse_state
from kvdesk.translation import tr
from kvdesk.values import dataclass


class Layout(StrEnum):
    """The order of cells after a compaction.

    KEEP_ORDER       the same order without gaps
    BY_CONVERSATION  the cells of one sequence after another; a shared cell goes with the first of its sequences
    HOT_FIRST        the same, in a given order of sequences: those that will be decoded soonest first

    Within a sequence, cells keep their order instead of being sorted by position. Attention sums cells in the order of
    their indices, and another order changes logits by rounding. With 4-bit weights, whose activations are rounded to 8
    bits, that was up to 1.0 in a logit and a KL divergence of 0.03, as much as between flash attention on and off. In
    index order, with flash attention on one thread, no logit changed.
    """

    KEEP_ORDER = "keep order"
    BY_CONVERSATION = "group by conversation"
    HOT_FIRST = "hot conversations first"


@dataclass(frozen=True, slots=True, eq=False)
class StreamPlan:
    """One stream. `order[i]`: the rank, among the current `n_used` cells in index order, of the cell that will be at i.

    scatter  (sequence, runs of its cells - 1 before, after)
    """

    cache: str
    stream: int
    n_used: int
    order: Index
    high_water_before: int
    high_water_after: int
    n_kv_before: int
    n_kv_after: int
    scatter: tuple[tuple[int, int, int], ...]

    @property
    def in_order(self) -> bool:
        """Whether all cells stay in their order: their rows can be copied as one."""
        return len(self.order) == self.n_used and bool((self.order[1:] > self.order[:-1]).all())


@dataclass(frozen=True, slots=True, eq=False)
class CompactionPlan:
    """The plan of a compaction. `after`: the maps then, heads 0; `bytes_to_move`: 2 x the state, if known."""

    layout: Layout
    streams: tuple[StreamPlan, ...]
    after: tuple[CacheMap, ...]
    n_kv_before: int
    n_kv_after: int
    bytes_to_move: int = 0

    @property
    def in_order(self) -> bool:
        """Whether the cells of every stream keep their order, so the state is restored as it is."""
        return all(s.in_order for s in self.streams)

    @property
    def changes_nothing(self) -> bool:
        """Whether every cell would stay in place."""
        return self.in_order and all(s.high_water_before == len(s.order) for s in self.streams)


def plan_compaction(
    snapshot: CacheSnapshot, layout: Layout, hot: Sequence[int] = (), *, drop_masked: bool = False
) -> CompactionPlan:
    """Plan it for the cache as it is now. Read-only.

    hot          order of sequences for HOT_FIRST; those not named follow, ascending
    drop_masked  leave out cells that no window sees any more. A restored state has its head at 0, so llama.cpp would
                 place the next tokens in them, before older ones (llama-kv-cache.cpp, `find_slot`)
    """
    plans: list[StreamPlan] = []
    maps: list[CacheMap] = []
    for cache in snapshot.maps:
        streams = []
        for s, cells in enumerate(cache.streams):
            order = _order(cells, layout, hot)
            if drop_masked and cache.n_swa:
                order = order[~_masked(cache, cells)[order]]
            after = _compacted(cells, order)
            streams.append(after)
            plans.append(_stream_plan(cache.name, s, order, cells, after))
        maps.append(CacheMap(cache.name, tuple(streams), cache.n_swa, cache.swa_type))
    return CompactionPlan(
        layout=layout,
        streams=tuple(plans),
        after=tuple(maps),
        n_kv_before=max((p.n_kv_before for p in plans), default=0),
        n_kv_after=max((p.n_kv_after for p in plans), default=0),
    )


def permute_blob(
    blob: Blob, plan: CompactionPlan, geometry: Geometry, *, make_room: Callable[[int], Blob] = bytearray
) -> Blob:
    """The same state with the cells of every stream that the plan has, in its order: for llama_state_set_data.
    Read-only.

    Written to memory from `make_room`, which gets its size. If the plan is `in_order`, the blob itself is returned
    without copying. Each byte is copied once, recurrent states unchanged. Raises BlobError if the blob is not a state
    of the planned cells.
    """
    state = parse_state(blob, geometry)
    source = np.frombuffer(blob, dtype=np.uint8)
    planned = {(p.cache, p.stream): p for p in plan.streams}
    if [len(streams) for streams in state.caches] != [len(cache.streams) for cache in plan.after]:
        raise BlobError(tr("The saved state is not of the cache that was planned."))
    parts = [
        (stored, planned[cache.name, s], cache.streams[s])
        for cache, streams in zip(plan.after, state.caches, strict=True)
        for s, stored in enumerate(streams)
    ]
    for part in parts:
        _check(*part)
    if plan.in_order:
        return blob
    moved = [(stored, planned.order) for stored, planned, _ in parts if not planned.in_order]
    room = make_room(len(source) - sum(_dropped_bytes(stored, order, geometry) for stored, order in moved))
    target = np.frombuffer(room, dtype=np.uint8)
    done = at = 0
    for stored, order in moved:
        cell_words, table = stored.row_words(geometry), stored.table
        at = _copy(source[done : table.start], target, at)
        target[at - 4 : at] = np.frombuffer(len(order).to_bytes(4, "little"), np.uint8)
        n_bytes = 4 * int(cell_words[order].sum())
        _permute_table(source[table], target[at : at + n_bytes], cell_words, order)
        done, at = table.stop, at + n_bytes
        for section in stored.sections:
            at = _copy(source[done : section.offset], target, at)
            done, n_bytes = section.offset + section.n_bytes, len(order) * section.row_bytes
            permute_section(source[section.offset : done], target[at : at + n_bytes], section, order)
            at += n_bytes
    _copy(source[done:], target, at)
    return room


def _copy(source: NDArray[np.uint8], target: NDArray[np.uint8], at: int) -> int:
    """Returns where it ends."""
    target[at : at + len(source)] = source
    return at + len(source)


def _dropped_bytes(stored: StreamBlob, order: Index, geometry: Geometry) -> int:
    words = stored.row_words(geometry)
    n_bytes = sum(section.row_bytes for section in stored.sections)
    return 4 * int(words.sum() - words[order].sum()) + n_bytes * (stored.n_cells - len(order))


def _masked(cache: CacheMap, cells: StreamMap) -> NDArray[np.bool_]:
    """Of the used cells, those that the next token of their only sequence does not see. The last cell of a sequence
    is none of them, even at the end of a chunk, because it holds the position after which the sequence continues.
    """
    used = np.flatnonzero(cells.pos != -1)
    pos, bits = cells.pos[used], cells.seq_bits[used]
    found = np.zeros(len(used), dtype=np.bool_)
    for s in seqs_in(bits):
        mine = seq_has(bits, s)
        last = int(pos[mine].max())
        found |= mine & masked_swa(cache.n_swa, cache.swa_type, pos, last + 1) & (pos < last)
    found &= seq_count(bits) == 1
    return found


def _order(cells: StreamMap, layout: Layout, hot: Sequence[int]) -> Index:
    used = np.flatnonzero(cells.pos != -1)
    if layout is Layout.KEEP_ORDER:
        return np.arange(len(used), dtype=np.int64)
    present = seqs_in(cells.seq_bits)
    first = [s for s in dict.fromkeys(hot) if s in present] if layout is Layout.HOT_FIRST else []
    ranked = first + [s for s in present if s not in first]
    rank = np.full(len(cells.pos), len(ranked), dtype=np.int64)  # cells without a sequence last
    for r, s in reversed(list(enumerate(ranked))):
        rank[seq_has(cells.seq_bits, s)] = r
    return np.argsort(rank[used], kind="stable")


def _compacted(cells: StreamMap, order: Index) -> StreamMap:
    kept = np.flatnonzero(cells.pos != -1)[order]
    columns = cells.pos[kept], cells.seq_bits[kept], cells.token[kept], cells.written_at_op[kept]
    return StreamMap.frozen(*columns, cells.size, 0, len(kept))


def _stream_plan(cache: str, stream: int, order: Index, before: StreamMap, after: StreamMap) -> StreamPlan:
    return StreamPlan(
        cache=cache,
        stream=stream,
        n_used=before.used,
        order=order,
        high_water_before=before.high_water,
        high_water_after=after.high_water,
        n_kv_before=n_kv(before),
        n_kv_after=n_kv(after),
        scatter=tuple((s, scatter(before, s), scatter(after, s)) for s in seqs_in(before.seq_bits)),
    )


def _check(stored: StreamBlob, plan: StreamPlan, after: StreamMap) -> None:
    if stored.n_cells != plan.n_used or not np.array_equal(stored.pos[plan.order], after.pos[: len(plan.order)]):
        raise BlobError(tr("The saved state is not of the cells that were planned."))


def _permute_table(
    source: NDArray[np.uint8], target: NDArray[np.uint8], cell_words: NDArray[np.int64], order: Index
) -> None:
    """Rows of different lengths, in words."""
    start = np.cumsum(cell_words) - cell_words
    taken = cell_words[order]
    gap = start[order] - (np.cumsum(taken) - taken)
    index = np.repeat(gap, taken) + np.arange(int(taken.sum()))
    np.take(source.view("V4"), index, out=target.view("V4"), mode="clip")


def permute_section(source: NDArray[np.uint8], target: NDArray[np.uint8], section: Section, order: Index) -> None:
    """K or V of one layer, from the bytes of one blob to those of another.

    `mode` is what keeps numpy from making a copy of the result first; the ranks are valid anyway.
    """
    if section.n_bytes:
        before = section.items(source, section.n_bytes // section.row_bytes)
        np.take(before, order, axis=1, out=section.items(target, len(order)), mode="clip")
