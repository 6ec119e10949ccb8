"""Compaction: what is planned is what the engine does, and no conversation notices."""

import struct
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout, permute_blob, plan_compaction
from kvdesk.cache.compare import Verdict, compare_logits
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.cache.state.blob import BlobError, parse_state
from kvdesk.paths import embedded_model
from kvdesk.settings import CacheType, ContextSettings
from tests.cache.contexts import opened
from tests.cache.journals import assert_same_maps
from tests.places import SHARED_MODELS

N_SEQ = 4
FACTS = ModelFacts("x", "attention")
KINDS, FILES = ("attention", "iswa", "hybrid"), ("llama-dense", "gemma3-dense", "lfm2-dense", "qwen2vl-dense")
SETTINGS = ContextSettings(n_ctx=256, n_seq_max=N_SEQ, n_batch=64, n_ubatch=64)
STREAMS = {"n_ctx": 1024, "kv_unified": False}


def snapshot_of(mirror: Mirror) -> CacheSnapshot:
    return mirror.snapshot(Verification("mirrored", 0))


def logits(context: Context) -> list[NDArray[np.float32]]:
    """Next-token logits of every sequence, from one batch of the same token. Changes the cache."""
    pos = [context.memory.seq_pos_max(s) + 1 for s in range(N_SEQ)]
    assert context.decode(Batch([7] * N_SEQ, pos, [(s,) for s in range(N_SEQ)], [True] * N_SEQ)).rc == 0
    return [context.logits(s) for s in range(N_SEQ)]


def fill(context: Context, rng: np.random.Generator) -> None:
    """Four conversations token by token in turn, so that their cells interleave; one shares a prefix; holes."""
    memory = context.memory

    def decode(seq: int, n: int) -> None:
        tokens = rng.integers(0, context.model.vocab.n_tokens, n).tolist()
        assert context.decode(Batch.of(seq, memory.seq_pos_max(seq) + 1, tokens, "last")).rc == 0

    decode(0, 9)
    decode(1, 6)
    memory.seq_cp(0, 2)
    for _ in range(5):
        for seq, n in ((0, 1), (1, 2), (2, 1), (3, 3)):
            decode(seq, n)
    if not memory.mirror.states:
        memory.seq_rm(1, memory.seq_pos_max(1) - 2, -1)
        decode(3, 2)


CASES = [
    pytest.param(name, settings, id=f"{name}-{how}", marks=[pytest.mark.matrix] if name in FILES else [])
    for name in (*KINDS, *FILES)
    for how, settings in {
        "unified": SETTINGS,
        "streams": SETTINGS.model_copy(update=STREAMS),
        "f32, v_trans": SETTINGS.model_copy(update={"flash_attn": False, "type_k": CacheType.F32}),
        "q8_0": SETTINGS.model_copy(update={"type_k": CacheType.Q8_0, "type_v": CacheType.Q8_0}),
        "streams, v_trans": SETTINGS.model_copy(update={**STREAMS, "flash_attn": False}),
    }.items()
]


def file_of(models: dict[str, Path], name: str) -> Path:
    path = models.get(name, SHARED_MODELS / f"{name}.gguf")
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path


@pytest.mark.parametrize(("name", "asked"), CASES)
def test_no_conversation_notices(models: dict[str, Path], name: str, asked: ContextSettings) -> None:
    allowed = 0.0 if asked.flash_attn else 1e-3  # without it groups of neighbouring cells are added up together
    for layout in Layout:
        with opened(file_of(models, name), asked) as context:
            fill(context, np.random.default_rng(4))
            blob, now = bytes(context.states.get()), context.memory.snapshot()
            before = logits(context)
            planned = plan_compaction(now, layout, hot=(3, 1))
            moved = bytes(permute_blob(blob, planned, context.memory.mirror.geometry))
            assert len(moved) == len(blob)
            context.states.set(moved, known=planned.after)
            assert bytes(context.states.get()) == moved
            assert_same_maps(context.memory.snapshot().maps, planned.after)
            after = logits(context)
        for s in range(N_SEQ):
            assert np.abs(after[s] - before[s]).max() <= allowed, (layout, s)


