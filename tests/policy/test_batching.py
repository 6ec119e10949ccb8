"""Batches composed for simulated turns: nobody waits long, nobody starves, everything is decoded once."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policy.batch_times import BatchTimes
from kvdesk.policy.batching import Want, compose


def machine_ms(n_tokens: int, n_kv: int) -> float:
    """Two cores and a small model, as measured: 9, 17, 28, 48, 90 ms for 1, 2, 4, 8, 16 tokens."""
    return 4 + 5.2 * n_tokens if n_tokens <= 32 else 4.0 * n_tokens * (1 + n_kv / 8000)


@given(
    st.lists(st.tuples(st.integers(0, 700), st.floats(0, 1e4)), max_size=12),
    st.integers(1, 600),
    st.booleans(),
)
def test_every_batch_is_within_its_limits(turns: list[tuple[int, float]], n_batch: int, known: bool) -> None:
    wants = [Want(i, n, waited) for i, (n, waited) in enumerate(turns)]
    plan = compose(wants, machine_ms if known else lambda _n, _kv: None, 512, n_batch)
    parts = {share.seq_id: share.n_tokens for share in plan.shares}
    assert len(parts) == len(plan.shares)
    assert plan.n_tokens <= n_batch
    assert bool(plan.shares) == bool(wants)
    assert all(0 < n <= max(1, wants[seq].n_prefill) for seq, n in parts.items())
    decoding = [w.seq_id for w in wants if not w.n_prefill]
    if len(decoding) <= n_batch:
        assert set(decoding) <= set(parts)
    else:
        longest = max(wants[s].waited_ms for s in decoding)
        assert max(wants[seq].waited_ms for seq in parts) == longest


@pytest.mark.parametrize("n_decoding", [1, 3])
@pytest.mark.parametrize("learned", [True, False])
def test_a_decoding_conversation_while_another_prefills(n_decoding: int, learned: bool) -> None:
    """Its longest gap is at most 5 times its median, also while the machine's times are only being learned."""
    draw, times = random.Random(3), BatchTimes()
    left, gaps, n_held = 2000, [], 300
    for step in range(1500):
        prompt = left if step >= 50 else 0
        wants = [Want(i, 0) for i in range(n_decoding)] + ([Want(9, prompt)] if prompt else [])
        plan = compose(wants, times.ms if learned else machine_ms, n_held, 512)
        ms = machine_ms(plan.n_tokens, n_held) * draw.lognormvariate(0, 0.08)
        times.learn(plan.n_tokens, 256 * (1 + n_held // 256), ms)
        gaps.append(ms)
        n_held += plan.n_tokens
        left -= next((s.n_tokens for s in plan.shares if s.seq_id == 9), 0)
    assert left == 0
    quiet = statistics.median(gaps[:50])
    assert max(gaps) <= 5 * quiet
    assert max(gaps) <= 5 * statistics.median(gaps)


def test_what_is_read_already_does_not_stretch_the_steps() -> None:
    """Every step over a long prompt costs more: the reader measures by the time before it came."""

    def ms(n_tokens: int, n_kv: int) -> float:
        return 5 + 2.5 * n_tokens + 0.001 * n_tokens * n_kv

    read = 0
    while read < 2000:
        plan = compose([Want(0, 0), Want(1, 2000 - read, n_read=read)], ms, 300 + read, 512)
        read += plan.n_tokens - 1
        assert ms(plan.n_tokens, 300 + read) <= 3.2 * ms(1, 300)


def test_the_prompt_is_not_much_slower_for_it() -> None:
    left, spent = 2000, 0.0
    while left:
        plan = compose([Want(0, 0), Want(1, left)], machine_ms, 1024, 512)
        spent += machine_ms(plan.n_tokens, 1024)
        left -= plan.shares[1].n_tokens
    assert spent < 2.5 * sum(machine_ms(500, 1024) for _ in range(4))


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    left = {1: 5000, 2: 100}
    for _ in range(2):
        plan = compose([Want(seq, n) for seq, n in left.items() if n], machine_ms, 256, 512)
        for share in plan.shares:
            left[share.seq_id] -= share.n_tokens
    assert left[2] == 0
    assert left[1] == 5000 - 2 * 512 + 100


def test_more_turns_than_tokens_take_turns() -> None:
    waited = dict.fromkeys(range(5), 0.0)
    for _ in range(20):
        plan = compose([Want(seq, 0, w) for seq, w in waited.items()], machine_ms, 256, 2)
        served = {share.seq_id for share in plan.shares}
        waited = {seq: 0.0 if seq in served else w + 10 for seq, w in waited.items()}
        assert max(waited.values()) <= 20


def test_one_sequence_a_batch_where_the_engine_cannot_have_more() -> None:
    """The longest waiting first, so that nobody is left out."""
    waited = {0: 30.0, 1: 20.0, 2: 10.0}
    order = []
    for _ in range(6):
        wants = [Want(0, 0, waited[0]), Want(1, 40, waited[1]), Want(2, 0, waited[2])]
        (share,) = compose(wants, machine_ms, 256, 32, together=False).shares
        order.append(share.seq_id)
        waited = {s: 0.0 if s == share.seq_id else ms + 10 for s, ms in waited.items()}
    assert order == [0, 1, 2, 0, 1, 2]
