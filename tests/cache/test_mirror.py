"""The mirror by itself: what it reports, what it must not change, and what it says when the engine surprises it."""

import numpy as np
import pytest

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, model_facts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.cache.state.blob import StateBlob, StreamBlob
from kvdesk.errors import ContextError


def make(kind: str = "attention", **asked: object) -> Mirror:
    n_swa = 16 if kind == "iswa" else 0
    facts = ModelFacts("x", kind, n_swa, "standard" if n_swa else "none")  # type: ignore[arg-type]
    defaults = {"n_ctx": 256, "n_seq_max": 4, "n_batch": 256, "n_ubatch": 32, "kv_unified": True}
    return Mirror(plan(facts, ContextParams(**{**defaults, **asked})))  # type: ignore[arg-type]


def turn(n: int, start: int, *seq_ids: int) -> Batch:
    return Batch([100 + i for i in range(n)], range(start, start + n), [seq_ids] * n, [False] * n)


def everything(mirror: Mirror) -> list[object]:
    return [
        (c.pos.tolist(), c.bits.tolist(), c.head, c.used, c.high_water, c.written_at_op.tolist())
        for cache in mirror.caches
        for c in cache.streams
    ]


@pytest.mark.parametrize("kind", ["attention", "iswa", "hybrid"])
@pytest.mark.parametrize("unified", [True, False])
def test_predict_is_read_only(kind: str, unified: bool) -> None:
    mirror = make(kind, kv_unified=unified, n_ctx=256 if unified else 1024)
    for s in range(1, 4):
        mirror.decode(turn(60, 0, s), 0)
    before = everything(mirror)
    codes = [mirror.predict(b) for b in (turn(40, 60, 2), turn(250, 60, 3), turn(3, 60, 3), turn(1, 7, 1))]
    assert codes == [0, 1, 0, -1]
    assert everything(mirror) == before
    assert mirror.operation == 3


def test_record_of_a_decode() -> None:
    mirror = make()
    record = mirror.decode(turn(70, 0, 1), 0)
    assert [len(u.index) for u in record.ubatches] == [32, 32, 6]
    assert [u.placements[0].cells[0] for u in record.ubatches] == [0, 32, 64]
    assert (record.n_kv, record.n_tested) == ((256,), 70)
    assert [state.line.head for state in record.slots] == [0, 32, 64]
    stream = mirror.caches[0].streams[0]
    assert stream.token[:70].tolist() == list(range(100, 170))
    assert set(stream.written_at_op[:70].tolist()) == {record.operation}


def test_unexpected_codes_are_mismatches() -> None:
    mirror = make()
    assert "refused" in mirror.decode(turn(1, 0, 0), -1).mismatch
    assert "no room" in mirror.decode(turn(1, 0, 0), 1).mismatch
    assert mirror.seq_pos_max(0) == -1
    assert "should not fit" in mirror.decode(turn(257, 0, 0), 0).mismatch
    mirror.decode(turn(1, 0, 0), 0)
    assert "should be refused" in mirror.decode(turn(1, 5, 0), 0).mismatch


def test_stop_in_the_third_ubatch() -> None:
    mirror = make()
    record = mirror.decode(turn(96, 0, 0), 2, lambda s: 63 if s == 0 else -1)
    assert (len(record.ubatches), record.n_ubatches, record.mismatch) == (2, 3, "")
    assert (mirror.seq_pos_max(0), mirror.caches[0].streams[0].head) == (63, 64)


def test_stop_that_cannot_be_explained() -> None:
    record = make().decode(turn(96, 0, 0), 2)
    assert "not known" in record.mismatch


def test_shift_is_pending_until_a_valid_decode() -> None:
    mirror = make()
    mirror.decode(turn(10, 0, 0), 0)
    mirror.seq_add(0, 5, -1, 3)
    assert mirror.pending_shift
    mirror.decode(turn(1, 0, 0), -1)
    assert mirror.pending_shift  # a refused batch does not reach the update
    mirror.decode(turn(1, 13, 0), 2, lambda s: 12 if s == 0 else -1)
    assert not mirror.pending_shift


def test_shift_moves_shared_cells_for_everyone() -> None:
    mirror = make()
    mirror.decode(turn(10, 0, 0), 0)
    mirror.seq_cp(0, 1, -1, -1)
    mirror.seq_add(0, 0, -1, 5)
    assert (mirror.seq_pos_min(1), mirror.seq_pos_max(1)) == (5, 14)
    mirror.seq_add(1, 0, -1, -8)
    assert (mirror.seq_pos_min(0), mirror.seq_pos_max(0)) == (0, 6)
    assert mirror.caches[0].streams[0].used == 7


