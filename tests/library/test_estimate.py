"""The arithmetic of memory, against numbers llama.cpp printed, and the refusal of what does not fit.

`tests/engine/test_estimate.py` asks the engine itself.
"""

from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.errors import ContextError
from kvdesk.library.estimate import check_fits, estimate, largest_n_ctx
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.library.hyper import read_hyper
from kvdesk.settings import CacheType, ContextSettings
from tests.library.gguf_files import WEIGHTS, Value, gguf, llama

MIB = 1 << 20


@pytest.fixture
def embedded() -> GgufHeader:
    path = paths.embedded_model()
    assert path is not None
    return read_header(path)


def header(folder: Path, metadata: dict[str, Value]) -> GgufHeader:
    path = folder / "model.gguf"
    path.write_bytes(gguf(metadata, WEIGHTS))
    return read_header(path)


def other(architecture: str, **changes: Value) -> dict[str, Value]:
    metadata = {key.replace("llama.", f"{architecture}."): value for key, value in llama(**changes).items()}
    return metadata | {"general.architecture": architecture}


def test_the_embedded_model(embedded: GgufHeader) -> None:
    e = estimate(embedded, ContextSettings(n_ctx=4096, n_ubatch=512))
    assert (e.k, e.v, e.r, e.s) == (45 * MIB, 45 * MIB, 0, 0)
    assert e.output == 49152 * 8 * 4
    assert abs(e.weights - 92.10 * MIB) < 0.01 * MIB
    assert abs(e.compute - 98.25 * MIB) < 0.01 * MIB
    assert e.total == e.weights + e.context


@pytest.mark.parametrize(
    ("kind", "row"),  # 3 heads of 64: 192 numbers
    [
        ("f32", 768),
        ("f16", 384),
        ("bf16", 384),
        ("q8_0", 204),
        ("q4_0", 108),
        ("q4_1", 120),
        ("iq4_nl", 108),
        ("q5_0", 132),
        ("q5_1", 144),
    ],
)
def test_rows_of_all_types(embedded: GgufHeader, kind: str, row: int) -> None:
    e = estimate(embedded, ContextSettings(n_ctx=512, type_k=CacheType(kind), type_v=CacheType(kind)))
    assert e.k == e.v == 30 * 512 * row


def test_n_ctx_is_padded_as_llama_cpp_does(embedded: GgufHeader) -> None:
    assert estimate(embedded, ContextSettings(n_ctx=300)).n_ctx == 512
    assert estimate(embedded, ContextSettings(n_ctx=300, n_seq_max=3, kv_unified=False)).n_ctx == 768
    assert estimate(embedded, ContextSettings(n_ctx=0)).n_ctx == 8192


def test_exact_takes_the_buffers_of_small_graphs(embedded: GgufHeader) -> None:
    small, exact = ContextSettings(n_ubatch=32), ContextSettings(exact=True)
    assert estimate(embedded, exact).compute == estimate(embedded, small).compute
    assert estimate(embedded, exact).compute * 8 < estimate(embedded, ContextSettings()).compute
    assert estimate(embedded, ContextSettings(n_ubatch=8, exact=True)).compute < estimate(embedded, small).compute


def test_heads_per_layer(tmp_path: Path) -> None:
    e = estimate(header(tmp_path, llama(attention__head_count_kv=[4, 1])), ContextSettings(n_ctx=256))
    assert e.k == 5 * 16 * 2 * 256


def test_own_head_sizes(tmp_path: Path) -> None:
    changed = llama(attention__key_length=32, attention__value_length=8)
    e = estimate(header(tmp_path, changed), ContextSettings(n_ctx=256))
    assert (e.k, e.v) == (2 * 2 * 32 * 2 * 256, 2 * 2 * 8 * 2 * 256)


def test_latent_attention_has_no_v(tmp_path: Path) -> None:
    changed = other("deepseek2", attention__key_length_mla=16, attention__value_length_mla=16)
    e = estimate(header(tmp_path, changed), ContextSettings(n_ctx=256))
    assert e.k > 0
    assert e.v == 0


def test_sliding_windows(tmp_path: Path) -> None:
    model = header(tmp_path, other("gemma3", block_count=12, attention__sliding_window=512))
    assert [layer.has_window for layer in read_hyper(model).layers] == ([True] * 5 + [False]) * 2
    full = estimate(model, ContextSettings(n_ctx=8192, n_ubatch=512))
    small = estimate(model, ContextSettings(n_ctx=8192, n_ubatch=512, n_seq_max=2, swa_full=False))
    row = 2 * 16 * 2
    assert full.k == 12 * 8192 * row
    assert small.k == 2 * 8192 * row + 10 * 1536 * row  # 2 windows of 512 and a ubatch of 512
    streams = ContextSettings(n_ctx=8192, n_ubatch=512, n_seq_max=2, swa_full=False, kv_unified=False)
    assert estimate(model, streams).k == 2 * 2 * 4096 * row + 2 * 10 * 1024 * row


