"""A state with K and V of other types: what it holds, and that llama.cpp takes it."""

import ctypes
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.llama import requantize as requantizing
from kvdesk.backends.local.llama.binding import ggml_function
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.ggml_quantizers import _FROM_FLOAT, _TypeTraits, encode
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import ggml_type
from kvdesk.backends.local.llama.requantize import (
    requantize,
    rounded,
    rounded_share,
    trial_ms,
    unrounded,
    unrounding_ms,
    why_not_converted,
)
from kvdesk.cache.batch import Batch
from kvdesk.cache.state.blob import Blob, BlobError, Section, parse_seq_state, parse_state
from kvdesk.library.ggml_rows import decode, rotate, rows
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.tiny_models import written
from tests.cache.models import N_VOCAB

F32, F16, Q8 = CacheType.F32, CacheType.F16, CacheType.Q8_0
SMALL = ContextSettings(n_ctx=512, n_seq_max=2, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1)
STEP = {"f16": 1e-3, "bf16": 8e-3, "q8_0": 1 / 127, "q5_1": 1 / 16, "q5_0": 1 / 15, "q4_1": 1 / 8, "q4_0": 1 / 7}
"""The largest error of a type, in parts of the largest number of a block, or of the number itself."""


@pytest.fixture(scope="module", params=["llama", "iswa", "granitehybrid", "hybrid_iswa"])
def model(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Model]:
    model = Model(written(tiny_folder, request.param))
    yield model
    model.close()


def settings(k: CacheType, v: CacheType | None = None, **more: object) -> ContextSettings:
    return SMALL.model_copy(update={"type_k": k, "type_v": v or k, **more})


def text(n: int, seq_id: int = 0) -> Batch:
    tokens = tuple((7 + 5 * i + seq_id) % N_VOCAB for i in range(n))
    return Batch(tokens, tuple(range(n)), ((seq_id,),) * n, (False,) * (n - 1) + (True,))


MADE: list[Context] = []


@pytest.fixture(autouse=True)
def all_are_closed() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def opened(model: Model, wanted: ContextSettings) -> Context:
    MADE.append(Context(model, wanted))
    return MADE[-1]


def filled(model: Model, wanted: ContextSettings) -> Context:
    context = opened(model, wanted)
    for seq_id in range(2):
        context.decode(text(40 + seq_id, seq_id))
    return context


def moved(source: Context, wanted: ContextSettings) -> Context:
    """A context with the other settings that holds the converted state of `source`."""
    target = opened(source.model, wanted)
    target.states.set(
        requantize(source.states.get(), source.traits, target.traits), known=source.memory.snapshot().maps
    )
    assert target.memory.verification.state == "verified", target.memory.verification.detail
    was, now = source.memory.snapshot().maps, target.memory.snapshot().maps
    for old, new in zip(was, now, strict=True):
        for a, b in zip(old.streams, new.streams, strict=True):
            np.testing.assert_array_equal(a.pos, b.pos)
            np.testing.assert_array_equal(a.seq_bits, b.seq_bits)
            np.testing.assert_array_equal(a.token, b.token)
    return target


def numbers(context: Context) -> list[NDArray[np.float32]]:
    """K and V of every layer and stream, rotated back."""
    blob, found = context.states.get(), []
    traits = context.traits
    for i, streams in enumerate(parse_state(blob, traits.geometry).caches):
        for stored in streams:
            for section in stored.sections:
                n_rot = (traits.rotated_k if section.kind == "k" else traits.rotated_v)[i]
                found.append(rotate(np.concatenate(list(rows(blob, section, stored.n_cells))), n_rot))
    return found


