"""Learned times and what they foretell."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kvdesk.policies.batch_times import BatchTimes
from kvdesk.policies.fit import Guess, robust_fit
from kvdesk.policies.forecast import Forecast, forecast


def test_a_line_is_found_under_noise_and_outliers() -> None:
    draw = random.Random(1)
    rows = [(1.0, n, n * kv) for n in range(1, 30, 3) for kv in (256.0, 1024.0, 2048.0)]
    truth = np.array([4.0, 5.0, 0.001])
    ms = [float(np.array(row) @ truth) * draw.lognormvariate(0, 0.03) for row in rows]
    ms = [value * 8 if i % 9 == 4 else value for i, value in enumerate(ms)]
    found = np.array(rows) @ robust_fit(rows, ms)
    assert np.allclose(found, np.array(rows) @ truth, rtol=0.08)


def test_coefficients_are_never_negative() -> None:
    assert min(robust_fit([(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], [9.0, 5.0, 1.0])) >= 0


def test_a_guess_stands_where_nothing_tells_and_gives_way_where_something_does() -> None:
    rows, guesses = [(1.0, 512.0)] * 4, (None, Guess(0.002, 0.002))
    assert robust_fit(rows, [9.0] * 4, guesses) == pytest.approx((9.0 - 512 * 0.002, 0.002), rel=0.05)
    rows = [(1.0, 256.0 * n) for n in range(1, 9)]
    told = robust_fit(rows, [6.0 + 0.005 * kv for _, kv in rows], guesses)
    assert told == pytest.approx((6.0, 0.005), rel=0.05)


def test_no_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        robust_fit([], [])
    assert BatchTimes().ms(1, 256, 256) is None


def test_batches_in_tiles_are_learned_apart() -> None:
    """From 64 tokens on llama.cpp's flash attention works in tiles: what smaller ones took says nothing of them."""
    times = BatchTimes()
    for small, large in ((1, 64), (32, 256), (63, 512)):
        times.learn(small, 256, 256, 10.0 * small)
        times.learn(large, 256, 256, 2.5 * large)
    assert times.ms(63, 256, 256) == pytest.approx(630, rel=0.05)
    assert times.ms(64, 256, 256) == pytest.approx(160, rel=0.05)


@pytest.mark.parametrize("skips", [True, False])
def test_cells_that_are_skipped_cost_a_tenth(skips: bool) -> None:
    times = BatchTimes(skips=skips)
    for n_kv, n_visible in ((512, 512), (2048, 2048), (4096, 256), (4096, 4096)):
        cells = n_visible + 0.1 * (n_kv - n_visible) if skips else n_kv
        times.learn(100, n_kv, n_visible, 10 + 100 * (2 + 0.001 * cells))
    for n_visible in (0, 3000, 4096, 9000):
        cells = min(n_visible + 0.1 * (4096 - n_visible), 4096) if skips else 4096
        assert times.ms(100, 4096, n_visible) == pytest.approx(210 + 0.1 * cells, rel=0.05)


def learned() -> BatchTimes:
    times, draw = BatchTimes(), random.Random(2)
    for n in (512, 512, 300, 120, 512, 40):
        for kv in (512, 1024, 2048):
            times.learn(n, kv, kv, n * (3.5 + kv / 2000) * draw.lognormvariate(0, 0.05))
    for kv in (256, 512):
        times.learn(1, kv, kv, 8.0)
    return times


def test_time_to_first_token() -> None:
    expected = sum(512 * (3.5 + kv / 2000) for kv in (512 + 500, 1024 + 500, 1536 + 500))
    told = forecast(500 + 3 * 512, 500, learned(), 512)
    assert told.first_token_ms == pytest.approx(expected, rel=0.1)
    assert told.sentence.startswith("500 tokens from cache, 1,536 to compute, first token in about ")


def test_one_token_is_always_decoded() -> None:
    told = forecast(100, 100, learned(), 512, restore_ms=200.0, waiting_ms=100.0)
    assert (told.n_reused, told.n_prefill) == (99, 1)
    assert told.first_token_ms == pytest.approx(308, abs=5)
    assert told.sentence == "restored in about 0.2 s, 99 tokens from cache, 1 to compute, first token in about 0.3 s"


def test_nothing_is_claimed_before_it_was_measured() -> None:
    assert forecast(10, 0, BatchTimes(), 512) == Forecast(0, 10, None)
    assert forecast(10, 0, BatchTimes(), 512).sentence == "0 tokens from cache, 10 to compute"


def test_a_large_batch_is_foretold_from_small_ones_when_there_is_nothing_else() -> None:
    times = BatchTimes()
    times.learn(1, 256, 256, 8.0)
    assert times.ms(512, 512, 512) is not None