def test_copy_to_another_stream_is_queued() -> None:
    mirror = make(kv_unified=False, n_ctx=1024)
    mirror.decode(turn(6, 0, 0), 0)
    mirror.seq_cp(0, 2, -1, -1)
    assert mirror.caches[0].pending_copies == [(0, 2)]
    assert mirror.caches[0].streams[2].token[:6].tolist() == [100, 101, 102, 103, 104, 105]
    mirror.decode(turn(1, 6, 2), 0)
    assert mirror.caches[0].pending_copies == []


def test_state_is_not_cut() -> None:
    mirror = make("hybrid")
    mirror.decode(turn(6, 0, 0), 0)
    assert not mirror.seq_rm(0, 3, -1)
    assert not mirror.seq_rm(-1, -1, -1)
    assert mirror.caches[0].streams[0].used == 6
    assert mirror.seq_rm(0, -1, -1)
    assert mirror.caches[0].streams[0].used == 0


def test_a_decode_says_how_many_moved_cells_it_rotated() -> None:
    mirror = make()
    mirror.decode(turn(6, 0, 0), 0)
    mirror.seq_add(0, 2, -1, 4)
    assert mirror.decode(turn(1, 10, 0), 0).n_shifted == 4
    assert mirror.decode(turn(1, 11, 0), 0).n_shifted == 0


def test_snapshot() -> None:
    mirror = make("hybrid")
    mirror.decode(turn(6, 0, 0), 0)
    mirror.seq_cp(0, 2, -1, -1)
    snapshot = mirror.snapshot(Verification("verified", 2))
    assert [(s.seq_id, s.pos_min, s.pos_max, s.n_cells, s.n_shared) for s in snapshot.sequences] == [
        (0, 5, 5, 6, 6),  # a hybrid reports the larger of both parts' first positions
        (2, 5, 5, 6, 6),
    ]
    assert [(s.seq_id, s.pos_max, s.n_shared) for s in snapshot.recurrent] == [(0, 5, 1), (2, 5, 1)]
    assert (snapshot.operation, snapshot.n_kv, snapshot.n_ctx) == (2, 256, 256)
    mirror.clear()
    assert (snapshot.maps[0].streams[0].pos[:6] == np.arange(6)).all()


@pytest.mark.parametrize(("kind", "left"), [("msa", 5), ("dsa", -1)])
def test_a_state_that_does_not_fit_the_indexer(kind: str, left: int) -> None:
    """A failed restore leaves its sequence to the indexer alone; then that has less room than attention has."""
    mirror = make(kind)
    mirror.decode(turn(250, 0, 0), 0)
    mirror.decode(turn(6, 0, 1), 0)
    assert not mirror.restore_seq(1, _saved(20)).ok
    assert [cache.seq_pos_max(1) for cache in mirror.caches] == [-1, 5]
    assert mirror.seq_pos_max(1) == -1
    assert not mirror.restore_seq(2, _saved(6)).ok
    assert [cache.seq_pos_max(2) for cache in mirror.caches] == [left, -1]
    assert mirror.restore_seq(1, _saved(6)).ok == (kind == "dsa")


def _saved(n: int) -> StateBlob:
    stream = StreamBlob(np.arange(n, dtype=np.int32), ((0,),) * n)
    return StateBlob("", 0, ((stream,), (stream,)), ())


def test_unknown_memory_is_refused() -> None:
    facts = model_facts("eagle3", 0, False, False, 0)
    with pytest.raises(ContextError, match="shared with another context"):
        Mirror(plan(facts, ContextParams()))


def test_where_more_tokens_are_placed_without_some_sequences() -> None:
    mirror = make(n_ctx=2048, n_seq_max=80)
    mirror.decode(turn(250, 0, 70), 0)
    mirror.decode(turn(250, 0, 0), 0)
    mirror.seq_cp(70, 1, 0, 100)
    mirror.decode(turn(250, 0, 2), 0)

    def placed(n_tokens: int, *without: int) -> tuple[int, int, int]:
        n_kv, own = mirror.placed(3, n_tokens, without)
        assert len(own) == n_tokens
        return n_kv, int(own[0]), int(own[-1])

    assert placed(10) == (768, 750, 759)
    assert placed(10, 0, 70) == (768, 100, 109), "another one lies behind them"
    assert placed(10, 0, 2) == (512, 250, 259)
    assert placed(10, 0, 2, 70) == (256, 100, 109), "100 cells are of sequence 1 too"
    assert placed(1000) == (1792, 750, 1749)
    assert placed(1000, 0, 2, 70) == (1280, 100, 1099)
    assert mirror.placed(2, 10)[1].tolist() == list(range(500, 760)), "with what it has"
    assert mirror.n_kv == 768, "read-only"
    assert make("recurrent").placed(0, 10)[0] == 0
