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
from kvdesk.cache.memories.cells import Index
from kvdesk.cache.metrics import n_kv, scatter
from kvdesk.cache.seq_bits import seq_has, seqs_in
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
    """One stream. `order[i]`: the rank, among the current used cells in index order, of the cell that will be at i.

    scatter  (sequence, runs of its cells - 1 before, after)
    """

    cache: str
    stream: int
    order: Index
    high_water_before: int
    high_water_after: int
    n_kv_before: int
    n_kv_after: int
    scatter: tuple[tuple[int, int, int], ...]

    @property
    def in_order(self) -> bool:
        """Whether the cells keep their order: their rows can be copied as one."""
        return bool((self.order[1:] > self.order[:-1]).all())


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


def plan_compaction(snapshot: CacheSnapshot, layout: Layout, hot: Sequence[int] = ()) -> CompactionPlan:
    """Plan it for the cache as it is now. Read-only.

    hot  order of sequences for HOT_FIRST; those not named follow, ascending
    """
    plans: list[StreamPlan] = []
    maps: list[CacheMap] = []
    for cache in snapshot.maps:
        streams = []
        for s, cells in enumerate(cache.streams):
            order = _order(cells, layout, hot)
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
    """The same state with the cells of every stream in the order of the plan: for llama_state_set_data. Read-only.

    Written to memory from `make_room`, which gets its size. If the plan is `in_order`, the blob itself is returned
    without copying. Each byte is copied once, recurrent states unchanged. Raises BlobError if the blob is not a state
    of the planned cells.
    """
    state = parse_state(blob, geometry)
    source = np.frombuffer(blob, dtype=np.uint8)
    planned = {(p.cache, p.stream): p for p in plan.streams}
    if [len(streams) for streams in state.caches] != [len(cache.streams) for cache in plan.after]:
        raise BlobError(tr("The saved state is not of the cache that was planned."))
    room = blob if plan.in_order else make_room(len(source))
    target = np.frombuffer(room, dtype=np.uint8)
    done = 0
    for cache, streams in zip(plan.after, state.caches, strict=True):
        for s, stored in enumerate(streams):
            stream_plan = planned[cache.name, s]
            _check(stored, stream_plan.order, cache.streams[s])
            if not stored.n_cells or stream_plan.in_order:
                continue  # copied with what lies between
            table = stored.table
            target[done : table.start] = source[done : table.start]
            _permute_table(source[table], target[table], stored.row_words(geometry), stream_plan.order)
            done = table.stop
            for section in stored.sections:
                target[done : section.offset] = source[done : section.offset]
                permute_section(source, target, section, stream_plan.order)
                done = section.offset + section.n_bytes
    if room is not blob:
        target[done:] = source[done:]
    return room


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
        order=order,
        high_water_before=before.high_water,
        high_water_after=after.high_water,
        n_kv_before=n_kv(before),
        n_kv_after=n_kv(after),
        scatter=tuple((s, scatter(before, s), scatter(after, s)) for s in seqs_in(before.seq_bits)),
    )


def _check(stored: StreamBlob, order: Index, after: StreamMap) -> None:
    if stored.n_cells != len(order) or not np.array_equal(stored.pos[order], after.pos[: len(order)]):
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
    """K or V of one layer, from one blob to another.

    `mode` is what keeps numpy from making a copy of the result first; the ranks are valid anyway.
    """
    if section.n_bytes:
        part, n = slice(section.offset, section.offset + section.n_bytes), len(order)
        before, after = section.items(source[part], n), section.items(target[part], n)
        np.take(before, order, axis=1, out=after, mode="clip")
