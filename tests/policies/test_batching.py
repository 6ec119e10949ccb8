"""Batches composed for simulated turns: answers go on, prompts are read soon, nobody starves."""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies.batching import AIM, ROWS, ChunkSize, Share, Want, compose
from kvdesk.policies.tuned import LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, TILE

Machine = Callable[[int, float], float]
"""ms of n tokens over so many cells that each of them sees."""
N_PROMPT = 2000


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


def dense(n: int, n_kv: float) -> float:
    """Two cores and 1.5 billion parameters of Q4_K_M, as measured: 100 ms a step. Weights meet four tokens at once, and
    each of up to three left over alone.
    """
    if n == 1:
        return 100 + 0.006 * n_kv
    if n < TILE:
        return 60 + n // ROWS * ROWS * 12.4 + n % ROWS * 57 + n * 0.002 * n_kv
    return 6 + n * (12 + 0.0015 * n_kv)


def large(n: int, n_kv: float) -> float:
    """Eight billion: a step takes 250 ms, and prompts are read at 12 tokens a second."""
    return 190 + n * (60 + 0.003 * n_kv)


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
        return min(LEAST_TOK_S, LEAST_SHARE * 1e3 / self.before_ms)


def read(machine: Machine, n_answers: int = 1, *, noise: float = 0.05, n_past: int = 300) -> Reading:
    """2,000 tokens beside answers of n_past cells each, whose prompts were read in one batch."""
    draw, chunk = random.Random(3), ChunkSize()

    def cost(n: int, held: int) -> float:
        return machine(n, 256 * (1 + held // 256))

    def taken(n: int, held: int) -> float:
        return cost(n, held) * draw.lognormvariate(0, noise)

    chunk.prompt_took(n_past, taken(n_past, n_past))
    before = [taken(n_answers, n_past) for _ in range(40)]
    for ms in before:
        chunk.step_took(ms)
    done, held, n_decoded, now, last, gaps = 0, n_past, 0, 0.0, 0.0, list[float]()
    while done < N_PROMPT:
        wants = [*(Want(i, 0, now - last) for i in range(n_answers)), Want(99, N_PROMPT - done)]
        parts = {share.seq_id: share.n_tokens for share in compose(wants, chunk, 512, n_decoded)}
        n_read, n = parts.get(99, 0), sum(parts.values())
        ms = taken(n, held)
        if n_read:
            chunk.chunk_took(n_read, ms, along=n > n_read)
        else:
            chunk.step_took(ms)
        now += ms
        held += n
        done += n_read
        n_decoded = 0 if n_read else n_decoded + 1
        if 0 in parts:
            gaps.append(now - last)
            last = now
    alone = sum(cost(500, n_past + n) for n in range(500, N_PROMPT + 1, 500))
    return Reading(now, alone, gaps, statistics.median(before))


def known(machine: Machine, n_kv: float = 512) -> ChunkSize:
    """A chunk on a machine whose last prompt and step were measured."""
    chunk = ChunkSize()
    chunk.step_took(machine(1, n_kv))
    chunk.prompt_took(300, machine(300, n_kv))
    return chunk


@given(
    st.lists(st.tuples(st.integers(0, 700), st.floats(0, 1e4)), max_size=12),
    st.integers(1, 600),
    st.integers(0, 3),
    st.sampled_from([small, large, None]),
)
def test_every_batch_is_within_its_limits(
    turns: list[tuple[int, float]], n_batch: int, n_decoded: int, machine: Machine | None
) -> None:
    wants = [Want(i, n, waited) for i, (n, waited) in enumerate(turns)]
    shares = compose(wants, known(machine) if machine else ChunkSize(), n_batch, n_decoded)
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


@pytest.mark.parametrize(("machine", "n_answers"), [(small, 1), (small, 3), (dear, 1), (steep, 1)])
def test_an_answer_goes_on_and_the_prompt_takes_little_longer(machine: Machine, n_answers: int) -> None:
    reading = read(machine, n_answers)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.4


def test_where_small_chunks_cost_thrice_as_much_the_tiled_one_is_taken() -> None:
    """A billion parameters over 2,000 cells: a token costs 16 ms below 64 tokens, 5 from there on."""
    reading = read(billion, n_past=1800)
    assert reading.over_alone <= 1.6
    assert reading.tok_s >= reading.least
    assert max(read(billion).gaps_ms[:8]) <= LONGEST_GAP_MS, "while it fits, the gap is kept"


def test_a_dense_model_keeps_the_gap_and_the_prompt_takes_little_longer() -> None:
    """Half the answer's speed would double the prompt's time, and an odd token in each batch take a quarter of it."""
    reading = read(dense)
    assert max(reading.gaps_ms) <= reading.longest
    assert reading.tok_s >= reading.least
    assert reading.over_alone <= 1.4


def test_a_small_chunk_and_the_answers_tokens_come_in_fours() -> None:
    chunk = ChunkSize()
    chunk.step_took(100.0)
    chunk.prompt_took(512, 512 * 12.0)
    assert chunk.n_tokens == 16
    for n_answers, n in ((1, 15), (2, 14), (4, 16), (5, 15)):
        shares = compose([*(Want(i, 0) for i in range(n_answers)), Want(99, 500)], chunk, 512, 9)
        assert shares[-1] == Share(99, n)
    chunk.chunk_took(15, 200.0, along=True)
    assert chunk.n_tokens == 25, "it is the same chunk, without the odd tokens"


def test_the_first_chunk_is_as_large_whatever_was_measured_first() -> None:
    """An answer's steps, or another prompt: a chunk leaves room for a step."""
    first, last = ChunkSize(), ChunkSize()
    first.step_took(100.0)
    first.prompt_took(300, 3600.0)
    last.prompt_took(300, 3600.0)
    last.step_took(100.0)
    assert first.n_tokens == last.n_tokens == 16


def test_a_slow_model_keeps_half_its_speed() -> None:
    """A step of 250 ms: the answer's tokens go along with a few of the prompt, since a batch costs its weights."""
    reading = read(large)
    assert reading.longest == pytest.approx(500, rel=0.1)
    assert statistics.median(reading.gaps_ms) <= 1.05 * reading.longest, "the least chunk and the answer's token"
    assert max(reading.gaps_ms) <= 1.25 * reading.longest
    assert reading.tok_s >= 0.45e3 / reading.before_ms
    assert reading.over_alone <= 3.5, "a token of the prompt at a time would take 4.8 times as long as alone"


def test_a_machine_that_becomes_slower_is_followed_within_a_few_batches() -> None:
    """Other programs take more than half of it while the prompt is read."""
    n_batches = 0

    def machine(n: int, n_kv: float) -> float:
        nonlocal n_batches
        n_batches += 1
        return small(n, n_kv) * (2.2 if n_batches > 60 else 1)

    gaps_ms = read(machine).gaps_ms
    assert sum(gap > 1.25 * LONGEST_GAP_MS for gap in gaps_ms) <= 4
    assert max(gaps_ms[len(gaps_ms) // 2 :]) <= 1.25 * LONGEST_GAP_MS


def test_a_machine_that_is_quick_again_is_followed_within_a_few_batches() -> None:
    """For a hundred tokens it is three times as slow; then chunks large enough for tiles are used again."""
    reading = read(lambda n, n_kv: small(n, n_kv) * (3 if 700 <= n_kv < 800 else 1))
    assert reading.over_alone <= 1.5, "small chunks, which tell nothing of large ones, would make it 1.7"
    assert sum(gap > LONGEST_GAP_MS for gap in reading.gaps_ms) <= 4


def test_a_job_takes_half_of_the_time_and_ends() -> None:
    chunk, n_left, n_decoded, jobs_ms, answers_ms, longest = known(small), N_PROMPT, 0, 0.0, 0.0, 0.0
    while n_left:
        shares = compose([Want(0, 0), Want(1, n_left, is_job=True)], chunk, 512, n_decoded)
        parts = {share.seq_id: share.n_tokens for share in shares}
        n_read, n = parts.get(1, 0), sum(parts.values())
        ms = small(n, 512)
        if n_read:
            chunk.chunk_took(n_read, ms, along=n > n_read)
            jobs_ms, longest, n_decoded = jobs_ms + ms, max(longest, ms), 0
        else:
            chunk.step_took(ms)
            answers_ms, n_decoded = answers_ms + ms, n_decoded + 1
        n_left -= n_read
    assert jobs_ms - longest <= answers_ms <= jobs_ms + longest


@pytest.mark.parametrize("together", [True, False])
def test_a_job_gets_what_prompts_leave(together: bool) -> None:
    wants = [Want(0, 100, is_job=True), Want(1, 50)]
    assert compose(wants, ChunkSize(), 64, together=together)[0] == Share(1, 50)
    assert compose(wants, ChunkSize(), 64)[1:] == (Share(0, 14),)
    assert compose(wants[:1], ChunkSize(), 64) == (Share(0, 64),)


def test_a_chunk_is_halved_and_doubled_by_what_the_last_one_took() -> None:
    chunk = known(small)
    assert chunk.n_tokens == TILE
    chunk.chunk_took(TILE, 500.0, along=False)
    assert chunk.n_tokens == TILE // 2
    chunk.chunk_took(TILE // 2, 200.0, along=True)
    assert chunk.n_tokens == TILE // 2
    chunk.chunk_took(20, 100.0, along=True)
    assert chunk.n_tokens == TILE // 2, "the rest of a prompt tells nothing"
    chunk.chunk_took(TILE // 2, 100.0, along=True)
    assert chunk.n_tokens == TILE


def test_a_small_chunk_has_as_many_tokens_as_the_gap_allows() -> None:
    chunk, sizes = ChunkSize(), []
    chunk.step_took(40.0)
    for _ in range(8):
        sizes.append(chunk.n_tokens)
        chunk.chunk_took(chunk.n_tokens, 33 + 9 * (chunk.n_tokens + 1), along=True)
    assert sizes[:3] == [4, 8, 16]
    assert 33 + 9 * (sizes[-1] + 1) == pytest.approx(AIM * LONGEST_GAP_MS, abs=9)
    assert sizes[-1] == sizes[-2]


def test_even_the_rest_of_a_prompt_tells_that_it_took_too_long() -> None:
    chunk = known(small)
    assert chunk.n_tokens == TILE
    chunk.chunk_took(54, 440.0, along=True)
    assert chunk.n_tokens == TILE // 2


def test_a_few_tokens_more_have_no_batch_of_their_own() -> None:
    chunk = known(small)
    chunk.chunk_took(TILE, 500.0, along=False)
    assert chunk.n_tokens == 32
    assert compose([Want(0, 0), Want(1, 40)], chunk, 512, 9) == (Share(0, 1), Share(1, 40))
    assert compose([Want(0, 0), Want(1, 41)], chunk, 512, 9) == (Share(0, 1), Share(1, 31))


def test_the_first_of_several_prompts_is_read_first_and_a_short_one_beside_it() -> None:
    chunk = known(small)
    chunk.chunk_took(TILE, 500.0, along=False)
    alike = [Want(0, 0), *(Want(seq, 40) for seq in (5, 3, 4))]
    assert compose(alike, chunk, 512, 9) == (Share(0, 1), Share(5, 31))
    short = [Want(0, 0), Want(3, 1000), Want(4, 500), Want(5, 10)]
    assert compose(short, chunk, 512, 9) == (Share(0, 1), Share(3, 16), Share(5, 10), Share(4, 5))


def test_no_prompt_waits_for_ever() -> None:
    """A new short one comes with each batch, and the long one is read in twice as many batches as alone."""
    left, n_batches = 1024, 0
    while left:
        wants = [Want(1, left), Want(2 + n_batches, 300)]
        left -= sum(share.n_tokens for share in compose(wants, known(small), 256) if share.seq_id == 1)
        n_batches += 1
    assert n_batches <= 2 * 1024 / 256


def test_a_half_that_costs_as_much_is_given_up() -> None:
    chunk = known(small)
    for _ in range(5):
        chunk.chunk_took(TILE, 350.0, along=False)
        if chunk.n_tokens == TILE // 2:
            chunk.chunk_took(TILE // 2, 300.0, along=True)
        assert chunk.n_tokens == TILE
    chunk.chunk_took(TILE, 1100.0, along=False)
    assert chunk.n_tokens == TILE // 2, "up to two and a half gaps"


def test_larger_chunks_have_a_batch_of_their_own() -> None:
    """The answers' tokens are then computed as if they were alone."""
    wants, chunk = [Want(0, 0), Want(1, 10 * TILE)], known(small)
    assert compose(wants, chunk, 512) == (Share(1, TILE),)
    chunk.chunk_took(TILE, small(TILE, 512), along=False)
    assert compose(wants, chunk, 512) == (Share(0, 1),)
    assert compose(wants, chunk, 512, 9) == (Share(1, TILE),)
    assert compose([Want(0, 0), Want(1, 20)], chunk, 512, 9) == (Share(0, 1), Share(1, 20))


def test_odd_tokens_are_read_first() -> None:
    """Left for the end, 50 tokens over 2,300 cells took as long as 200."""
    assert compose([Want(0, 0), Want(1, 3 * TILE + 5)], known(small), 512, 9) == (Share(0, 1), Share(1, 5))


def test_before_anything_was_measured_a_chunk_is_small() -> None:
    shares = compose([Want(0, 0), Want(1, N_PROMPT)], ChunkSize(), 512)
    assert 1 < sum(share.n_tokens for share in shares) <= 32


def test_a_prompt_alone_is_read_in_whole_batches() -> None:
    assert compose([Want(1, N_PROMPT)], known(small), 512) == (Share(1, 512),)


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    left = {1: 5000, 2: 100}
    for _ in range(2):
        for share in compose([Want(seq, n) for seq, n in left.items() if n], known(small), 512):
            left[share.seq_id] -= share.n_tokens
    assert left[2] == 0
    assert left[1] == 5000 - 2 * 512 + 100


def test_prompts_are_read_beside_more_answers_than_a_batch_holds() -> None:
    wants, chunk = [Want(seq, 0, 10.0) for seq in range(5)] + [Want(9, 50)], known(small)
    chunk.chunk_took(2, small(2, 256), along=False)
    assert compose(wants, chunk, 2, 3) == (Share(9, 2),)
    assert [share.seq_id for share in compose(wants, chunk, 2, 2)] == [0, 1], "every answer has a token first"


def test_more_turns_than_tokens_take_turns() -> None:
    waited = dict.fromkeys(range(5), 0.0)
    for _ in range(20):
        shares = compose([Want(seq, 0, w) for seq, w in waited.items()], known(small), 2)
        served = {share.seq_id for share in shares}
        waited = {seq: 0.0 if seq in served else w + 10 for seq, w in waited.items()}
        assert max(waited.values()) <= 20


def test_one_sequence_a_batch_where_the_engine_cannot_have_more() -> None:
    """Answers have their steps one after another, and both prompts are read between them."""
    waited, left, n_decoded, order = {0: 30.0, 1: 20.0}, {8: 200, 9: 40}, 0, list[int]()
    chunk = known(small)
    chunk.chunk_took(1, small(1, 256), along=False)
    while any(left.values()):
        wants = [Want(seq, 0, ms) for seq, ms in waited.items()] + [Want(seq, n) for seq, n in left.items() if n]
        (share,) = compose(wants, chunk, 512, n_decoded, together=False)
        order.append(share.seq_id)
        waited = {seq: 0.0 if seq == share.seq_id else ms + 10 for seq, ms in waited.items()}
        n_decoded = n_decoded + 1 if share.seq_id in waited else 0
        if share.seq_id in left:
            assert small(share.n_tokens, 256) <= LONGEST_GAP_MS
            left[share.seq_id] -= share.n_tokens
            chunk.chunk_took(share.n_tokens, small(share.n_tokens, 256), along=False)
    answers = [seq for seq in order if seq in waited]
    assert answers == [0, 1] * (len(answers) // 2)
    assert order.count(8) == 3, "the odd tokens, then tiles"
