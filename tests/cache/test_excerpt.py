"""Rows of a saved state chosen and named anew: what another context reads is what was chosen, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, plan
from kvdesk.cache.state.blob import BlobError, StreamBlob, parse_seq_state, parse_state
from kvdesk.cache.state.excerpt import excerpt
from kvdesk.settings import ContextSettings
from tests.backends.local.tiny_models import written
from tests.cache.contexts import opened

SETTINGS = ContextSettings(n_ctx=512, n_seq_max=2, n_batch=32, n_ubatch=32)
CASES = [{}, {"kv_unified": False}, {"flash_attn": False}, {"type_k": "q8_0", "type_v": "q8_0"}]


def rows(blob: bytes, stream: StreamBlob, kind: str) -> list[np.ndarray]:
    """Each tensor, a row for each cell."""
    found = []
    for section in stream.sections:
        if section.kind != kind:
            continue
        data = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset)
        if section.n_rows:
            data = data.reshape(section.n_rows, stream.n_cells, -1).transpose(1, 0, 2)
        found.append(data.reshape(stream.n_cells, -1))
    return found


@pytest.mark.parametrize("update", CASES, ids=str)
@pytest.mark.parametrize("name", ["llama", "iswa", "qwen2vl"])
@pytest.mark.parametrize("whole", [False, True])
def test_the_chosen_rows_are_those_of_the_state(
    name: str, update: dict[str, object], whole: bool, tiny_folder: Path
) -> None:
    settings = SETTINGS.model_validate(SETTINGS.model_dump() | update)
    with opened(written(tiny_folder, name), settings) as context:
        context.decode(Batch.of(0, 0, [5, 6, 7, 8]))
        context.decode(Batch.of(1, 0, list(range(10, 22))))
        geometry = context.traits.geometry
        blob = bytes(context.states.get() if whole else context.states.seq_get(1))
        state = parse_state(blob, geometry) if whole else parse_seq_state(blob, geometry)
        stream = 1 if geometry.n_stream > 1 else 0
        offset = 4 if whole and geometry.n_stream == 1 else 0
        chosen = np.array([2, 3, 7]) + offset
        pos = np.array([2, 3, 9], np.int32)
        made = bytes(excerpt(blob, geometry, [(chosen, pos)] * len(state.caches), whole=whole, stream=stream))
        single = plan(geometry.facts, ContextParams(n_ctx=256, n_seq_max=1, flash_attn=settings.flash_attn))
        for (read,), streams in zip(parse_seq_state(made, single).caches, state.caches, strict=True):
            assert read.pos.tolist() == [2, 3, 9]
            assert read.seq_ids == ((0,),) * 3
            for kind in ("k", "v"):
                for one, two in zip(rows(made, read, kind), rows(blob, streams[stream], kind), strict=True):
                    np.testing.assert_array_equal(one, two[chosen])
    with opened(written(tiny_folder, name), settings.model_copy(update={"n_seq_max": 1})) as other:
        assert other.states.seq_set(0, made)
        assert other.memory.seq_pos_max(0) == 9


def test_a_damaged_state_has_no_excerpt(tiny_folder: Path) -> None:
    with opened(written(tiny_folder, "llama"), SETTINGS) as context:
        context.decode(Batch.of(0, 0, [5, 6, 7]))
        blob = bytes(context.states.seq_get(0))
        choice = np.array([0]), np.array([0], np.int32)
        with pytest.raises(BlobError):
            excerpt(blob[:-1], context.traits.geometry, [choice], whole=False)
