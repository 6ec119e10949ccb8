import numpy as np
import pytest

from kvdesk.cache.compare import compare_snapshots
from kvdesk.message import FEW_TOKENS
from kvdesk.protocol.cache import LoadSample, OperationDone, SpeedSample
from kvdesk.protocol.operations import Effect
from kvdesk.values import replace
from kvdesk.viewmodel.graphs.cell_metrics import HIGH_WATER, USED
from kvdesk.viewmodel.graphs.measurements import MAX_MARKS, Measurements
from tests.ui.samples import CONTEXT, STATS, cache_view


def tokens(measured: Measurements, times: list[float], ms: float = 8.0) -> None:
    for at_s in times:
        measured.add_speed(SpeedSample(at_s, "decode", 1, ms, 256))


def test_gaps_are_counted_within_an_answer_only() -> None:
    measured = Measurements()
    tokens(measured, [1.0, 2.0])  # by hand, outside of any answer
    measured.start_turn()
    measured.add_speed(SpeedSample(10.0, "prefill", 20, 90.0, 256))
    tokens(measured, [10.01, 10.03])
    measured.add_turn(STATS, 10.03)
    measured.start_turn()
    measured.add_speed(SpeedSample(99.0, "prefill", 20, 90.0, 256))
    tokens(measured, [99.04])
    assert measured.gaps.n == 3
    assert measured.rolling() == pytest.approx((20.0, 40.0, 40.0))


def test_answers_at_once_share_batches_and_wait_for_each_others_prompts() -> None:
    measured = Measurements()
    measured.start_turn()
    measured.add_speed(SpeedSample(1.0, "prefill", 20, 90.0, 256))
    tokens(measured, [1.01])
    measured.start_turn()
    measured.add_speed(SpeedSample(1.2, "prefill", 90, 180.0, 256))
    for at_s in (1.21, 1.22):
        measured.add_speed(SpeedSample(at_s, "decode", 2, 9.0, 256))
    measured.add_turn(STATS, 1.22)
    tokens(measured, [1.23])
    assert measured.gaps.n == 6
    assert measured.rolling() == pytest.approx((10.0, 200.0, 200.0))
    assert len(measured.token_ms) == 2, "a batch of several is no time of one token"


def test_right_guesses_come_at_once_and_a_batch_with_guesses_is_no_time_of_one_token() -> None:
    measured = Measurements()
    measured.start_turn()
    tokens(measured, [1.0])
    measured.add_speed(SpeedSample(1.4, "decode", 4, 390.0, 256, n_drafted=7, n_accepted=3))
    measured.add_speed(SpeedSample(1.8, "decode", 1, 390.0, 256, n_drafted=7, n_accepted=0))
    assert measured.rolling() == pytest.approx((0.0, 400.0, 400.0))
    assert len(measured.token_ms) == 1


def test_latency_is_drawn_from_answer_to_answer() -> None:
    measured = Measurements()
    for start in (0.0, 100.0):
        measured.start_turn()
        measured.add_speed(SpeedSample(start, "prefill", 20, 90.0, 256))
        tokens(measured, [start + 0.1 * i for i in range(1, 20)])
        measured.add_turn(STATS, start + 2.0)
    assert measured.p99.last == pytest.approx(100.0)
    assert any(value != value for value in measured.p99.values), "a gap between the two"


def test_what_was_refused_or_stopped_is_no_speed() -> None:
    measured = Measurements()
    measured.add_speed(SpeedSample(1.0, "prefill", 512, 1.0, 0, rc=-1, n_ubatches=0))
    measured.add_speed(SpeedSample(2.0, "decode", 1, 1.0, 0, rc=1))
    assert (len(measured.prefill.series), len(measured.decode.series), len(measured.token_ms)) == (0, 0, 0)
    assert (measured.codes[-1], measured.codes[1], measured.codes[0]) == (1, 1, 0)


def test_k_shifts_and_splits_are_counted() -> None:
    measured = Measurements()
    measured.add_speed(SpeedSample(1.0, "prefill", 600, 30.0, 768, n_ubatches=2, n_tested=640))
    measured.add_speed(SpeedSample(2.0, "flush", 900, 5.0, 0, rc=1, n_shifted=44))
    measured.add_speed(SpeedSample(3.0, "flush", 1, 9.0, 256, n_shifted=6))
    assert (len(measured.prefill.series), len(measured.decode.series)) == (1, 0)
    assert (measured.n_split, measured.n_decodes) == (1, 3)
    assert (measured.n_flushes, measured.flushed_ms, measured.flushed_cells) == (2, 14.0, 50)


