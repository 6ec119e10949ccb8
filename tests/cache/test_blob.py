"""State blobs: what is read from real ones, and that a damaged one is a BlobError and nothing worse."""

import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, Geometry, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.state.blob import SEQ_MAGIC, BlobError, parse_cells, parse_seq_state, parse_state
from kvdesk.settings import ContextSettings
from tests.cache.contexts import opened

PLAIN = plan(ModelFacts("x", "attention"), ContextParams(n_ctx=256, n_seq_max=2, kv_unified=True))
HYBRID = plan(ModelFacts("x", "hybrid"), ContextParams(n_ctx=256, n_seq_max=2, kv_unified=True))
INDEXED = plan(ModelFacts("x", "hybrid_idx"), ContextParams(n_ctx=256, n_seq_max=2, kv_unified=True))
COMPRESSED = plan(ModelFacts("x", "dsv4", mla=True), ContextParams(n_ctx=256, n_seq_max=1))


def cells(*table: tuple[int, tuple[int, ...]], layers: int = 1, v_trans: bool = False) -> bytes:
    """One stream of an attention cache: rows of 4 bytes of K and of V per cell."""
    n = len(table)
    out = struct.pack("<II", 1, n)
    for pos, seq_ids in table:
        out += struct.pack(f"<iI{len(seq_ids)}i", pos, len(seq_ids), *seq_ids)
    if not n:
        return out
    out += struct.pack("<II", v_trans, layers)
    out += b"".join(struct.pack("<iQ", 1, 4) + bytes(4 * n) for _ in range(layers))
    for _ in range(layers):
        out += struct.pack("<iII", 1, 2, 3) + bytes(6 * n) if v_trans else struct.pack("<iQ", 1, 4) + bytes(4 * n)
    return out


def full(memory: bytes, architecture: bytes = b"x") -> bytes:
    return struct.pack("<I", len(architecture)) + architecture + memory


def states(*table: tuple[int, tuple[int, ...]]) -> bytes:
    out = struct.pack("<I", len(table))
    for pos, seq_ids in table:
        out += struct.pack(f"<iI{len(seq_ids)}i", pos, len(seq_ids), *seq_ids)
    return out + struct.pack("<II", 0, 2) + 2 * (struct.pack("<iQ", 0, 8) + bytes(8 * len(table)))


@pytest.mark.parametrize("v_trans", [False, True])
def test_full(v_trans: bool) -> None:
    blob = parse_state(full(cells((3, (0,)), (4, (0, 1)), layers=2, v_trans=v_trans)), PLAIN)
    stored = blob.caches[0][0]
    assert stored.pos.tolist() == [3, 4]
    assert stored.seq_ids == ((0,), (0, 1))
    assert [s.kind for s in stored.sections] == ["k", "k", "v", "v"]
    assert {s.n_bytes for s in stored.sections} == ({8, 12} if v_trans else {8})


