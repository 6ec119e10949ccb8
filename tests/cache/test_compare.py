"""Comparisons of snapshots and of logits, each number against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kvdesk.cache.batch import Batch
from kvdesk.cache.compare import STRONG_KL, SequenceChange, Verdict, compare_logits, compare_snapshots, judge
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheSnapshot, Verification


def filled() -> Mirror:
    """Sequence 0 at cells 0 to 5, sequence 1 at 6 to 9; 0 and 1 share cell 0 with 2."""
    mirror = Mirror(plan(ModelFacts("x", "attention"), ContextParams(n_ctx=512, n_seq_max=3, kv_unified=True)))
    mirror.decode(Batch(range(6), range(6), [(0,)] * 6, [False] * 6), 0)
    mirror.decode(Batch(range(4), range(4), [(1,)] * 4, [False] * 4), 0)
    mirror.seq_cp(0, 2, 0, 1)
    return mirror


def now(mirror: Mirror) -> CacheSnapshot:
    return mirror.snapshot(Verification("mirrored", 0))


def changes(mirror: Mirror, before: CacheSnapshot) -> dict[int, SequenceChange]:
    return {c.seq_id: c for c in compare_snapshots(before, now(mirror)).sequences}


def test_nothing() -> None:
    mirror = filled()
    found = compare_snapshots(now(mirror), now(mirror))
    assert found.sequences == ()
    assert found.streams[0].before == found.streams[0].after


def test_removed() -> None:
    mirror = filled()
    before = now(mirror)
    mirror.seq_rm(0, 0, 3)
    found = compare_snapshots(before, now(mirror))
    one = found.sequences[0]
    assert (one.seq_id, one.freed, one.stayed, one.placed, one.moved, one.shared) == (0, 3, 3, 0, 0, 0)
    assert (found.streams[0].before.used, found.streams[0].after.used) == (10, 8)  # the third is still of sequence 2
    assert {c.seq_id: c.unshared for c in found.sequences} == {0: 0, 2: 1}


def test_forked() -> None:
    mirror = filled()
    before = now(mirror)
    mirror.seq_cp(1, 2, 0, -1)
    found = changes(mirror, before)
    assert (found[1].shared, found[1].stayed, found[2].placed, found[2].shared) == (4, 4, 4, 4)


def test_decoded() -> None:
    mirror = filled()
    before = now(mirror)
    mirror.decode(Batch([9], [6], [(0,)], [True]), 0)
    found = changes(mirror, before)
    assert list(found) == [0]
    assert (found[0].placed, found[0].stayed) == (1, 6)


def test_shifted() -> None:
    mirror = filled()
    before = now(mirror)
    mirror.seq_rm(1, 0, 1)
    mirror.seq_add(1, 1, -1, -1)
    found = changes(mirror, before)[1]
    assert (found.shifted, found.freed, found.placed, found.moved) == (3, 1, 0, 0)


def test_compacted() -> None:
    mirror = filled()
    mirror.seq_rm(0, 1, 3)
    before = now(mirror)
    cells = mirror.caches[0].streams[0]
    used = np.flatnonzero(cells.pos != -1)
    saved = cells.save(used)
    cells.reset()
    cells.place(np.arange(8), saved.pos, [(0, 2), *[(0,)] * 3, *[(1,)] * 4], saved.token, saved.written_at_op)
    found = changes(mirror, before)
    assert {s: (c.moved, c.stayed, c.shifted, c.placed, c.freed) for s, c in found.items()} == {
        0: (3, 1, 0, 0, 0),
        1: (4, 0, 0, 0, 0),
    }


def logits(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_exact() -> None:
    found = compare_logits(logits([1, 2, 3]), logits([1, 2, 3]))
    assert (found.verdict, found.kl_max, found.max_difference, found.first_row) == (Verdict.EXACT, 0.0, 0.0, -1)
    assert str(found) == "exact: every logit is the same"


def test_divergence_by_hand() -> None:
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    found = compare_logits(np.log(p).astype(np.float32), (np.log(q) + 900).astype(np.float32))
    assert found.kl_max == pytest.approx(0.25 * np.log(2), abs=1e-3)
    assert (found.first_row, found.token_before, found.token_after) == (0, 0, 1)
    assert found.verdict is Verdict.CHANGED


def test_rounding_is_relative() -> None:
    assert compare_logits(logits([20, 0]), logits([20.01, 0])).verdict is Verdict.ROUNDING
    assert compare_logits(logits([1, 0]), logits([1.01, 0])).verdict is Verdict.CHANGED
    assert compare_logits(logits([1, 0]), logits([1.01, 0]), 0.02, 0.01).verdict is Verdict.ROUNDING
    assert "KL" in str(compare_logits(logits([1, 0]), logits([1.0001, 0])))


@pytest.mark.parametrize(
    ("difference", "kl", "verdict"),
    [
        (0.0, 0.0, Verdict.EXACT),
        (0.001, 0.0001, Verdict.ROUNDING),
        (0.0011, 0.0, Verdict.CHANGED),
        (0.0, 0.0002, Verdict.EXACT),
        (0.001, 0.0002, Verdict.CHANGED),
        (0.9, 0.69, Verdict.CHANGED),
        (0.9, np.log(2), Verdict.STRONGLY_CHANGED),
        (0.9, 4.7, Verdict.STRONGLY_CHANGED),
        (np.inf, np.inf, Verdict.STRONGLY_CHANGED),
    ],
)
def test_what_a_difference_is_called(difference: float, kl: float, verdict: Verdict) -> None:
    assert judge(difference, kl, 0.001, 0.0001) is verdict
    assert verdict.same == (verdict in (Verdict.EXACT, Verdict.ROUNDING))


def test_a_strong_change_halves_the_likelihood_of_what_was_said() -> None:
    """KL(p || q) is ln 2 if everything that p could say has half its probability in q."""
    p, q = logits([0, 0, -50, -50]), logits([0, 0, 0, 0])
    assert compare_logits(p, q).kl_max == pytest.approx(STRONG_KL)
    assert compare_logits(p, q + logits([0, 0, 1, 1])).verdict is Verdict.STRONGLY_CHANGED
    assert compare_logits(p, q - logits([0, 0, 1, 1])).verdict is Verdict.CHANGED


def test_rows() -> None:
    found = compare_logits(logits([1, 0], [0, 1], [5, 1]), logits([1, 0], [2, 1], [5, 1]))
    assert (found.n_rows, found.first_row, found.token_before, found.token_after) == (3, 1, 1, 0)


def test_impossible_tokens() -> None:
    never = -float("inf")
    assert compare_logits(logits([1, never]), logits([1, never])).verdict is Verdict.EXACT
    assert compare_logits(logits([1, 0]), logits([1, never])).kl_max == float("inf")
    assert compare_logits(logits([1, 0]), logits([float("nan"), 0])).verdict is Verdict.STRONGLY_CHANGED


def test_shapes() -> None:
    for after in (logits([1, 2]), np.zeros((1, 2, 3), np.float32)):
        with pytest.raises(ValueError, match="shapes"):
            compare_logits(logits([1, 2, 3]), after)


@given(
    hnp.arrays(np.float32, (3, 9), elements=st.floats(-1e4, 1e4, width=32)),
    hnp.arrays(np.float32, (3, 9), elements=st.floats(-1e4, 1e4, width=32)),
)
def test_any_logits(before: np.ndarray, after: np.ndarray) -> None:
    found = compare_logits(before, after)
    assert 0.0 <= found.kl_max < float("inf")
    assert (found.verdict is Verdict.EXACT) == (before == after).all()
