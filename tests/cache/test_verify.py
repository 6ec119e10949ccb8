"""Dumps are read, differences are found and named, and a wrong map is rebuilt from the engine's own."""

import numpy as np
import pytest

from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import SlotDump, parse_log, read_cells, render_position_map, render_sequence_map
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import FindSlotLine, SpanLine
from kvdesk.cache.snapshot import CacheMap
from kvdesk.cache.state.blob import parse_state
from kvdesk.cache.verify import Difference, compare_blob, compare_map, compare_spans
from tests.cache.test_blob import cells, full

PARAMS = ContextParams(n_ctx=256, n_seq_max=12, n_batch=64, n_ubatch=32, kv_unified=True)


def turn(n: int, start: int, seq_id: int) -> Batch:
    return Batch(range(n), range(start, start + n), [(seq_id,)] * n, [False] * n)


def dumped(cells: CacheMap) -> SlotDump:
    """What the engine prints of these cells before a slot search."""
    stream = cells.streams[0]
    lines = (render_sequence_map(stream), render_position_map(stream))
    (dump,) = parse_log(["find_slot: stream[0], n = 1, used = 40, head = 40, size = 256, n_swa = 0\n", *lines])
    return dump


def test_level_1_lines() -> None:
    dumps = parse_log(
        [
            "llama_decode: something else\n",
            "find_slot: stream[2], n =    40, used =    30, head =     7, size =   256, n_swa =    32\n",
            "find_slot: stream[2] min[0] =     3, max[0] =    33\n",
            "find_slot: stream[2] min[11] =    -1, max[11] =    12\n",
            "apply_ubatch: purging positions [0, 3] of sequence 0 from KV cache\n",
        ]
    )
    assert dumps == [SlotDump(FindSlotLine(2, 40, 30, 7, 256, 32), (SpanLine(2, 0, 3, 33), SpanLine(2, 11, -1, 12)))]


def test_maps_are_written_as_the_engine_does() -> None:
    """A character for the sequence of each cell, five for its position; 12345 leaves no gap to the next cell."""
    stream = StreamCells(512, 4)
    index = np.array([0, 3, 255, 256, 511])
    seq_ids = [(0,), (1, 2), (3,), (0,), (1,)]
    stream.place(index, np.array([0, 12345, 7, 99, 1], dtype=np.int32), seq_ids, np.zeros(5, dtype=np.int32), 1)
    frozen = stream.freeze()
    marks = render_sequence_map(frozen).replace(" *\n", "").strip()
    assert [(i, mark) for i, mark in enumerate(marks) if mark != "."] == [
        (0, "0"), (3, "M"), (255, "3"), (256, "0"), (511, "1")
    ]  # fmt: skip
    line = render_position_map(frozen).split("\n")[1]
    assert line.startswith("0    .    .    12345.    ")


@pytest.mark.parametrize("first", [0, 9_990, 100_000])
def test_maps_are_read_back(first: int) -> None:
    """Columns without a gap between them too; what a row of ids from 10 on holds is unknown."""
    stream = StreamCells(512, 4)
    index = np.array([*range(100, 150), 300, 511])
    seq_ids = [(0,)] * 25 + [(1, 2)] * 25 + [(3,), (3,)]
    positions = np.array([*range(first, first + 50), first, first + 1], dtype=np.int32)
    stream.place(index, positions, seq_ids, np.zeros(52, dtype=np.int32), 1)
    cells = stream.freeze()
    line = f"find_slot: stream[0], n = 512, used = 52, head = {cells.head}, size = 512, n_swa = 0"
    spans = [f"find_slot: stream[0] min[{s}] = {first + a}, max[{s}] = {first + b}" for s, a, b in
             ((0, 0, 24), (1, 25, 49), (2, 25, 49), (3, 0, 1))]  # fmt: skip
    maps = [render_sequence_map(cells), render_position_map(cells)]
    (dump,) = parse_log([line, *maps, *spans])
    found = read_cells(dump)
    if first == 100_000:
        assert found is None  # six digits beside free cells of five characters cannot be cut for sure
        return
    assert (found.pos == cells.pos).all()
    assert (found.seq_bits[:, :1] == cells.seq_bits).all()
    assert (found.size, found.used, found.high_water, found.head) == (512, 52, 512, cells.head)
    (wide,) = parse_log([line, maps[0].replace("3", "13", 1), maps[1], *spans])
    found = read_cells(wide)
    assert not found.seq_bits[256:].any()
    assert (found.seq_bits[:256, :1] == cells.seq_bits[:256]).all()
    (none,) = parse_log([line.replace("used = 52", "used = 51"), *maps, *spans])
    assert read_cells(none) is None


def test_differences_name_the_cell() -> None:
    """The engine's side is what it prints and saves of these cells, which every audit proves."""
    mirror = Mirror(plan(ModelFacts("x", "attention"), PARAMS))
    mirror.decode(turn(20, 0, 0), 0)
    mirror.decode(turn(20, 0, 11), 0)
    dump, stream = dumped(mirror.caches[0].freeze()), mirror.caches[0].streams[0]
    assert compare_map(mirror.caches[0].freeze(), 0, dump) is None
    stream.pos[25] = 9
    found = compare_map(mirror.caches[0].freeze(), 0, dump)
    assert found == Difference("position map", "position 9", "'5'", "kv", 0, 25)
    stream.pos[25] = 5
    stream.bits[25] |= np.uint64(1)
    found = compare_map(mirror.caches[0].freeze(), 0, dump)
    assert (found.cell, found.mirror) == (25, "sequences 0, 11")
    assert "cell 25" in str(found)
    saved = full(cells(*((pos, (seq_id,)) for seq_id in (0, 11) for pos in range(20))))
    blob = compare_blob(mirror, parse_state(saved, mirror.geometry))
    assert blob == Difference("sequences", "sequences 0, 11", "sequence 11", "kv", 0, 25)
    mirror.seq_rm(0, 5, -1)
    spans = compare_spans(mirror, lambda _: 0, lambda _: 19)
    assert spans == Difference("positions of sequence 0", "0 to 4", "0 to 19")
