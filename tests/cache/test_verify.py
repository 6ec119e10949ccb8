"""Dumps are read, differences are found and named, and a wrong map is rebuilt from the engine's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kvdesk.cache.batch import Batch
from kvdesk.cache.blob import parse_state
from kvdesk.cache.cells import StreamCells
from kvdesk.cache.dump import (
    SlotDump,
    parse_log,
    render_position_map,
    render_sequence_map,
)
from kvdesk.cache.geometry import ContextParams, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import FindSlotLine, SpanLine
from kvdesk.cache.verify import Difference, compare_blob, compare_lines, compare_map, compare_spans
from tests.cache.engine import Engine, engine

PARAMS = ContextParams(n_ctx=256, n_seq_max=12, n_batch=64, n_ubatch=32, kv_unified=True)


def turn(n: int, start: int, seq_id: int) -> Batch:
    return Batch(range(n), range(start, start + n), [(seq_id,)] * n, [False] * n)


def both(real: Engine, mirror: Mirror, batch: Batch) -> list[SlotDump]:
    real.take_dumps()
    record = mirror.decode(batch, real.decode(batch), real.pos_max)
    dumps = real.take_dumps()
    assert compare_lines(record.slots, dumps) is None
    return dumps


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
    cells = StreamCells(512, 4)
    index = np.array([0, 3, 255, 256, 511])
    seq_ids = [(0,), (1, 2), (3,), (0,), (1,)]
    cells.place(index, np.array([0, 12345, 7, 99, 1], dtype=np.int32), seq_ids, np.zeros(5, dtype=np.int32), 1)
    frozen = cells.freeze()
    marks = render_sequence_map(frozen).replace(" *\n", "").strip()
    assert [(i, mark) for i, mark in enumerate(marks) if mark != "."] == [
        (0, "0"), (3, "M"), (255, "3"), (256, "0"), (511, "1")
    ]  # fmt: skip
    line = render_position_map(frozen).split("\n")[1]
    assert line.startswith("0    .    .    12345.    ")


def test_differences_name_the_cell(models: dict[str, Path]) -> None:
    with engine(models["attention"], PARAMS) as real:
        mirror = Mirror(plan(real.facts(), PARAMS))
        both(real, mirror, turn(20, 0, 0))
        both(real, mirror, turn(20, 0, 11))
        dump = both(real, mirror, turn(1, 20, 0))[-1]
        mirror = Mirror(plan(real.facts(), PARAMS))
        mirror.decode(turn(20, 0, 0), 0)
        mirror.decode(turn(20, 0, 11), 0)
        right = mirror.caches[0].freeze()
        assert compare_map(right, 0, dump) is None
        mirror.caches[0].streams[0].pos[25] = 9
        found = compare_map(mirror.caches[0].freeze(), 0, dump)
        assert found == Difference("position map", "position 9", "'5'", "kv", 0, 25)
        mirror.caches[0].streams[0].pos[25] = 5
        mirror.caches[0].streams[0].bits[25] |= np.uint64(1)
        found = compare_map(mirror.caches[0].freeze(), 0, dump)
        assert found is not None
        assert (found.cell, found.mirror) == (25, "sequences 0, 11")
        assert "cell 25" in str(found)
        mirror.decode(turn(1, 20, 0), 0)
        blob = compare_blob(mirror, parse_state(real.state(), mirror.geometry))
        assert blob == Difference("sequences", "sequences 0, 11", "sequence 11", "kv", 0, 25)
        mirror.seq_rm(0, 5, -1)
        spans = compare_spans(mirror, real.pos_min, real.pos_max)
        assert spans == Difference("positions of sequence 0", "0 to 4", "0 to 20")