@pytest.mark.parametrize("flash_attn", [True, False])
def test_cells_that_no_window_sees_stay_out(models: dict[str, Path], flash_attn: bool) -> None:
    """llama.cpp would place the next tokens there, before older ones."""
    settings = SETTINGS.model_copy(update={"flash_attn": flash_attn, "type_k": CacheType.F32})
    with opened(models["iswa"], settings) as context:
        for seq in range(N_SEQ):
            assert context.decode(Batch.of(seq, 0, [seq + 1] * 50, "last")).rc == 0
        blob, now = bytes(context.states.get()), context.memory.snapshot()
        before = logits(context)
        planned = plan_compaction(now, Layout.KEEP_ORDER, drop_masked=True)
        context.states.set(permute_blob(blob, planned, context.memory.mirror.geometry), known=planned.after)
        assert_same_maps(context.memory.snapshot().maps, planned.after)
        base, window = (cache.streams[0] for cache in context.memory.mirror.caches)
        assert (base.used, window.used) == (50 * N_SEQ, 31 * N_SEQ)
        assert not window.goes_back(32, "standard")
        assert np.abs(np.subtract(logits(context), before)).max() <= (0.0 if flash_attn else 1e-3)
        context.states.set(blob, known=now.maps)
        assert context.memory.mirror.caches[1].streams[0].goes_back(32, "standard")


def test_the_last_cell_of_a_whole_chunk_stays() -> None:
    """The next token sees none of the chunk, but llama.cpp asks there for the position it follows."""
    facts = ModelFacts("x", "iswa", n_swa=16, swa_type="chunked")
    mirror = Mirror(plan(facts, ContextParams(n_ctx=512, n_seq_max=1, n_batch=64, kv_unified=True, swa_full=True)))
    mirror.decode(Batch.of(0, 0, [7] * 32, "none"), 0)
    base, window = plan_compaction(snapshot_of(mirror), Layout.KEEP_ORDER, drop_masked=True).after
    assert (base.streams[0].used, window.streams[0].pos.tolist()) == (32, [31])


