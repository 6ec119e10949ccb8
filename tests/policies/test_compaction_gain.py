"""Compaction pays where the span is dear, and never in the middle of an answer."""

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest

from kvdesk.policies.compaction_gain import Fragmented, NextPrompt, judge_compaction, judge_leaving
from kvdesk.policies.costs import Costs, Reads
from kvdesk.policies.tuned import EXPECTED, MASK_NS

HOLES = Fragmented(n_kv=8192, n_kv_after=512, n_visible=500, blob_bytes=20_000_000)
SCATTERED = Fragmented(n_kv=2048, n_kv_after=512, n_visible=380, blob_bytes=9_600_000)
SMALL_MODEL = Reads(weights=98_000_000, cell=23_040, skips=False)
SMALL_MODEL_FLASH = Reads(weights=98_000_000, cell=23_040, skips=True)

# measured, two threads: ms of tokens over (n_kv, visible cells) while six conversations take turns
QUIET = {
    (256, 80): [6.95, 7.13, 7.34, 7.13],
    (512, 100): [11.79, 8.15, 8.14, 8.3],
    (768, 110): [8.78, 8.75, 8.84, 8.9],
    (1024, 200): [9.67, 9.51, 9.59, 9.43],
    (1280, 210): [9.8, 13.55, 9.73, 10.04],
    (1536, 270): [16.33, 10.66, 10.73, 10.6],
    (1792, 330): [11.34, 11.67, 11.47, 12.0],
    (2048, 380): [11.84, 11.9, 11.82, 11.95],
}
LOADED_AT_FIRST = {
    **QUIET,
    (256, 80): [10.95, 15.67, 19.14, 215.05, 22.85, 15.82, 17.8, 17.06],
    (512, 100): [17.16, 13.61, 16.02, 14.83, 24.11, 19.62, 15.32, 11.98],
    (768, 110): [20.28, 15.88, 17.7, 16.98, 14.41, 18.55, 14.7, 18.16],
}
LOADED = {
    (256, 80): [108.35, 234.9, 175.19, 179.46, 80.99, 19.6, 271.63, 49.17],
    (512, 100): [577.79, 92.17, 160.91, 135.64, 64.95, 162.2, 535.03, 127.41],
    (768, 110): [158.83, 151.08, 65.34, 33.6, 388.6, 250.7, 99.11, 76.4],
    (1024, 200): [7179.37, 234.03, 240.75, 205.99, 92.58, 245.1, 129.42, 85.72],
    (1280, 210): [199.68, 250.36, 300.87, 165.06, 100.85, 279.23, 272.38, 176.54],
    (1536, 270): [248.92, 391.28, 679.28, 237.5, 132.95, 477.42, 555.14, 341.88],
    (1792, 330): [73.25, 311.15, 69.17, 54.44, 46.47, 46.55, 38.52, 185.83],
    (2048, 380): [104.98, 145.08, 98.81, 140.5, 179.15, 153.6, 148.45, 178.23],
}
FLASH = {
    (256, 80): [7.67, 7.9],
    (512, 100): [7.16, 7.3],
    (768, 110): [8.19, 8.3],
    (1024, 200): [8.53, 8.6],
    (1280, 210): [8.34, 8.5],
    (1536, 270): [8.75, 8.9],
    (1792, 330): [8.98, 9.3],
    (2048, 380): [8.97, 9.0],
}


def measured(times: dict[tuple[int, int], list[float]], reads: Reads = SMALL_MODEL) -> Costs:
    cost = Costs(reads)
    for (n_kv, seen), taken in times.items():
        for ms in taken:
            cost.learn(1, n_kv, seen, ms)
    return cost


def learned(per_span: float, per_visible: float) -> Costs:
    cost, draw = Costs(SMALL_MODEL if per_span > per_visible else SMALL_MODEL_FLASH), random.Random(1)
    for n_kv, seen in [(256, 200), (512, 500), (1024, 900), (2048, 1900), (8192, 520), (4096, 520)]:
        for _ in range(6):
            ms = 8 + per_span * n_kv + per_visible * seen
            cost.learn(1, n_kv, seen, ms * draw.lognormvariate(0, 0.04) * (5 if draw.random() < 0.05 else 1))
    cost.learn_state(10_000_000, 50.0)
    return cost


def test_without_flash_attention_it_pays() -> None:
    verdict = judge_compaction(learned(0.0022, 0.0), HOLES)
    assert verdict.pays
    said = re.search(r"([\d,]+) ms over the next 256 tokens, and costs ([\d,]+) ms", verdict.reason)
    gain_ms, cost_ms = (int(number.replace(",", "")) for number in said.groups())
    assert gain_ms == pytest.approx(0.0022 * (8192 - 512) * EXPECTED, rel=0.2)
    assert cost_ms == 100
    assert "8,192 -> 512" in verdict.reason


def test_with_flash_attention_it_does_not() -> None:
    verdict = judge_compaction(learned(0.00001, 0.002), SCATTERED)
    assert not verdict.pays


def test_it_does_not_pay_where_states_are_large() -> None:
    large = Fragmented(n_kv=2048, n_kv_after=512, n_visible=500, blob_bytes=200_000_000)
    verdict = judge_compaction(learned(0.0022, 0.0), large)
    assert not verdict.pays
    assert "not pay" in verdict.reason


def test_a_compact_cache_is_left_alone() -> None:
    compact = Fragmented(n_kv=512, n_kv_after=512, n_visible=500, blob_bytes=1)
    assert not judge_compaction(learned(0.0022, 0.0), compact).pays


