"""The short way for token after token does what the general way does, cell by cell and line by line."""

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.batch import Batch
from kvdesk.cache.difference import map_difference
from kvdesk.cache.dump import render_lines
from kvdesk.cache.geometry import ContextParams, model_facts, plan
from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord
from kvdesk.cache.snapshot import Verification

SHAPES = {
    "unified": (0, ContextParams(n_ctx=256, n_seq_max=3, n_batch=64, n_ubatch=32, kv_unified=True)),
    "streams": (0, ContextParams(n_ctx=768, n_seq_max=3, n_batch=64, n_ubatch=32)),
    "window": (8, ContextParams(n_ctx=512, n_seq_max=3, n_batch=64, n_ubatch=32, kv_unified=True, swa_full=False)),
}
STEP = st.tuples(st.sampled_from(["run", "run", "run", "many", "rm", "cp"]), st.integers(0, 2), st.integers(1, 40))


def state(mirror: Mirror) -> list[object]:
    snapshot = mirror.snapshot(Verification("verified", 0))
    found: list[object] = [snapshot.sequences, snapshot.n_kv]
    for cells in (s for m in snapshot.maps for s in m.streams):
        found += [cells.pos.tolist(), cells.seq_bits.tolist(), cells.token.tolist(), cells.written_at_op.tolist()]
        found += [cells.head, cells.used, cells.high_water]
    return found


def facts_of(records: list[DecodeRecord]) -> list[object]:
    """What the records say, whether they tell of one decode or of several."""
    cells: dict[tuple[str, int], list[int]] = {}
    for placement in (p for record in records for ubatch in record.ubatches for p in ubatch.placements):
        cells.setdefault((placement.cache, placement.stream), []).extend(placement.cells.tolist())
    return [
        [record.operation for record in records[:1]],
        [record.last_operation for record in records[-1:]],
        [n for record in records for n in record.n_kv],
        sum(record.n_tested for record in records),
        [line for record in records for line in render_lines(record.slots)],
        cells,
    ]


@given(st.sampled_from(sorted(SHAPES)), st.lists(STEP, max_size=60))
def test_both_ways_agree(shape: str, steps: list[tuple[str, int, int]]) -> None:
    """Cells, head, marks, spans of attention and every line the engine must print: as token by token."""
    n_swa, params = SHAPES[shape]
    facts = model_facts("llama", n_swa, False, False, 0)
    short, general = Mirror(plan(facts, params)), Mirror(plan(facts, params))
    for kind, seq_id, n in steps:
        first = general.seq_pos_max(seq_id) + 1
        if kind == "run":
            records = []
            for token in range(n):
                batch = Batch.of(seq_id, first + token, (token,), "all")
                if general.predict(batch) != 0:
                    break
                records.append(general.decode(batch, 0))
            found = list(short.decode_each(Batch.of(seq_id, first, range(len(records)), "all"))) if records else []
            assert len(found) in (1, len(records))
            assert facts_of(found) == facts_of(records)
        elif kind == "many":
            batch = Batch(list(range(n)), range(first, first + n), [(seq_id,)] * n, [True] * n)
            rc = general.predict(batch)
            short.decode(batch, rc)
            general.decode(batch, rc)
        else:
            for mirror in (short, general):
                if kind == "rm":
                    mirror.seq_rm(seq_id, n, -1)
                elif shape != "streams":
                    mirror.seq_cp(seq_id, (seq_id + 1) % 3, -1, -1)
        assert state(short) == state(general)


def test_the_short_way_is_taken() -> None:
    mirror = Mirror(plan(model_facts("llama", 0, False, False, 0), SHAPES["unified"][1]))
    mirror.decode(Batch([1, 2], [0, 1], [(0,), (0,)], [False, True]), 0)
    (record,) = mirror.decode_each(Batch.of(0, 2, [3, 4]))
    assert (record.n_decodes, record.operation, record.last_operation, mirror.operation) == (2, 2, 3, 3)
    assert record.ubatches[0].placements[0].cells.tolist() == [2, 3]
    assert len(list(mirror.decode_each(Batch.of(1, 0, [3, 4])))) == 2, "an empty sequence"


def test_a_run_is_in_the_journal_token_by_token() -> None:
    mirror = Mirror(plan(model_facts("llama", 8, False, False, 0), SHAPES["window"][1]))
    mirror.decode(Batch([1, 2], [0, 1], [(0,), (0,)], [False, True]), 0)
    journal = Journal(mirror)
    (record,) = mirror.decode_each(Batch.of(0, 2, [3, 4, 5]))
    journal.record([Operation(number, 0.0, "decode") for number in range(2, 5)], record)
    recording = journal.recording()
    assert [entry.n_cells for entry in recording.operations(2, 4)] == [2, 2, 2]
    for number, n_used in ((1, 2), (2, 3), (3, 4), (4, 5)):
        for cache in recording.state_at(number):
            assert (cache.streams[0].used, cache.streams[0].head) == (n_used, n_used if number > 1 else 2)
    now = mirror.snapshot(Verification("verified", 0)).maps
    assert not any(d.n_placed or d.n_freed for d in map_difference(recording.state_at(4), now))