@pytest.mark.parametrize("n", [1, 2, 3, 64, 100])
def test_runs_of_cells_with_as_many_sequences(n: int) -> None:
    """Where one run ends and the next begins, whatever their lengths."""
    table = [(i, tuple(range(1 + (i // n) % 3 % 2))) for i in range(200)]
    stored = parse_state(full(cells(*table)), PLAIN).caches[0][0]
    assert list(zip(stored.pos.tolist(), stored.seq_ids, strict=True)) == table


def test_many_cells_in_turn_take_no_longer_than_their_number() -> None:
    """Every cell has another number of sequences than the one before: no run is longer than one."""
    blob = full(cells(*((i, (0, 1)[: 1 + i % 2]) for i in range(20_000))))
    geometry = plan(ModelFacts("x", "attention"), ContextParams(n_ctx=20_480, n_seq_max=2, kv_unified=True))
    before = time.thread_time()
    assert parse_state(blob, geometry).caches[0][0].n_cells == 20_000
    assert time.thread_time() - before < 2


def test_cells_alone() -> None:
    """Of a state that was cut off behind them, and of one that has none."""
    whole = full(cells((3, (0,)), (4, (0, 1))))
    blob = parse_cells(whole[: 12 + 1 + 12 + 16 + 8], PLAIN)
    assert [(s.pos.tolist(), s.seq_ids, s.sections) for s in blob.caches[0]] == [([3, 4], ((0,), (0, 1)), ())]
    assert parse_cells(full(cells()) + bytes(8), PLAIN).caches[0][0].n_cells == 0
    for damaged in (whole[:30], full(cells((3, (0,))), b"y"), bytes(40)):
        with pytest.raises(BlobError):
            parse_cells(damaged, PLAIN)


def test_sequence() -> None:
    blob = parse_seq_state(struct.pack("<Ii", SEQ_MAGIC, 1) + cells((3, (1,)), (4, (1,))), PLAIN)
    assert (blob.seq_id, blob.caches[0][0].pos.tolist()) == (1, [3, 4])


def test_hybrid() -> None:
    blob = parse_state(full(cells((0, (0,))) + states((0, (0, 1)))), HYBRID)
    assert blob.states == ((0, (0, 1)),)
    assert [s.n_bytes for s in blob.state_sections] == [8, 8]


@pytest.mark.parametrize("histories", [0, 1, 2])
def test_an_indexer_behind_the_states(histories: int) -> None:
    """R rows, each with a history of tokens behind it or none, S rows, and then the keys, which have no V."""
    row, history = struct.pack("<iQ", 0, 8) + bytes(8), struct.pack("<Q", 12) + bytes(12)
    rows = b"".join(row + (history if i < histories else b"") for i in range(2)) + 2 * row
    head = struct.pack("<IiIi", 1, 5, 1, 0) + struct.pack("<II", 0, 2)
    keys = struct.pack("<IIiI", 1, 1, 5, 1) + (struct.pack("<3i", 0, 0, 7) if histories else b"") + struct.pack("<i", 0)
    keys += struct.pack("<II", 0, 1) + struct.pack("<iQ", 1, 4) + bytes(4)
    blob = parse_state(full(cells((5, (0,))) + head + rows + keys), INDEXED)
    assert blob.states == ((5, (0,)),)
    assert len(blob.state_sections) == 4
    assert [(stream.pos.tolist(), stream.seq_ids) for stream in blob.follower] == [([5], ((0,),))]
    with pytest.raises(BlobError):
        parse_state(full(cells((5, (0,))) + head + rows + keys[:-1]), INDEXED)


def test_token_ids_of_an_indexers_cells_are_not_taken_for_sequences() -> None:
    """The first token id, 7, is also as many words as the rest of the table has."""
    head = (
        struct.pack("<IiIiiIi", 2, 0, 1, 2, 0, 1, 0) + struct.pack("<II", 0, 1) + struct.pack("<iQ", 0, 8) + bytes(16)
    )
    keys = struct.pack("<II", 1, 2) + struct.pack("<iI4i", 0, 1, 0, 0, 7, 2) + struct.pack("<iI4i", 0, 1, 0, 0, 81, 0)
    keys += struct.pack("<II", 0, 1) + struct.pack("<iQ", 1, 4) + bytes(8)
    blob = parse_state(full(cells((0, (2,)), (0, (0,))) + head + keys), INDEXED)
    assert blob.follower[0].seq_ids == ((2,), (0,))


def test_compressed_keys_are_passed_over() -> None:
    tensor = struct.pack("<iQQQ", 1, 2, 3, 4) + bytes(12)
    keys = struct.pack("<IIIII", 2, 3, 1, 1, 0) + tensor
    state = struct.pack("<IIIIIII", 1, 4, 8, 2, 1, 1, 0) + 2 * tensor
    raw = struct.pack("<II", 1, 0) + cells((9, (0,)))[: 4 * 5] + struct.pack("<IIiQ", 0, 1, 1, 4) + bytes(4)
    memory = struct.pack("<3I", 0x34565344, 1, 0) + raw + 3 * keys + 3 * state
    blob = parse_state(full(memory), COMPRESSED)
    assert [[stream.pos.tolist() for stream in cache] for cache in blob.caches] == [[[]], [[9]]]
    for damaged in (memory[:-1], memory + b"0", memory[:4] + b"\2" + memory[5:]):
        with pytest.raises(BlobError):
            parse_state(full(damaged), COMPRESSED)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        full(cells((0, (0,))), b"other"),
        full(cells((0, (0,))))[:-1],
        full(cells((0, (0,)))) + b"\0",
        full(struct.pack("<I", 2)),
        full(struct.pack("<II", 1, 2**32 - 1)),
        full(struct.pack("<IIiI", 1, 1, 0, 2**32 - 1)),
        full(struct.pack("<IIiIi", 1, 1, 0, 1, 999)),
        full(struct.pack("<IIiIiII", 1, 1, 0, 1, 0, 0, 2**32 - 1)),
        full(struct.pack("<IIiIiIIiQ", 1, 1, 0, 1, 0, 0, 1, 1, 2**64 - 1)),
        struct.pack("<I", 2**32 - 1),
    ],
)
def test_damaged(blob: bytes) -> None:
    with pytest.raises(BlobError):
        parse_state(blob, PLAIN)


@pytest.mark.parametrize(
    ("memory", "geometry"),
    [
        (cells((0, (0, 1))), PLAIN),
        (cells((0, ())), PLAIN),
        (cells((-1, (0,))), PLAIN),
        (cells((0, (0,))) + states((0, ()), (1, ())), HYBRID),  # the engine would abort
        (cells((0, (0,))) + states((0, (0,))), HYBRID),
    ],
)
def test_not_one_sequence(memory: bytes, geometry: Geometry) -> None:
    with pytest.raises(BlobError):
        parse_seq_state(struct.pack("<Ii", SEQ_MAGIC, 0) + memory, geometry)


def test_not_the_magic() -> None:
    with pytest.raises(BlobError):
        parse_seq_state(struct.pack("<Ii", 7, 0) + cells((0, (0,))), PLAIN)


@given(blob=st.binary(max_size=300), geometry=st.sampled_from([PLAIN, HYBRID, INDEXED, COMPRESSED]), data=st.data())
def test_any_bytes(blob: bytes, geometry: Geometry, data: st.DataObject) -> None:
    """Random bytes, and a good blob with some bytes changed."""
    good = full(cells((3, (0,)), (4, (0, 1)), (5, (1,))) + (states((5, (0,))) if geometry is HYBRID else b""))
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + data.draw(st.binary(min_size=1, max_size=8)) + good[at + 1 :]
    for candidate in (blob, full(blob), changed):
        before = time.thread_time()
        try:
            parse_state(candidate, geometry)
        except BlobError:
            pass
        assert time.thread_time() - before < 1


def test_restore_refuses_a_bad_blob_before_it_changes_anything() -> None:
    mirror = Mirror(PLAIN)
    mirror.decode(Batch([1], [0], [(0,)], [True]), 0)
    with pytest.raises(BlobError):
        mirror.restore(b"nothing")
    assert (mirror.seq_pos_max(0), mirror.operation) == (0, 1)


def test_compaction_keeps_tokens(models: dict[str, Path]) -> None:
    """Get and set of the whole state: cells move to the front, token ids go along, shared cells stay shared."""
    with opened(models["attention"], ContextSettings(n_ctx=256, n_seq_max=2, n_batch=64, n_ubatch=64)) as context:
        memory, states = context.memory, context.states
        context.decode(Batch.of(0, 0, range(60)))
        memory.seq_cp(0, 1, 40, -1)
        memory.seq_rm(0, 10, 30)
        blob = bytes(states.get())
        stream = memory.mirror.caches[0].streams[0]
        stream.pos[0] = 200  # wrong in one cell: the token of that cell alone is lost
        states.set(blob, carry=True)
        assert bytes(states.get()) == blob
        assert (stream.used, stream.high_water, stream.head) == (40, 40, 0)
        assert stream.token[:40].tolist() == [-1, *range(1, 10), *range(30, 60)]
        assert memory.seq_pos_max(1) == 59
        states.set(blob)  # any other blob: its tokens are not known
        assert set(stream.token.tolist()) == {-1}