def test_a_quiet_machine_tells_what_a_cell_costs() -> None:
    cost = measured(QUIET)
    assert cost.saved_ms(2048, 512) == pytest.approx(1536 * 0.0026, rel=0.1)
    verdict = judge_compaction(cost, SCATTERED)
    assert verdict.pays
    assert "estimated" not in verdict.reason


@pytest.mark.parametrize("times", [LOADED_AT_FIRST, LOADED])
def test_load_does_not_hide_what_a_cell_costs(times: dict[tuple[int, int], list[float]]) -> None:
    """Other programs made short spans dear, so that long ones seem to cost nothing."""
    cost = measured(times)
    assert cost.saved_ms(2048, 512) > 0.5 * 1536 * 0.0026
    assert judge_compaction(cost, SCATTERED).pays


def test_one_span_is_enough_to_begin_with() -> None:
    """A conversation that lies scattered, right after a start: nothing to compare it with but the size of a cell."""
    cost = measured({(2048, 380): [12.0, 12.1]})
    assert not cost.known
    verdict = judge_compaction(cost, SCATTERED)
    assert verdict.pays
    assert "estimated from the bytes of a cell" in verdict.reason
    assert 0.3 < cost.saved_ms(2048, 512) / (1536 * 0.0026) < 1.5


def test_masked_cells_that_are_skipped_are_left_alone() -> None:
    verdict = judge_compaction(measured(FLASH, SMALL_MODEL_FLASH), SCATTERED)
    assert not verdict.pays
    assert "Too little" in verdict.reason
    one = measured({(2048, 380): [9.0]}, SMALL_MODEL_FLASH)
    assert not judge_compaction(one, SCATTERED).pays


def test_nothing_is_assumed_before_a_token_was_measured() -> None:
    cost = Costs(SMALL_MODEL)
    assert cost.saved_ms(2048, 512) == 0.0
    assert not judge_compaction(cost, HOLES).pays


def of(heads: float) -> Costs:
    """A prompt of which each token takes 10 ms, a decoded one 40; so many heads of a thread look at each mask."""
    cost = Costs(Reads(weights=491_000_000, cell=12_288, skips=True, heads=heads))
    for n_tokens, ms in ((1, 40.0), (512, 10.0)):
        cost.learn(n_tokens, 512, 512, n_tokens * ms)
    return cost


QWEN = 24 * 14 / 2
"""Heads of all layers of Qwen 0.5B, on two threads."""


def test_a_long_prompt_pays_for_those_that_leave() -> None:
    """Behind the masked cells of as many tokens it takes a tenth longer."""
    idle = Fragmented(n_kv=4096, n_kv_after=2048, n_visible=2000, blob_bytes=25_000_000)
    verdict = judge_leaving(of(QWEN), idle, NextPrompt(2000, 0, 512))
    assert verdict.pays
    said = re.search(r"saves ([\d,]+) ms while 2,000 tokens are read and ([\d.]+) ms a token", verdict.reason)
    assert said is not None
    assert int(said[1].replace(",", "")) == pytest.approx(2000 * 2048 * QWEN * MASK_NS / 1e6, rel=0.01)
    assert float(said[2]) == pytest.approx(2048 * QWEN * MASK_NS / 1e6, abs=0.01)


def test_they_stay_where_nobody_would_notice() -> None:
    """A tenth of a second, of a prompt and its answer."""
    idle, prompt = Fragmented(512, 256, 256, 1_000), NextPrompt(60, 180, 512)
    least = 100 / (256 * MASK_NS / 1e6 * (60 + EXPECTED))
    assert not judge_leaving(of(0.95 * least), idle, prompt).pays
    assert judge_leaving(of(1.05 * least), idle, prompt).pays


@pytest.mark.parametrize(
    ("own", "n_kv", "awaited"),
    [
        (range(200), 256, 200),  # heads are divided
        (range(200), 512, 400),
        (range(156, 356), 512, 200),
        (range(500, 700), 768, 400),
        ([0, 1, 766, 767, 768], 769, 6),  # parts of 385
        ((), 512, 0),
    ],
)
def test_a_token_waits_for_the_thread_with_most_of_its_cells(own: Sequence[int], n_kv: int, awaited: int) -> None:
    cells = np.array(own, np.intp)
    assert Costs(Reads(1, 1, skips=True, n_parts=2)).awaited(cells, n_kv) == awaited
    assert Costs(Reads(1, 1, skips=True)).awaited(cells, n_kv) == len(own)


def test_they_leave_where_one_thread_has_all_cells_of_the_chat() -> None:
    """The other thread has only masked ones. A cell takes as long as one of Qwen 0.5B."""
    cost, prompt = Costs(Reads(491_000_000, 12_288, skips=True, n_parts=2)), NextPrompt(20, 180, 512)
    for n_visible in (100, 1000):
        cost.learn(1, 1024, n_visible, 40 + 0.007 * n_visible)
    assert judge_leaving(cost, Fragmented(768, 256, 400, 1_000_000, 200), prompt).pays
    assert not judge_leaving(cost, Fragmented(768, 256, 200, 1_000_000, 200), prompt).pays


def test_they_stay_where_their_states_are_dear() -> None:
    large = Fragmented(n_kv=4096, n_kv_after=2048, n_visible=2000, blob_bytes=3_000_000_000)
    assert not judge_leaving(of(QWEN), large, NextPrompt(2000, 0, 512)).pays


def test_they_stay_while_nothing_was_measured() -> None:
    assert not judge_leaving(Costs(SMALL_MODEL_FLASH), HOLES, NextPrompt(2000, 0, 512)).pays