@pytest.mark.parametrize("kind", [kind for kind in CacheType if kind is not F32])
def test_each_type_there_and_back(llama: Model, kind: CacheType) -> None:
    source = filled(llama, settings(F32))
    there = moved(source, settings(kind))
    back = moved(there, settings(F32))
    error = STEP.get(kind.value, 1 / 7)
    for wanted, found in zip(numbers(source), numbers(there), strict=True):
        blocks = np.abs(rotate(wanted, 64 if kind.value in ("q8_0", "q5_1", "iq4_nl") else 0)).max()
        assert 0 < np.abs(found - wanted).max() <= error * max(blocks, np.abs(wanted).max()) * 8**0.5
    for wanted, found in zip(numbers(there), numbers(back), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max() + 1e-6)
    assert {s.ggml_type for s in parse_state(there.states.get(), there.traits.geometry).caches[0][0].sections} == {
        ggml_type(kind)
    }


def test_every_kind_of_memory_goes_on_as_before(model: Model) -> None:
    """The next token of a converted cache is nearly the one before; a wrong rotation or row would show at once."""
    source = filled(model, settings(F32))
    there = moved(source, settings(Q8))
    found = []
    for context in (source, there):
        context.decode(Batch((5,), (40,), ((0,),), (True,)))
        found.append(context.logits())
    scale = np.abs(found[0]).max()
    assert np.abs(found[1] - found[0]).max() < 0.05 * scale


def test_the_first_layer_is_bit_for_bit_what_the_engine_stores(llama: Model) -> None:
    """K and V of the first layer depend on the tokens alone: read again with q8_0, or converted from f32, is one."""
    source, wanted = filled(llama, settings(F32)), filled(llama, settings(Q8))
    there = moved(source, settings(Q8))
    for context in (wanted, there):
        assert len(context.states.get()) == len(wanted.states.get())
    states = [parse_state(context.states.get(), context.traits.geometry).caches[0][0] for context in (wanted, there)]
    for layer in (0, 2):  # K and V of the first one, of two
        a, b = (
            bytes(context.states.get()[s.sections[layer].offset :][: s.sections[layer].n_bytes])
            for context, s in zip((wanted, there), states, strict=True)
        )
        assert a == b


