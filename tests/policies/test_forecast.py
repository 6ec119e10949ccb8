"""Learned times and what they foretell."""

import random

import pytest

from kvdesk.policies.costs import Costs, Reads
from kvdesk.policies.forecast import Forecast, forecast
from kvdesk.policies.tuned import MASK_NS

HEADS = 135
FLASH, PLAIN = Reads(98_000_000, 23_040, skips=True), Reads(98_000_000, 23_040, skips=False)


def test_a_line_is_found_under_noise_and_outliers() -> None:
    costs, draw = Costs(PLAIN), random.Random(1)
    for i in range(400):
        n_kv = draw.randrange(256, 8192, 256)
        ms = (4 + 0.003 * n_kv) * draw.lognormvariate(0, 0.03)
        costs.learn(1, n_kv, n_kv, ms * 8 if i % 9 == 4 else ms)
    for n_kv in (256, 4096, 8192):
        assert costs.step_ms(n_kv, n_kv) == pytest.approx(4 + 0.003 * n_kv, rel=0.08)


def test_batches_in_tiles_are_learned_apart() -> None:
    """From 64 tokens on llama.cpp's flash attention works in tiles: what smaller ones took says nothing of them."""
    times = Costs(PLAIN)
    for small, large in ((1, 64), (32, 256), (63, 512)):
        times.learn(small, 256, 256, 10.0 * small)
        times.learn(large, 256, 256, 2.5 * large)
    assert times.batch_ms(63, 256, 256) == pytest.approx(630, rel=0.05)
    assert times.batch_ms(64, 256, 256) == pytest.approx(160, rel=0.05)


@pytest.mark.parametrize("skips", [True, False])
def test_of_cells_that_are_skipped_the_masks_are_read(skips: bool) -> None:
    times = Costs(Reads(98_000_000, 23_040, skips, HEADS))
    mask = HEADS * MASK_NS / 1e6
    for n_kv, n_visible in ((512, 512), (2048, 2048), (4096, 256), (4096, 4096)):
        cells = n_visible + mask / 0.001 * (n_kv - n_visible) if skips else n_kv
        times.learn(100, n_kv, n_visible, 10 + 100 * (2 + 0.001 * cells))
    for n_visible in (0, 3000, 4096, 9000):
        cells = min(n_visible, 4096) + mask / 0.001 * max(0, 4096 - n_visible) if skips else 4096
        assert times.batch_ms(100, 4096, n_visible) == pytest.approx(210 + 0.1 * cells, rel=0.05)


def learned() -> Costs:
    times, draw = Costs(PLAIN), random.Random(2)
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
    told = forecast(100, 100, learned(), 512, restore_ms=200.0)
    assert (told.n_reused, told.n_prefill) == (99, 1)
    assert told.first_token_ms == pytest.approx(208, abs=5)
    assert told.sentence == "restored in about 0.2 s, 99 tokens from cache, 1 to compute, first token in about 0.2 s"


def test_nothing_is_claimed_before_it_was_measured() -> None:
    assert forecast(10, 0, Costs(PLAIN), 512) == Forecast(0, 10, None)
    assert forecast(10, 0, Costs(PLAIN), 512).sentence == "0 tokens from cache, 10 to compute"


def test_a_large_batch_is_foretold_from_small_ones_when_there_is_nothing_else() -> None:
    times = Costs(PLAIN)
    times.learn(1, 256, 256, 8.0)
    assert times.batch_ms(512, 512, 512) is not None


def test_usual_is_said_after_some_batches() -> None:
    costs = Costs(PLAIN)
    for _ in range(3):
        costs.learn(200, 256, 100, 1000.0)
    assert costs.usual_tok_s(200, 0, 512) == 0.0, "three are no habit"
    costs.learn(200, 256, 100, 1000.0)
    assert costs.usual_tok_s(200, 0, 512) == pytest.approx(200)
    assert costs.usual_tok_s(20, 0, 512) == 0.0, "of another length"
    for _ in range(4):
        costs.learn(200, 256, 100, 20_000.0)
    assert costs.usual_tok_s(200, 0, 512) == pytest.approx(10), "what was long ago is forgotten"


def test_a_state_is_thought_to_come_back_sooner_than_it_is_read_until_both_were_measured() -> None:
    costs = Costs(FLASH)
    read, restored = costs.again(2000, 2000 * 23_040)
    assert 0 < 2 * restored < read
    costs.learn(100, 256, 50, 1.0)
    costs.learn_state(1000, 100.0)
    assert costs.again(2000, 2000 * 23_040) == pytest.approx((20, 4_608_000))