def test_prefix_hits_per_request_and_cumulative() -> None:
    measured = Measurements()
    measured.add_turn(replace(STATS, prompt_tokens=100, reused_tokens=0), 1.0)
    measured.add_turn(replace(STATS, prompt_tokens=300, reused_tokens=300), 2.0)
    measured.add_turn(replace(STATS, prompt_tokens=0, reused_tokens=0), 3.0)  # never began
    assert measured.hit.values.tolist() == [0.0, 100.0]
    assert measured.hits.last == 75.0
    assert measured.hit_ratio == 0.75


def test_bytes_of_what_is_used_and_of_the_span() -> None:
    measured = Measurements()
    measured.add_view(cache_view(), CONTEXT, 5.0)
    k = measured.k_bytes
    assert (k.allocated, k.occupied, k.live) == (6_000_000, 6_000_000 * 220 / 1024, 6_000_000 / 4)
    assert measured.kv_mb.last == pytest.approx(2 * k.occupied / 1e6)
    assert (measured.cells[USED].last, measured.cells[HIGH_WATER].last) == (220, 240)


def test_a_compaction_is_measured_before_and_after() -> None:
    measured = Measurements()
    measured.start_turn()
    tokens(measured, [0.02 * i for i in range(10)])
    before, after = cache_view(7), cache_view(8, ((0, 220, (0,), 0, 1),))
    effect = Effect(compare_snapshots(before.snapshot, after.snapshot), bytes_moved=24_000_000)
    measured.add_operation(OperationDone(8, 1.0, "compact", "llama_state_set_data(…)", 12.0, effect=effect))
    measured.start_turn()
    tokens(measured, [2.0 + 0.01 * i for i in range(10)])
    assert measured.moved.gb_s == pytest.approx(2.0)
    assert [measured.moved.before, measured.moved.after] == pytest.approx([20.0, 10.0])


def test_memory_is_bounded() -> None:
    measured = Measurements()
    for i in range(MAX_MARKS + 50):
        measured.add_operation(OperationDone(i, float(i), "remove", "llama_memory_seq_rm(…)", 0.1))
    for i in range(50_000):
        measured.add_load(LoadSample(float(i), 1.0, 0.5, 2))
    assert len(measured.marks) == MAX_MARKS
    assert max(len(named.series) for named in measured.all_series()) <= 20_000


def test_the_speed_of_a_prompt_of_one_token_is_no_reading() -> None:
    """It is decoded as any token of an answer is: what it takes says nothing of how fast prompts are read."""
    measured = Measurements()
    for i, n_tokens in enumerate((1, FEW_TOKENS, 1)):
        measured.add_speed(SpeedSample(1.0 + i, "prefill", n_tokens, 50.0, 256))
        measured.end_prefill()
    found = measured.prefill.series.values
    assert found[~np.isnan(found)].tolist() == [FEW_TOKENS / 0.05]


def test_what_another_model_measured_is_forgotten_and_the_series_go_on() -> None:
    measured = Measurements()
    tokens(measured, [1.0, 1.2, 1.4])
    measured.add_view(cache_view(), CONTEXT, 1.5)
    measured.add_load(LoadSample(1.5, 1.0, 0.5, 2))
    revision, drawn = measured.revision, measured.decode.series
    measured.forget()
    assert measured.revision > revision, "graphs are drawn anew"
    assert measured.decode.series is drawn
    assert [named.name for named in measured.all_series() if len(named.series) or named.series.last is not None] == []
    assert (measured.gaps.n, measured.k_bytes.allocated, measured.start_s) == (0, 0.0, None)
    measured.add_view(cache_view(), CONTEXT, 9.0)
    assert (measured.start_s, measured.cells[USED].times.tolist()) == (9.0, [9.0])


def test_how_many_guesses_were_right_is_a_line_over_time() -> None:
    """Over the last few batches with guesses; an answer ends the line."""
    measured = Measurements()
    measured.start_turn()
    tokens(measured, [1.0])
    assert len(measured.right) == 0
    for i in range(10):
        measured.add_speed(SpeedSample(2.0 + i, "decode", 2, 9.0, 256, n_drafted=4, n_accepted=1))
    assert measured.right.last == 25.0
    for i in range(8):
        measured.add_speed(SpeedSample(20.0 + i, "decode", 5, 9.0, 256, n_drafted=4, n_accepted=4))
    assert measured.right.last == 100.0
    measured.add_turn(STATS, 30.0)
    measured.start_turn()
    measured.add_speed(SpeedSample(31.0, "decode", 1, 9.0, 256, n_drafted=2, n_accepted=0))
    assert measured.right.last == 0.0
    assert any(value != value for value in measured.right.values), "a gap between the two"
    assert any(named.name == "guesses right" and named.unit == "%" for named in measured.all_series())