def test_windows_that_llama_cpp_ignores(tmp_path: Path) -> None:
    model = header(tmp_path, llama(attention__sliding_window=512))
    assert not any(layer.has_window for layer in read_hyper(model).layers)


def test_hybrid_by_interval(tmp_path: Path) -> None:
    ssm = {"ssm__conv_kernel": 4, "ssm__inner_size": 128, "ssm__state_size": 16, "ssm__group_count": 2}
    model = header(tmp_path, other("qwen35", block_count=8, **ssm))
    e = estimate(model, ContextSettings(n_ctx=256, n_seq_max=4))
    assert e.k == 2 * 256 * 2 * 16 * 2
    assert e.r == 6 * 4 * 3 * (128 + 2 * 2 * 16) * 4
    assert e.s == 6 * 4 * 128 * 16 * 4
    more = estimate(model, ContextSettings(n_ctx=256, n_seq_max=4, n_rs_seq=7))
    assert (more.r, more.s) == (8 * e.r, 8 * e.s)
    assert (more.n_earlier, more.earlier) == (7, 7 * (e.r + e.s))
    assert (e.n_earlier, e.earlier) == (0, 0)
    small = estimate(model, ContextSettings(n_ctx=256, n_seq_max=4, n_ubatch=4, n_rs_seq=7))
    assert small.s == 3 * e.s, "an ubatch of four tokens keeps two earlier states"


def test_earlier_states_of_an_architecture_that_keeps_none(tmp_path: Path) -> None:
    model = header(tmp_path, other("rwkv7", wkv__head_size=16))
    kept, none = (estimate(model, ContextSettings(n_seq_max=2, n_rs_seq=n)) for n in (7, 0))
    assert kept == none


def test_deepseek_v4_has_cells_for_each_sequence(tmp_path: Path) -> None:
    model = header(tmp_path, other("deepseek4"))
    unified, one = (estimate(model, ContextSettings(n_ctx=512, n_seq_max=n)) for n in (4, 1))
    assert (unified.n_ctx, unified.k) == (4 * 512, 4 * one.k)


def test_recurrent_only(tmp_path: Path) -> None:
    e = estimate(header(tmp_path, other("rwkv7", wkv__head_size=16)), ContextSettings(n_seq_max=2))
    assert e.k == e.v == 0
    assert (e.r, e.s) == (2 * 2 * 2 * 64 * 4, 2 * 2 * 64 * 16 * 4)


def test_padding_of_v_without_flash_attention(tmp_path: Path) -> None:
    model = header(tmp_path, llama(attention__head_count_kv=[4, 2]))
    assert estimate(model, ContextSettings(n_ctx=256, flash_attn=False)).v == 2 * 256 * 4 * 16 * 2


# --- what fits ------------------------------------------------------------------------------------------------------


def test_a_million_cells_are_refused_without_allocating(embedded: GgufHeader) -> None:
    with pytest.raises(ContextError) as caught:
        check_fits(embedded, ContextSettings(n_ctx=1 << 20, n_ubatch=512), available=2_000_000_000)
    sentence = str(caught.value)
    assert sentence.startswith("A context of 1,048,576 cells needs 25.3 GB with this model, and 2.0 GB are free.")
    assert "The largest that fits has" in sentence
    assert "q8_0" in sentence


def test_the_largest_fits_and_the_next_does_not(embedded: GgufHeader) -> None:
    settings, available = ContextSettings(), 1_000_000_000
    largest = largest_n_ctx(embedded, settings, available)
    assert largest % 256 == 0
    check_fits(embedded, settings.model_copy(update={"n_ctx": largest}), available)
    with pytest.raises(ContextError, match=f"The largest that fits has {largest:,} cells"):
        check_fits(embedded, settings.model_copy(update={"n_ctx": largest + 256}), available)


def test_loaded_weights_are_not_counted_twice(embedded: GgufHeader) -> None:
    fresh = check_fits(embedded, ContextSettings(), 1 << 40)
    loaded = check_fits(embedded, ContextSettings(), 1 << 40, loaded=True)
    assert fresh.total - loaded.total == fresh.weights


def test_nothing_fits(embedded: GgufHeader) -> None:
    with pytest.raises(ContextError, match="Not even the smallest context fits"):
        check_fits(embedded, ContextSettings(), 1000)


def test_exact_answers_need_flash_attention(embedded: GgufHeader) -> None:
    """Without it the sums of attention depend on the cell at which a sequence begins."""
    with pytest.raises(ContextError, match="Exact answers need flash attention"):
        check_fits(embedded, ContextSettings(exact=True, flash_attn=False), 1 << 40)


def test_types_that_llama_cpp_refuses(tmp_path: Path, embedded: GgufHeader) -> None:
    with pytest.raises(ContextError, match="V of type q8_0 needs flash attention"):
        check_fits(embedded, ContextSettings(type_v=CacheType.Q8_0, flash_attn=False), 1 << 40)
    with pytest.raises(ContextError, match="K of type q4_0 needs heads of a multiple of 32"):
        check_fits(header(tmp_path, llama()), ContextSettings(type_k=CacheType.Q4_0), 1 << 40)
