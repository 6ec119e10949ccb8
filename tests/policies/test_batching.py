"""Batches composed for simulated turns: answers go on, prompts are read soon, nobody starves."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.batch_times import TILE, BatchTimes
from kvdesk.policies.batching import LEAST_TOK_S, LONGEST_GAP_MS, BatchMs, Share, Want, compose

Machine = Callable[[int, float], float]
"""ms of n tokens over so many cells that each of them sees."""
N_PROMPT = 2000


def told(machine: Machine) -> BatchMs:
    """What is known of a machine that skips no cell."""
    return lambda n, n_kv, _n_visible: machine(n, n_kv)


def small(n: int, n_kv: float) -> float:
    """Two cores and 135 million parameters, as measured: 7 ms a step, and attention in tiles from 64 tokens on."""
    if n < TILE:
        return 4 + n * (2.2 + 0.0016 * n_kv)
    return 6 + n * (2.1 + 0.0006 * n_kv)


def dear(n: int, n_kv: float) -> float:
    """Two cores of another kind, where fewer than 64 tokens cost as much as single steps do, or more."""
    if n == 1:
        return 6.3 + 0.0047 * n_kv
    if n < TILE:
        return 5 + n * (1 + 0.0085 * n_kv)
    return 5 + n * (1.9 + 0.00125 * n_kv)


def steep(n: int, n_kv: float) -> float:
    """Two cores of a third kind, as measured: 63 tokens over 1,536 cells take 840 ms. Single steps skip the cells of
    others, and tell nothing of it.
    """
    if n == 1:
        return 10 if n_kv <= 512 else 17
    if n < TILE:
        return 8 + n * (0.9 + 0.0079 * n_kv)
    return 20 + n * (2.15 + 0.001 * n_kv)


def billion(n: int, n_kv: float) -> float:
    """The same two cores and a billion parameters, as measured: 16 ms a step."""
    if n < TILE:
        return 13 + n * (3.2 + 0.0072 * n_kv if n > 1 else 3.0)
    return 15 + n * (2.9 + 0.0013 * n_kv)


def large(n: int, n_kv: float) -> float:
    """Eight billion: a step takes 250 ms, and prompts are read at 12 tokens a second."""
    return 190 + n * (60 + 0.003 * n_kv)


def slower(machine: Machine, times: float) -> Machine:
    return lambda n, n_kv: times * machine(n, n_kv)


@dataclass
class Reading:
    """What came of a prompt beside answers. gaps_ms: between two tokens of an answer; before: while nobody read."""

    ms: float
    alone_ms: float
    gaps_ms: list[float]
    before_ms: float

    @property
    def over_alone(self) -> float:
        return self.ms / self.alone_ms

    @property
    def tok_s(self) -> float:
        return len(self.gaps_ms) / self.ms * 1e3

    @property
    def longest(self) -> float:
        return max(LONGEST_GAP_MS, 2 * self.before_ms)

    @property
    def least(self) -> float:
        return min(LEAST_TOK_S, 0.5e3 / self.before_ms)


def read(
    machine: Machine,
    n_answers: int = 1,
    *,
    learned: int = 512,
    noise: float = 0.05,
    n_past: int = 300,
    skipped: float | None = None,
    n_others: int = 0,
) -> Reading:
    """2,000 tokens beside answers, of whose own prompts the engine has seen batches of at most `learned` tokens.

    n_past: cells of the answers; n_others: of chats that wait; skipped: share of a cell's cost where its mask tells
    that it is not seen, None where attention reads them all.
    """
    draw, times = random.Random(3), BatchTimes(skips=skipped is not None)

    def padded(held: int) -> int:
        return 256 * (1 + (n_others + held) // 256)

    def cost(n: int, held: int, n_visible: float) -> float:
        n_kv = padded(held)
        return machine(n, n_kv if skipped is None else n_visible + skipped * (n_kv - n_visible))

    def taken(n: int, held: int, n_visible: float) -> float:
        ms = cost(n, held, n_visible) * draw.lognormvariate(0, noise)
        times.learn(n, padded(held), n_visible, ms)
        return ms

    taken(min(learned, n_past), n_past, n_past / 2)
    times.ms(TILE // 2, n_past, n_past)  # as a forecast asks; lines are drawn then
    before = [taken(n_answers, n_past, n_past) for _ in range(40)]
    done, held, n_decoded, now, last, gaps = 0, n_past, 0, 0.0, 0.0, list[float]()
    while done < N_PROMPT:
        wants = [*(Want(i, n_past, 0, now - last) for i in range(n_answers)), Want(99, done, N_PROMPT - done)]
        n_kv = padded(held)
        most_few = times.most_few(n_kv, done)
        shares = compose(wants, times.ms, n_kv, 512, n_decoded, most_over=times.most_over, most_few=most_few)
        parts = {share.seq_id: share.n_tokens for share in shares}
        n_read, n = parts.get(99, 0), sum(parts.values())
        now += taken(n, held, (n_read * (done + n_read / 2) + (n - n_read) * n_past) / n)
        held += n
        done += n_read
        n_decoded = 0 if 99 in parts else n_decoded + 1
        if 0 in parts:
            gaps.append(now - last)
            last = now
    alone = sum(cost(500, n_past + n, n - 250) for n in range(500, N_PROMPT + 1, 500))
    return Reading(now, alone, gaps, statistics.median(before))


def test_odd_tokens_go_along_only_where_the_batch_has_room() -> None:
    wants = [*(Want(i, 0, 0) for i in range(3)), Want(99, 0, TILE + 62)]
    for n_batch in (64, 65, 66, 128):
        assert sum(share.n_tokens for share in compose(wants, told(small), 512, n_batch, 9)) <= n_batch


@given(
    st.lists(st.tuples(st.integers(0, 700), st.floats(0, 1e4)), max_size=12),
    st.integers(1, 600),
    st.integers(0, 3),
    st.booleans(),
)
def test_every_batch_is_within_its_limits(
    turns: list[tuple[int, float]], n_batch: int, n_decoded: int, known: bool
) -> None:
    wants = [Want(i, 0, n, waited) for i, (n, waited) in enumerate(turns)]
    shares = compose(wants, told(small) if known else lambda *_: None, 512, n_batch, n_decoded)
    parts = {share.seq_id: share.n_tokens for share in shares}
    assert len(parts) == len(shares)
    assert sum(parts.values()) <= n_batch
    assert bool(shares) == bool(wants)
    assert all(0 < n <= max(1, wants[seq].n_prefill) for seq, n in parts.items())
    decoding = {w.seq_id for w in wants if not w.n_prefill}
    served = decoding & set(parts)
    assert len(served) in (0, min(len(decoding), n_batch))
    if served:
        assert max(wants[seq].waited_ms for seq in served) == max(wants[seq].waited_ms for seq in decoding)


@pytest.mark.parametrize("n_answers", [1, 3])
@pytest.mark.parametrize("learned", [300, 40])
def test_an_answer_goes_on_and_the_prompt_takes_little_longer(n_answers: int, learned: int) -> None:
    """The embedded model, also where no batch as large as its chunks was ever measured."""
    reading = read(small, n_answers, learned=learned)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.4


@pytest.mark.parametrize("learned", [512, 300, 40])
def test_few_tokens_over_many_cells_are_avoided(learned: int) -> None:
    """They are not planned before one knows what they take, and none are left for the end."""
    reading = read(dear, learned=learned)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.1


@pytest.mark.parametrize("learned", [512, 300, 50, 20])
def test_few_tokens_over_many_cells_are_tried_with_few_of_them(learned: int) -> None:
    """What they take over few cells, and what single steps take, may tell little of it."""
    reading = read(steep, learned=learned, n_past=200)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.35, "fewer than a tile are left in the end, which cost twice as much apart"


@pytest.mark.parametrize("machine", [small, dear, steep])
@pytest.mark.parametrize("n_others", [0, 2400, 3600])
@pytest.mark.parametrize("learned", [512, 40])
def test_cells_of_other_chats_tell_nothing_of_what_a_chunk_takes(machine: Machine, n_others: int, learned: int) -> None:
    """Flash attention skips them. What few tokens with nothing before them took over 4,000 cells was carried on to
    those with 1,600 of their own, and gaps were 700 ms long.
    """
    reading = read(slower(machine, 1.1), skipped=0.12, n_others=n_others, learned=learned)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.4


def test_a_chunk_waits_for_a_step_where_the_answer_has_waited_already() -> None:
    """Its token comes with the chunk: both times are one gap."""
    for waited_ms, n_shares in ((0.0, 2), (100.0, 2), (250.0, 1)):
        shares = compose([Want(0, 0, 0, waited_ms), Want(1, 0, 16)], told(small), 2048, 512)
        assert len(shares) == n_shares


def test_where_small_chunks_cost_thrice_as_much_the_tiled_one_is_taken() -> None:
    """A billion parameters over 2,000 cells: a token costs 16 ms below 64 tokens, 5 from there on."""
    reading = read(billion, n_past=1800)
    assert reading.over_alone <= 1.4
    assert reading.tok_s >= reading.least
    assert max(reading.gaps_ms) <= 2 * reading.longest
    assert max(read(billion).gaps_ms[:8]) <= LONGEST_GAP_MS, "while it fits, the gap is kept"


def test_a_slow_model_keeps_half_its_speed() -> None:
    """A step of 250 ms: the answer's tokens go along with a few of the prompt, since a batch costs its weights."""
    reading = read(large)
    assert reading.longest == pytest.approx(500, rel=0.1)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 3.5, "a token of the prompt at a time would take 4.8 times as long as alone"


