"""The audit can fail: break one rule of the mirror at a time, and an audit must report it.

Each breakage is what a plausible misreading of the engine would do.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvdesk.backends.local.llama.model import Model
from kvdesk.cache import batch, geometry, mirror
from kvdesk.cache.batch import restored_ubatch
from kvdesk.cache.memories import attention, cells
from kvdesk.cache.memories.attention import AttentionCache, Undo
from kvdesk.cache.memories.cells import Index, StreamCells
from kvdesk.cache.memories.recurrent import RecurrentStates
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheMap
from kvdesk.experiments.benchmarks.audit import Audit
from kvdesk.settings import ContextSettings

N_OPERATIONS = 300
SEEDS = {"coupled_sequences_may_differ": 7, "keep_leaves_cells_shared": 2}
"""Walks that come across what is rare; 1 for the others."""
Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]
BREAKAGES: dict[str, tuple[str, str, Break]] = {}


def breakage(kind: str, layout: str) -> Callable[[Break], Break]:
    """`kind` of model; `layout` in words: unified or streams; small: a small window; odd: an n_ctx that needs padding;
    stops: half of the decodes are stopped in the middle; earlier: earlier states are kept.
    """

    def add(function: Break) -> Break:
        BREAKAGES[function.__name__] = (kind, layout, function)
        return function

    return add


# --- slot search and head -------------------------------------------------------------------------------------------


@breakage("iswa", "unified")
def head_never_returns_to_the_start(patch: Patch) -> None:
    patch.setattr(StreamCells, "search_start", lambda self, _n: 0 if self.head >= self.size else self.head)


@breakage("iswa", "unified small")
def search_always_from_the_start(patch: Patch) -> None:
    patch.setattr(StreamCells, "search_start", lambda _self, _n: 0)


@breakage("iswa", "unified small")
def search_does_not_wrap(patch: Patch) -> None:
    right = StreamCells.find_slot

    def find_slot(self: StreamCells, n_tokens: int, *rest: Any) -> tuple[Index | None, int]:
        found, tested = right(self, n_tokens, *rest)
        wrapped = found is not None and bool((np.diff(found) < 0).any())
        return (None, tested) if wrapped else (found, tested)

    patch.setattr(StreamCells, "find_slot", find_slot)


@breakage("attention", "unified")
def head_stays_when_cells_are_freed(patch: Patch) -> None:
    patch.setattr(StreamCells, "_lower_head", lambda _self, _freed: None)


@breakage("attention", "streams")
def rollback_restores_the_right_head(patch: Patch) -> None:
    def head(_self: AttentionCache, undo: Undo, i: int) -> int:
        return undo.heads[undo.slot.streams[i]]

    patch.setattr(AttentionCache, "_head_after_undo", head)


# --- splits and checks ----------------------------------------------------------------------------------------------


@breakage("attention", "unified")
def ubatches_are_one_longer(patch: Patch) -> None:
    patch.setattr(mirror, "split_simple", lambda b, n: batch.split_simple(b, n + 1))


@breakage("attention", "streams")
def streams_split_in_any_order(patch: Patch) -> None:
    patch.setattr(mirror, "split_equal", lambda b, n, **_: batch.split_equal(b, n, sequential=False))


@breakage("attention", "streams")
def streams_split_simply(patch: Patch) -> None:
    patch.setattr(mirror, "split_equal", lambda b, n, **_: batch.split_simple(b, n))


@breakage("iswa", "unified")
def no_second_way_to_split(patch: Patch) -> None:
    def splits(self: Mirror, b: batch.Batch) -> Any:
        yield batch.split_simple(b, self.geometry.n_ubatch)

    patch.setattr(Mirror, "_splits", splits)


@breakage("attention", "unified")
def positions_need_not_follow(patch: Patch) -> None:
    patch.setattr(batch, "_check_positions", lambda *_: None)


@breakage("attention", "unified")
def coupled_sequences_may_differ(patch: Patch) -> None:
    patch.setattr(batch, "_check_coupled", lambda *_: None)


@breakage("attention", "unified stops")
def owner_of_a_shared_token_is_the_lowest(patch: Patch) -> None:
    patch.setattr(batch, "engine_order", lambda ids: tuple(sorted(set(ids))))


# --- windows --------------------------------------------------------------------------------------------------------


@breakage("iswa", "unified small")
def nothing_is_purged(patch: Patch) -> None:
    patch.setattr(AttentionCache, "_purge", lambda *_: np.empty(0, dtype=np.int64))


@breakage("iswa", "unified small")
def window_is_one_longer(patch: Patch) -> None:
    right = cells.masked_swa
    patch.setattr(cells, "masked_swa", lambda n_swa, swa_type, p0, p1: right(n_swa + 1, swa_type, p0, p1))


@breakage("iswa", "unified small")
def shared_window_cells_may_be_replaced(patch: Patch) -> None:
    def usable(self: StreamCells, at: int, end: int, n_swa: int, swa_type: geometry.SwaType) -> Any:
        pos, bits = self.pos[at:end], self.bits[at:end]
        mask = pos == -1
        for s in self.sequences if swa_type != "none" else []:
            mine = (bits & self.rows(((s,),))[0]).any(axis=1)
            mask |= mine & cells.masked_swa(n_swa, swa_type, pos, self.seq_pos_max(s) + 1)
        return mask

    patch.setattr(StreamCells, "_usable", usable)


@breakage("iswa", "streams small")
def window_cache_without_room_for_an_ubatch(patch: Patch) -> None:
    def window_cells(n_cells: int, n_swa: int, n_seq_max: int, *_: Any) -> int:
        return geometry.pad(min(n_cells, n_swa * n_seq_max), 64)

    patch.setattr(geometry, "window_cells", window_cells)


@breakage("iswa", "unified")
def positions_are_those_of_the_base_cache(patch: Patch) -> None:
    patch.setattr(Mirror, "seq_pos_min", lambda self, s: self.caches[0].seq_pos_min(s))


# --- operations on sequences ----------------------------------------------------------------------------------------


@breakage("attention", "odd unified")
def context_is_padded_to_32(patch: Patch) -> None:
    patch.setattr(geometry, "context_sizes", lambda n_ctx, *_: (geometry.pad(n_ctx, 32),) * 2)


@breakage("attention", "unified")
def shared_cells_do_not_shift(patch: Patch) -> None:
    right = StreamCells.seq_has

    def seq_add(self: StreamCells, *args: Any) -> Any:
        shared = np.bitwise_count(self.bits[: self.high_water]).sum(axis=1) > 1
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(StreamCells, "seq_has", lambda me, s: right(me, s) & ~shared)
            return right_add(self, *args)

    right_add = StreamCells.seq_add
    patch.setattr(StreamCells, "seq_add", seq_add)


@breakage("attention", "unified")
def shift_leaves_the_head(patch: Patch) -> None:
    right = StreamCells.seq_add

    def seq_add(self: StreamCells, *args: Any) -> Any:
        head = self.head
        freed = right(self, *args)
        self.head = head
        return freed

    patch.setattr(StreamCells, "seq_add", seq_add)


@breakage("attention", "unified")
def keep_leaves_cells_shared(patch: Patch) -> None:
    def seq_keep(self: StreamCells, seq_id: int) -> None:
        freed = np.flatnonzero(~self.seq_has(seq_id) & (self.pos[: self.high_water] != -1))
        if len(freed):
            self.free(freed)
            self._lower_head(freed)

    patch.setattr(StreamCells, "seq_keep", seq_keep)


@breakage("attention", "streams")
def copy_to_a_stream_leaves_its_head(patch: Patch) -> None:
    right = StreamCells.copy_from

    def copy_from(self: StreamCells, *args: Any) -> None:
        head = self.head
        right(self, *args)
        self.head = head

    patch.setattr(StreamCells, "copy_from", copy_from)


@breakage("attention", "streams")
def copy_to_a_stream_packs_the_cells(patch: Patch) -> None:
    def copy_from(self: StreamCells, other: StreamCells, src: int, dst: int) -> None:
        self.reset()
        index = np.flatnonzero(other.seq_has(src))
        if len(index):
            packed = np.arange(len(index))
            self.place(packed, other.pos[index], [(dst,)] * len(index), other.token[index], other.written_at_op[index])
        self.head = other.head

    patch.setattr(StreamCells, "copy_from", copy_from)


@breakage("hybrid", "unified")
def part_of_a_state_can_be_removed(patch: Patch) -> None:
    right = RecurrentStates.seq_rm
    patch.setattr(RecurrentStates, "seq_rm", lambda self, *args: right(self, *args) or True)


@breakage("hybrid", "unified earlier")
def last_tokens_are_cut_apart(patch: Patch) -> None:
    def split(b: batch.Batch, n: int, *, sequential: bool, n_rs_seq: int = 0) -> Any:  # noqa: ARG001 - the rule's own
        return batch.split_equal(b, n, sequential=sequential)

    patch.setattr(mirror, "split_equal", split)


@breakage("hybrid", "unified earlier")
def states_never_go_back(patch: Patch) -> None:
    patch.setattr(RecurrentStates, "_go_back", lambda *_: False)


@breakage("hybrid", "unified")
def hybrid_positions_are_those_of_attention(patch: Patch) -> None:
    patch.setattr(Mirror, "seq_pos_max", lambda self, s: self.caches[0].seq_pos_max(s))


# --- state and stops ------------------------------------------------------------------------------------------------


@breakage("attention", "unified")
def restore_puts_cells_in_order_of_position(patch: Patch) -> None:
    right = AttentionCache.restore

    def restore(self: AttentionCache, streams: Any, written_at_op: int, known: CacheMap | None = None) -> bool:
        ok = right(self, streams, written_at_op, known)
        for stream in self.streams:
            top = stream.high_water
            order = np.argsort(stream.pos[:top], kind="stable")
            stream.pos[:top], stream.bits[:top] = stream.pos[order], stream.bits[order]
        return ok

    patch.setattr(AttentionCache, "restore", restore)


@breakage("attention", "unified")
def restore_leaves_the_head_behind_the_cells(patch: Patch) -> None:
    right = AttentionCache.restore

    def restore(self: AttentionCache, streams: Any, written_at_op: int, known: CacheMap | None = None) -> bool:
        ok = right(self, streams, written_at_op, known)
        for stream in self.streams:
            stream.head = stream.used
        return ok

    patch.setattr(AttentionCache, "restore", restore)


@breakage("attention", "unified")
def restored_sequence_is_added_to_the_old_one(patch: Patch) -> None:
    def restore(self: AttentionCache, seq_id: int, positions: Any, tokens: Any, written_at_op: int) -> bool:
        ubatch = restored_ubatch(seq_id, positions, tokens)
        slot = self.find_slot(ubatch)
        if slot:
            self.apply_ubatch(slot, ubatch, written_at_op)
        return slot is not None

    patch.setattr(AttentionCache, "restore_seq", restore)


@breakage("attention", "unified stops")
def stopped_ubatch_stays(patch: Patch) -> None:
    whole = Mirror._stopped

    def stopped(self: Mirror, *rest: Any) -> Any:
        with patch.context() as meanwhile:
            meanwhile.setattr(Mirror, "_seq_rm", lambda *_: None)
            return whole(self, *rest)

    patch.setattr(Mirror, "_stopped", stopped)


@breakage("attention", "unified")
def head_stays_in_front_of_new_cells(patch: Patch) -> None:
    right = AttentionCache.apply_ubatch

    def apply_ubatch(self: AttentionCache, slot: attention.Slot, *args: Any) -> Any:
        done = right(self, slot, *args)
        for s, found in zip(slot.streams, slot.cells, strict=True):
            self.streams[s].head = int(found[0])
        return done

    patch.setattr(AttentionCache, "apply_ubatch", apply_ubatch)


def settings_of(layout: str) -> ContextSettings:
    small, odd, streams = "small" in layout, "odd" in layout, "streams" in layout
    return ContextSettings(
        n_ctx=200 if odd else (2048 if streams else 512) if small else (1024 if streams else 256),
        n_seq_max=4,
        n_batch=96,
        n_ubatch=32,
        kv_unified=not streams,
        swa_full=not small,
        n_rs_seq=6 if "earlier" in layout else 0,
        n_threads=1,
        n_threads_batch=1,
    )


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakage_is_found(name: str, models: dict[str, Path], monkeypatch: Patch) -> None:
    kind, layout, apply = BREAKAGES[name]
    apply(monkeypatch)
    model = Model(models[kind])
    audit = Audit(model, settings_of(layout), SEEDS.get(name, 1), stop_rate=0.5 if "stops" in layout else 0.06)
    while audit.tally.ops < N_OPERATIONS and not audit.tally.mismatches:
        audit.step()
    audit.close()
    model.close()
    assert audit.tally.mismatches
    assert json.loads(audit.tally.report)["operations"] if audit.tally.report else audit.tally.first