def played() -> Mirror:
    """Sequence 0 at cells 0, 2, 4; sequence 1 at 1, 3; cells 0 and 2 are shared with 2; 5 is a hole; 6 is of 1."""
    mirror = Mirror(plan(FACTS, ContextParams(n_ctx=512, n_seq_max=3, n_batch=64, kv_unified=True)))
    for i, (seq, pos) in enumerate([(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]):
        mirror.decode(Batch([10 + i], [pos], [(seq,)], [False]), 0)
    mirror.seq_cp(0, 2, 0, 2)
    mirror.seq_rm(0, 3, -1)
    return mirror


@pytest.mark.parametrize(
    ("layout", "hot", "tokens", "scatter"),
    [
        (Layout.KEEP_ORDER, (), [10, 11, 12, 13, 14, 16], ((0, 2, 2), (1, 2, 2), (2, 1, 1))),
        (Layout.BY_CONVERSATION, (), [10, 12, 14, 11, 13, 16], ((0, 2, 0), (1, 2, 0), (2, 1, 0))),
        (Layout.HOT_FIRST, (1, 2), [11, 13, 16, 10, 12, 14], ((0, 2, 0), (1, 2, 0), (2, 1, 0))),
        (Layout.HOT_FIRST, (7, 2, 2), [10, 12, 14, 11, 13, 16], ((0, 2, 0), (1, 2, 0), (2, 1, 0))),
    ],
)
def test_plan(
    layout: Layout, hot: tuple[int, ...], tokens: list[int], scatter: tuple[tuple[int, int, int], ...]
) -> None:
    found = plan_compaction(snapshot_of(played()), layout, hot)
    stream = found.after[0].streams[0]
    assert stream.token.tolist() == tokens
    assert found.streams[0].scatter == scatter
    assert (found.streams[0].high_water_before, found.streams[0].high_water_after) == (7, 6)
    assert (found.n_kv_before, found.n_kv_after) == (256, 256)
    assert (stream.head, stream.used) == (0, 6)
    assert not found.changes_nothing


def test_the_embedded_model_with_flash_attention_is_exact() -> None:
    """Its activations are rounded to 8 bits: another order of any sum would be seen at once."""
    path = embedded_model()
    assert path is not None
    with opened(path, SETTINGS.model_copy(update={"n_ctx": 512})) as context:
        fill(context, np.random.default_rng(0))
        blob, now = bytes(context.states.get()), context.memory.snapshot()
        before = logits(context)
        found = plan_compaction(now, Layout.BY_CONVERSATION)
        context.states.set(bytes(permute_blob(blob, found, context.memory.mirror.geometry)))
        after = logits(context)
    assert all(compare_logits(one, other).verdict is Verdict.EXACT for one, other in zip(before, after, strict=True))


def test_nothing_to_do() -> None:
    empty = Mirror(plan(FACTS, ContextParams(n_ctx=512, n_seq_max=3, kv_unified=True)))
    assert plan_compaction(snapshot_of(empty), Layout.BY_CONVERSATION).changes_nothing
    states = Mirror(plan(ModelFacts("x", "recurrent"), ContextParams(n_ctx=512, n_seq_max=3)))
    assert plan_compaction(snapshot_of(states), Layout.KEEP_ORDER).n_kv_after == 0


def big(n_cells: int, n_layer: int, row: int, v_trans: bool) -> bytes:
    """A state of two sequences in turn, filled with random bytes."""
    rng = np.random.default_rng(1)
    out = struct.pack("<I", 1) + b"x" + struct.pack("<II", 1, n_cells)
    table = np.zeros((n_cells, 3), dtype="<i4")
    table[:, 0], table[:, 1], table[:, 2] = np.arange(n_cells) // 2, 1, np.arange(n_cells) % 2
    out += table.tobytes() + struct.pack("<II", v_trans, n_layer)
    parts = [out]
    for kind in "kv":
        for _ in range(n_layer):
            parts.append(struct.pack("<iII", 1, 2, row // 2) if kind == "v" and v_trans else struct.pack("<iQ", 1, row))
            parts.append(rng.bytes(n_cells * row))
    return b"".join(parts)


@pytest.mark.parametrize("v_trans", [False, True])
def test_twenty_megabytes(v_trans: bool) -> None:
    """Measured: 4 ms, transposed 6.5; the bound is for busy machines."""
    n = 836
    mirror = Mirror(plan(FACTS, ContextParams(n_ctx=4096, n_seq_max=2, n_batch=1024, kv_unified=True)))
    mirror.decode(Batch([1] * n, [i // 2 for i in range(n)], [(i % 2,) for i in range(n)], [False] * n), 0)
    blob = big(n, 30, 384, v_trans)
    assert len(blob) > 19_000_000
    found = plan_compaction(snapshot_of(mirror), Layout.BY_CONVERSATION)
    parsed = parse_state(blob, mirror.geometry)
    times = []
    for _ in range(5):
        before = time.thread_time()
        moved = permute_blob(blob, found, mirror.geometry)
        times.append(time.thread_time() - before)
    assert min(times) < 0.15
    order = [*range(0, n, 2), *range(1, n, 2)]
    source, result = np.frombuffer(blob, np.uint8), np.frombuffer(moved, np.uint8)
    for section in parsed.caches[0][0].sections:
        part = slice(section.offset, section.offset + section.n_bytes)
        if section.n_rows:
            assert (result[part].reshape(192, n, 2) == source[part].reshape(192, n, 2)[:, order]).all()
        else:
            assert (result[part].reshape(n, 384) == source[part].reshape(n, 384)[order]).all()


def test_a_state_of_other_cells() -> None:
    mirror = played()
    found = plan_compaction(snapshot_of(mirror), Layout.BY_CONVERSATION)
    with pytest.raises(BlobError):
        permute_blob(big(7, 1, 4, False), found, mirror.geometry)
    with pytest.raises(BlobError):
        permute_blob(b"nothing", found, mirror.geometry)