@pytest.mark.parametrize("types", [(F16, F16), (Q8, F16), (F16, F32)])
def test_v_is_transposed_where_flash_attention_is_off(llama: Model, types: tuple[CacheType, CacheType]) -> None:
    source = filled(llama, settings(F16))
    off = moved(source, settings(*types, flash_attn=False))
    on = moved(off, settings(F16))
    assert any(s.n_rows for s in parse_state(off.states.get(), off.traits.geometry).caches[0][0].sections)
    layers = len(numbers(source)) // 2
    for wanted, found in zip(numbers(source)[layers:], numbers(on)[layers:], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_cache_without_layers_is_taken_too(tiny_folder: Path) -> None:
    """All attention of this hybrid has a window: the other cache has cells, and neither K nor V."""
    with closing(Model(written(tiny_folder, "hybrid_iswa"))) as model:
        source = filled(model, settings(F16))
        assert [] in [
            [*streams[0].sections] for streams in parse_state(source.states.get(), source.traits.geometry).caches
        ]
        moved(moved(source, settings(F16, flash_attn=False)), settings(Q8))


def as_floats(blob: Blob, section: Section, n_cells: int) -> NDArray[np.float32]:
    """Rows of q8_0 as ggml itself reads them (`to_float`)."""
    found = ggml_function("ggml_get_type_traits")
    found.argtypes, found.restype = [ctypes.c_int], ctypes.POINTER(_TypeTraits)
    source = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset).copy()
    target = np.empty((n_cells, section.row_bytes // 34 * 32), np.float32)
    _FROM_FLOAT(found(ggml_type(Q8)).contents.to_float)(source.ctypes.data, target.ctypes.data, target.size)
    return target


def table(blob: Blob, section: Section, n_cells: int) -> NDArray[np.float32]:
    return np.concatenate(list(rows(memoryview(blob), section, n_cells)))


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("kind", [F32, F16, CacheType.BF16])
def test_a_state_that_is_kept_has_the_rows_that_ggml_makes(llama: Model, kind: CacheType, *, flash_attn: bool) -> None:
    """Kept: what the quantizer of ggml makes of each row. Read back: what ggml reads of that, in the cache's type."""
    context = filled(llama, settings(kind, flash_attn=flash_attn))
    blob, traits = context.states.seq_get(0), context.traits
    kept = rounded(blob, traits)
    back = unrounded(kept, traits)
    (before,), (after,), (again,) = (parse_seq_state(one, traits.geometry).caches[0] for one in (blob, kept, back))
    for own, stored, returned in zip(before.sections, after.sections, again.sections, strict=True):
        wanted = encode(table(blob, own, before.n_cells), ggml_type(Q8))
        assert stored.ggml_type == ggml_type(Q8)
        np.testing.assert_array_equal(np.frombuffer(kept, np.uint8, stored.n_bytes, stored.offset), wanted.reshape(-1))
        read = decode(encode(as_floats(kept, stored, after.n_cells), ggml_type(kind)), ggml_type(kind))
        np.testing.assert_array_equal(table(back, returned, again.n_cells), read)
        assert bool(returned.n_rows) == (own.kind == "v" and not flash_attn)
    assert len(back) == len(blob)
    head = len(blob) - sum(section.n_bytes for section in before.sections)
    assert (len(kept) - head) / (len(blob) - head) == pytest.approx(rounded_share(traits))
    assert context.states.seq_set(0, back, audited=True)
    assert context.memory.verification.state == "verified", context.memory.verification.detail
    assert unrounding_ms(len(kept), traits) > 0


def test_rows_without_whole_blocks_are_kept_as_they_are(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    context = filled(llama, settings(F16))
    blob = context.states.seq_get(0)
    monkeypatch.setattr(requantizing, "_width", lambda _: 48)
    assert rounded(blob, context.traits) is blob


def test_streams_keep_their_cells(llama: Model) -> None:
    source = filled(llama, settings(F16, kv_unified=False, n_ctx=1024))
    moved(source, settings(Q8, CacheType.Q4_0, kv_unified=False, n_ctx=1024))


def test_only_what_changes_is_rewritten(llama: Model) -> None:
    source = filled(llama, settings(F16))
    there = moved(source, settings(Q8, F16))
    layers = len(numbers(source)) // 2
    for wanted, found in zip(numbers(source)[layers:], numbers(there)[layers:], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_is_no_state_is_said(llama: Model) -> None:
    context = filled(llama, settings(F16))
    blob = context.states.get()
    for broken in (b"", blob[:-1], blob[: len(blob) // 2]):
        with pytest.raises(BlobError):
            requantize(broken, context.traits, context.traits)
    assert bytes(requantize(blob, context.traits, context.traits)) == bytes(blob)


def test_why_not(llama: Model) -> None:
    context = filled(llama, settings(F16))
    assert why_not_converted(context, settings(Q8)) == ""
    assert why_not_converted(context, settings(Q8, n_ctx=1024)) == ""
    for wanted, part in (
        (settings(Q8, exact=True), "Exact answers"),
        (settings(Q8, n_seq_max=1), "does not fit"),
        (settings(Q8, kv_unified=False), "does not fit"),
        (settings(Q8, flash_attn=False), "flash attention"),
    ):
        assert part in why_not_converted(context, wanted)


def test_the_price_is_measured() -> None:
    assert trial_ms(1 << 20, Q8, Q8) == 0.0
    small, large = (trial_ms(n, F16, Q8) for n in (1 << 10, 1 << 30))
    assert 0 < small < large


@pytest.mark.parametrize("name", ["msa", "dsa_iswa", "hybrid_idx", "dsv4"])
def test_keys_of_an_indexer_and_compressed_ones_are_not_converted(tiny_folder: Path, name: str) -> None:
    with closing(Model(written(tiny_folder, name))) as model, closing(Context(model, settings(F16))) as context:
        assert why_not_converted(context, settings(Q8)).startswith("K and V of this kind of memory are not converted")
