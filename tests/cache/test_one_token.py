"""The short way for one token does what the general way does, cell by cell and line by line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, model_facts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord
from kvdesk.cache.snapshot import Verification

SHAPES = {
    "unified": (0, ContextParams(n_ctx=256, n_seq_max=3, n_batch=64, n_ubatch=32, kv_unified=True)),
    "streams": (0, ContextParams(n_ctx=768, n_seq_max=3, n_batch=64, n_ubatch=32)),
    "window": (8, ContextParams(n_ctx=512, n_seq_max=3, n_batch=64, n_ubatch=32, kv_unified=True, swa_full=False)),
}
STEP = st.tuples(st.sampled_from(["one", "one", "one", "many", "rm", "cp"]), st.integers(0, 2), st.integers(1, 40))


def state(mirror: Mirror) -> list[object]:
    snapshot = mirror.snapshot(Verification("verified", 0))
    found: list[object] = [snapshot.sequences, snapshot.n_kv]
    for cells in (s for m in snapshot.maps for s in m.streams):
        found += [cells.pos.tolist(), cells.seq_bits.tolist(), cells.token.tolist(), cells.born.tolist()]
        found += [cells.head, cells.used, cells.high_water]
    return found


def flat(record: DecodeRecord) -> object:
    """A record without its arrays."""
    places = [
        (p.cache, p.stream, p.cells.tolist(), p.overwritten.tolist(), p.purged.tolist(), p.n_tested)
        for u in record.ubatches
        for p in u.placements
    ]
    ubatches = [(u.index.tolist(), u.n_kv, len(u.slots)) for u in record.ubatches]
    slots = [(s.cache, s.line, s.spans) for s in record.slots]
    return record.operation, record.rc, record.expected_rc, record.n_kv, record.mismatch, places, ubatches, slots


@settings(max_examples=60)
@given(st.sampled_from(sorted(SHAPES)), st.lists(STEP, max_size=60))
def test_both_ways_agree(shape: str, steps: list[tuple[str, int, int]]) -> None:
    n_swa, params = SHAPES[shape]
    patch = pytest.MonkeyPatch()
    facts = model_facts("llama", n_swa, False, False, 0)
    short, general = Mirror(plan(facts, params)), Mirror(plan(facts, params))
    patch.setattr(general, "_decode_one", lambda _batch: None)
    for kind, seq_id, n in steps:
        if kind in ("one", "many"):
            n = 1 if kind == "one" else n
            first = general.seq_pos_max(seq_id) + 1
            batch = Batch(list(range(n)), range(first, first + n), [(seq_id,)] * n, [True] * n)
            rc = general.predict(batch)
            assert flat(short.decode(batch, rc)) == flat(general.decode(batch, rc))
        else:
            for mirror in (short, general):
                if kind == "rm":
                    mirror.seq_rm(seq_id, n, -1)
                elif shape != "streams":
                    mirror.seq_cp(seq_id, (seq_id + 1) % 3, -1, -1)
        assert state(short) == state(general)


def test_the_short_way_is_taken() -> None:
    facts = replace(model_facts("llama", 0, False, False, 0))
    mirror = Mirror(plan(facts, SHAPES["unified"][1]))
    mirror.decode(Batch([1, 2], [0, 1], [(0,), (0,)], [False, True]), 0)
    record = mirror._decode_one(Batch([3], [2], [(0,)], [True]))
    assert record is not None
    assert np.array_equal(record.ubatches[0].placements[0].cells, [2])
