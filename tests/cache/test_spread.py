"""A state with fillers in its holes brings every cell back to its index, and nothing else changes."""

from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.spread import spread_blob, spread_size
from kvdesk.cache.state.blob import BlobError
from kvdesk.settings import ContextSettings
from kvdesk.values import replace
from tests.cache.contexts import opened
from tests.cache.journals import assert_same_maps
from tests.cache.test_compaction import CASES, file_of, fill, logits, played, snapshot_of


@pytest.mark.parametrize(("name", "asked"), CASES)
def test_every_cell_comes_back_to_its_index(models: dict[str, Path], name: str, asked: ContextSettings) -> None:
    with opened(file_of(models, name), asked) as context:
        memory, states = context.memory, context.states
        fill(context, np.random.default_rng(4))
        recurrent = bool(memory.mirror.states)
        for seq in (0, 1):
            memory.seq_rm(*((seq, -1, -1) if recurrent else (seq, 2, 5)))
        blob, maps = bytes(states.get()), memory.snapshot().maps
        holes = sum(stream.high_water - stream.used for cache in maps for stream in cache.streams)
        assert holes or (recurrent and not asked.kv_unified), "a sequence without cells leaves none in its own stream"
        before = logits(context)
        spread = spread_blob(blob, maps, memory.mirror.geometry)
        assert len(spread.blob) == spread_size(blob, maps, memory.mirror.geometry)
        states.set(bytes(spread.blob), known=spread.maps)
        for seq, first in spread.fillers:
            assert memory.seq_rm(seq, first, -1)
        at_the_front = [replace(c, streams=tuple(replace(s, head=0) for s in c.streams)) for c in maps]
        assert_same_maps(memory.snapshot().maps, tuple(at_the_front))
        assert bytes(states.get()) == blob
        after = logits(context)
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one, other)


def test_a_blob_of_other_cells_is_refused() -> None:
    mirror = played()
    with pytest.raises(BlobError):
        spread_blob(b"\1\0\0\0x" + bytes(16), snapshot_of(mirror).maps, mirror.geometry)
