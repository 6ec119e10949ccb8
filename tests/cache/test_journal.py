"""The journal: any earlier map is rebuilt exactly, memory is bounded, recording is cheap."""

import random
import statistics
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.journal import Journal, Operation, recording
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheMap
from kvdesk.errors import UserError
from tests.cache.journals import FACTS, Player, assert_same_maps, maps_of, one_token


@settings(max_examples=8)
@given(
    facts=st.sampled_from(FACTS),
    unified=st.booleans(),
    swa_full=st.booleans(),
    n_seq_max=st.sampled_from([3, 70]),
    seed=st.integers(0, 2**32 - 1),
    small=st.booleans(),
)
def test_every_state_is_rebuilt(
    facts: ModelFacts, unified: bool, swa_full: bool, n_seq_max: int, seed: int, small: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(recording, "_CHUNK_OPERATIONS", 3)
            patch.setattr(recording, "_SEGMENT_CHUNKS", 2)
        player = Player(facts, unified, swa_full, n_seq_max, seed)
        states = player.play(30)
    journal = player.journal
    assert (journal.recording().last, len(journal.recording())) == (player.mirror.operation, 30)
    for number, maps in states.items():
        assert_same_maps(journal.recording().state_at(number), maps)
    for entry in journal.recording().operations(0, journal.recording().last):
        before, after = states[entry.operation.number - 1], states[entry.operation.number]
        found = journal.recording().difference(entry.operation.number)
        assert sum(len(d.index) for d in found) == entry.n_cells == _n_changed(before, after)


def _n_changed(before: tuple[CacheMap, ...], after: tuple[CacheMap, ...]) -> int:
    n = 0
    for old_map, new_map in zip(before, after, strict=True):
        for old, new in zip(old_map.streams, new_map.streams, strict=True):
            was, now = old.columns(old.size), new.columns(new.size)
            changed = (was.pos != now.pos) | (was.token != now.token) | (was.written_at_op != now.written_at_op)
            n += int((changed | (was.seq_bits != now.seq_bits).any(axis=1)).sum())
    return n


def test_operations_come_back_as_recorded() -> None:
    player = Player(FACTS[0], True, True, 3, seed=5)
    player.play(10)
    operation = Operation(
        player.mirror.operation + 1, 1.7e9 + 0.25, "seq_rm", "llama_memory_seq_rm(…, -1)", 0.125, "a\nb"
    )
    player.mirror.seq_rm(0, 1, -1)
    player.journal.record([operation])
    assert player.journal.recording().operations(operation.number, operation.number)[0].operation == operation
    packed = player.journal._recorder
    packed._pack()
    assert player.journal.recording().operations(operation.number, 10**9)[0].operation == operation


def test_an_operation_left_out_is_part_of_the_next() -> None:
    mirror = one_token(0, 0, None)[0]
    journal = Journal(mirror)
    mirror.seq_rm(0, -1, -1)  # not recorded
    decoded = mirror.decode(Batch([3], [0], [(1,)], [True]), 0)
    journal.record([Operation(mirror.operation, 1.0, "decode")], decoded)
    assert_same_maps(journal.recording().state_at(mirror.operation), maps_of(mirror))
    assert [(d.n_freed, d.n_placed) for d in journal.recording().difference(mirror.operation)] in (
        [(1, 1)],
        [(0, 0)],
        [(1, 0)],
    )


def test_a_journal_may_begin_late() -> None:
    mirror, _ = one_token(0, 0, None)
    before = maps_of(mirror)
    journal = Journal(mirror)
    mirror.seq_cp(0, 1, -1, -1)
    journal.record([Operation(mirror.operation, 1.0, "seq_cp")])
    assert journal.recording().start == 1
    assert_same_maps(journal.recording().state_at(1), before)
    assert_same_maps(journal.recording().state_at(2), maps_of(mirror))
    for number in (0, 3):
        with pytest.raises(UserError, match="from operation 1 to 2"):
            journal.recording().state_at(number)


def test_oldest_are_dropped_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_CHUNK_OPERATIONS", 16)
    mirror, _ = one_token(0, 0, None)
    limit = 100_000
    journal = Journal(mirror, max_bytes=limit)
    states = {}
    for _ in range(3000):
        _, decoded = one_token(0, random.Random(mirror.operation).randrange(49_000), mirror)
        if decoded is None:
            mirror.seq_rm(0, -1, -1)
        journal.record([Operation(mirror.operation, float(mirror.operation), "decode")], decoded)
        if mirror.operation % 97 == 0:
            states[mirror.operation] = maps_of(mirror)
        assert journal.n_bytes <= limit
    frozen = journal.recording()
    assert frozen.start > 1
    assert frozen.first == frozen.start + 1
    assert len(journal.recording()) == frozen.last - frozen.start
    for number, maps in states.items():
        if number >= frozen.start:
            assert_same_maps(frozen.state_at(number), maps)
        else:
            with pytest.raises(UserError):
                frozen.state_at(number)


def test_a_recording_stays_as_it_was() -> None:
    player = Player(FACTS[1], True, False, 3, seed=8)
    states = player.play(12)
    frozen = player.journal.recording()
    player.play(12)
    assert len(frozen) == 12
    assert_same_maps(frozen.state_at(12), states[12])


def test_recording_a_token_is_cheap() -> None:
    """Measured: about 10 us, packing included 18; the bound is for busy machines."""
    mirror = Mirror(plan(FACTS[0], ContextParams(n_ctx=32_768, n_seq_max=8, kv_unified=True)))
    journal = Journal(mirror)
    times = []
    for i in range(3000):
        decoded = mirror.decode(Batch([i], [i], [(0,)], [True]), 0)
        operation = Operation(mirror.operation, 1.7e9 + i, "decode", f"llama_decode(1 token of seq 0 at {i})", 8.0)
        before = time.thread_time()
        journal.record([operation], decoded)
        times.append(time.thread_time() - before)
    assert statistics.median(times) < 60e-6
    assert statistics.mean(times) < 100e-6


def test_an_earlier_state_of_a_large_map_is_fast() -> None:
    mirror = Mirror(plan(FACTS[0], ContextParams(n_ctx=131_072, n_seq_max=4, n_batch=4096, kv_unified=True)))
    journal = Journal(mirror)
    rng = np.random.default_rng(0)
    for start in range(0, 126_976, 4096):
        tokens = rng.integers(0, 49_000, 4096).tolist()
        decoded = mirror.decode(Batch(tokens, range(start, start + 4096), [(0,)] * 4096, [False] * 4096), 0)
        journal.record([Operation(mirror.operation, float(start), "decode", "prefill")], decoded)
    times = []
    for number in range(journal.recording().first, journal.recording().last + 1, 4):
        before = time.thread_time()
        journal.recording().state_at(number)
        times.append(time.thread_time() - before)
    assert statistics.median(times) < 0.3