def test_a_machine_that_becomes_slower_is_followed_within_a_few_batches() -> None:
    """Other programs take more than half of it while the prompt is read."""
    n_batches = 0

    def machine(n: int, n_kv: float) -> float:
        nonlocal n_batches
        n_batches += 1
        return small(n, n_kv) * (2.2 if n_batches > 60 else 1)

    gaps_ms = read(machine).gaps_ms
    assert 0 < sum(gap > 1.25 * LONGEST_GAP_MS for gap in gaps_ms) <= 4
    assert max(gaps_ms[len(gaps_ms) // 2 :]) <= LONGEST_GAP_MS


def test_a_machine_that_is_quick_again_is_followed_within_a_few_batches() -> None:
    """For a hundred tokens it is three times as slow; then chunks large enough for tiles come back."""
    reading = read(lambda n, n_kv: small(n, n_kv) * (3 if 700 <= n_kv < 800 else 1))
    assert reading.over_alone <= 1.4, "small chunks, which tell nothing of large ones, would make it 1.7"
    assert sum(gap > LONGEST_GAP_MS for gap in reading.gaps_ms) <= 4


def test_steps_that_were_once_slow_do_not_stretch_the_gaps_for_good() -> None:
    """Chunks along with the answer leave no step to be measured again."""
    times = BatchTimes()
    for n_kv in (256, 512, 768):
        times.learn(1, n_kv, n_kv, 900.0)
        times.learn(40, n_kv, n_kv, billion(40, n_kv))
        times.learn(63, n_kv, n_kv, billion(63, n_kv))
    shares = compose([Want(0, 0, 0), Want(1, 0, 62)], times.ms, 768, 512, 9)
    assert billion(sum(share.n_tokens for share in shares), 768) <= LONGEST_GAP_MS


def test_what_a_large_batch_takes_is_drawn_anew_once_a_small_one_was_measured() -> None:
    """Until then the line through batches of 512 may cross zero tokens anywhere, and no chunk would be tiled."""
    times = BatchTimes()
    for n, n_kv, ms in ((128, 256, 528), (512, 768, 1634), (512, 1280, 1820), (512, 1792, 2133), (369, 2048, 1748)):
        times.learn(n, n_kv, n_kv, ms)
        assert times.ms(512, 1024, 1024) == pytest.approx(1800, rel=0.1)
    times.learn(1, 512, 512, 7.0)
    assert times.ms(TILE, 512, 512) == pytest.approx(220, rel=0.2)
    (share,) = compose([Want(0, 0, 0), Want(1, 0, N_PROMPT)], times.ms, 512, 512, 9)
    assert share.n_tokens >= TILE


def test_a_tiled_chunk_is_taken_while_it_is_within_the_longest_gap() -> None:
    """Planned gaps are shorter than that; smaller chunks would cost the prompt more."""
    wants, late = [Want(0, 0, 0), Want(1, 0, N_PROMPT)], slower(small, 1.8)
    gap_ms = late(TILE, 500) + late(1, 500)
    assert 0.7 * LONGEST_GAP_MS < gap_ms < 0.8 * LONGEST_GAP_MS
    assert [share.n_tokens for share in compose(wants, told(late), 500, 512, 9)] == [TILE]


def test_how_much_of_the_gap_a_tiled_chunk_may_take_follows_what_single_batches_took() -> None:
    wants, tile_ms = [Want(0, 0, 0), Want(1, 0, N_PROMPT)], 0.84 * LONGEST_GAP_MS

    def batch_ms(n: int, _n_kv: int, _n_visible: float) -> float:
        return 10.0 if n == 1 else n * tile_ms / TILE * (1 if n >= TILE else 1.4)

    for most_over, tiled in ((0.9, True), (1.09, True), (1.2, False), (1.6, False), (float("inf"), False)):
        shares = compose(wants, batch_ms, 2048, 512, 9, most_over=most_over)
        assert (Share(1, TILE) in shares) == tiled


def slow_tiles(n: int, n_kv: float) -> float:
    """As measured: 64 tokens over 2,000 cells take 0.9 of the longest gap; in halves a token costs a third more."""
    if n == 1:
        return 7 + 0.0015 * n_kv
    if n < TILE:
        return 8 + n * (2.5 + 0.0022 * n_kv)
    return 10 + n * (2.5 + 0.00145 * n_kv)


def test_a_steady_machine_s_prompt_is_not_cut_smaller_than_the_gap_asks() -> None:
    steady, uneven = (read(slow_tiles, noise=noise, n_past=100, learned=40) for noise in (0.01, 0.12))
    assert max(steady.gaps_ms) <= LONGEST_GAP_MS
    assert max(uneven.gaps_ms) <= 1.1 * LONGEST_GAP_MS, "few tokens are tried once, and the first surprise was a tile"
    assert steady.over_alone < 1.055 < uneven.over_alone


@pytest.mark.parametrize(("times_dearer", "tiled"), [(1.4, False), (1.6, True)])
def test_the_gap_is_exceeded_only_where_smaller_chunks_are_far_dearer(times_dearer: float, tiled: bool) -> None:
    """64 tokens take 0.9 of the longest gap: with what single batches take longer than usual that is too much."""
    wants, tile_ms = [Want(0, 0, 0), Want(1, 0, N_PROMPT)], 0.9 * LONGEST_GAP_MS

    def batch_ms(n: int, _n_kv: int, _n_visible: float) -> float:
        return 10.0 if n == 1 else n * tile_ms / TILE * (1 if n >= TILE else times_dearer)

    chunk = next(share for share in compose(wants, batch_ms, 2048, 512, 9) if share.seq_id == 1)
    assert (chunk.n_tokens == TILE) == tiled


def test_larger_chunks_have_a_batch_of_their_own() -> None:
    """The answers' tokens are then computed as if they were alone."""
    wants = [Want(0, 0, 0), Want(1, 0, N_PROMPT)]
    sizes = [{s.seq_id: s.n_tokens for s in compose(wants, told(small), 512, 512, n)} for n in range(4)]
    assert sizes[0] == sizes[1] == {0: 1}
    assert sizes[3].keys() == {1}
    assert TILE < sizes[3][1] <= 128
    assert compose([Want(0, 0, 0), Want(1, 0, 20)], told(small), 512, 512, 9) == (
        *compose(wants, told(small), 512, 512),
        Share(1, 20),
    )


def test_before_anything_was_measured_a_chunk_is_small() -> None:
    shares = compose([Want(0, 0, 0), Want(1, 0, N_PROMPT)], lambda *_: None, 512, 512)
    assert 1 < sum(share.n_tokens for share in shares) <= 32


def test_a_prompt_alone_is_read_in_whole_batches() -> None:
    assert compose([Want(1, 0, N_PROMPT)], told(small), 512, 512) == (Share(1, 512),)


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    left = {1: 5000, 2: 100}
    for _ in range(2):
        for share in compose([Want(seq, 0, n) for seq, n in left.items() if n], told(small), 256, 512):
            left[share.seq_id] -= share.n_tokens
    assert left[2] == 0
    assert left[1] == 5000 - 2 * 512 + 100


def test_prompts_are_read_beside_more_answers_than_a_batch_holds() -> None:
    wants = [Want(seq, 0, 0, 10.0) for seq in range(5)] + [Want(9, 0, 50)]
    assert compose(wants, told(small), 256, 2, 3) == (Share(9, 2),)
    assert [share.seq_id for share in compose(wants, told(small), 256, 2, 2)] == [0, 1], (
        "every answer has a token first"
    )


def test_more_turns_than_tokens_take_turns() -> None:
    waited = dict.fromkeys(range(5), 0.0)
    for _ in range(20):
        shares = compose([Want(seq, 0, 0, w) for seq, w in waited.items()], told(small), 256, 2)
        served = {share.seq_id for share in shares}
        waited = {seq: 0.0 if seq in served else w + 10 for seq, w in waited.items()}
        assert max(waited.values()) <= 20


def test_one_sequence_a_batch_where_the_engine_cannot_have_more() -> None:
    """Answers have their steps one after another, and both prompts are read between them."""
    waited, left, n_decoded, order = {0: 30.0, 1: 20.0}, {8: 200, 9: 40}, 0, list[int]()
    while any(left.values()):
        wants = [Want(seq, 0, 0, ms) for seq, ms in waited.items()] + [Want(seq, 0, n) for seq, n in left.items() if n]
        (share,) = compose(wants, told(small), 256, 512, n_decoded, together=False)
        order.append(share.seq_id)
        waited = {seq: 0.0 if seq == share.seq_id else ms + 10 for seq, ms in waited.items()}
        n_decoded = n_decoded + 1 if share.seq_id in waited else 0
        if share.seq_id in left:
            assert small(share.n_tokens, 256) <= LONGEST_GAP_MS
            left[share.seq_id] -= share.n_tokens
    answers = [seq for seq in order if seq in waited]
    assert answers == [0, 1] * (len(answers) // 2)
    assert order.count(8) == 2, "as large as the gap allows"
    assert order[-1] == 9
