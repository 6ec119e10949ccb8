"""A state with fillers in its holes brings every cell back to its index, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.blob import BlobError, parse_state
from kvdesk.cache.geometry import ContextParams, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.spread import spread_blob, spread_size
from kvdesk.cache.verify import compare_blob
from tests.cache.engine import engine
from tests.cache.journals import assert_same_maps
from tests.cache.test_compaction import CASES, N_SEQ, fill, logits, played, snapshot_of
from tests.places import SHARED_MODELS


@pytest.mark.parametrize(("name", "unified", "flash_attn", "type_kv"), CASES)
def test_every_cell_comes_back_to_its_index(
    models: dict[str, Path], name: str, unified: bool, flash_attn: bool, type_kv: str
) -> None:
    path = models.get(name, SHARED_MODELS / f"{name}.gguf")
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    asked = ContextParams(
        n_ctx=256 if unified else 1024,
        n_seq_max=N_SEQ,
        n_batch=64,
        n_ubatch=64,
        kv_unified=unified,
        flash_attn=flash_attn,
        type_k=type_kv,
        type_v=type_kv if flash_attn else "f16",
    )
    with engine(path, asked) as real:
        mirror = Mirror(plan(real.facts(), asked))
        fill(real, mirror, np.random.default_rng(4))
        for seq in (0, 1):
            for side in (real, mirror):
                side.seq_rm(*((seq, -1, -1) if mirror.states else (seq, 2, 5)))
        blob, maps = real.state(), snapshot_of(mirror).maps
        holes = sum(stream.high_water - stream.used for cache in maps for stream in cache.streams)
        assert holes or (mirror.states and not unified), "a sequence without cells leaves none in a stream of its own"
        before = logits(real)
        spread = spread_blob(blob, maps, mirror.geometry)
        assert len(spread.blob) == spread_size(blob, maps, mirror.geometry)
        assert real.set_state(bytes(spread.blob)) == len(spread.blob)
        parsed = parse_state(spread.blob, mirror.geometry)
        assert mirror.restore(parsed, known=spread.maps).ok
        assert compare_blob(mirror, parsed) is None
        for seq, first in spread.fillers:
            assert real.seq_rm(seq, first, -1)
            assert mirror.seq_rm(seq, first, -1)
        at_the_front = [replace(c, streams=tuple(replace(s, head=0) for s in c.streams)) for c in maps]
        assert_same_maps(snapshot_of(mirror).maps, tuple(at_the_front))
        assert real.state() == blob
        after = logits(real)
    for seq in range(N_SEQ):
        assert np.array_equal(after[seq], before[seq])


def test_a_blob_of_other_cells_is_refused() -> None:
    mirror = played()
    with pytest.raises(BlobError):
        spread_blob(b"\1\0\0\0x" + bytes(16), snapshot_of(mirror).maps, mirror.geometry)
