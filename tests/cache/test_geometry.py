"""Memory classes by architecture, and the padding of sizes."""

import pytest

from kvdesk.cache.geometry import ContextParams, MemoryKind, ModelFacts, context_sizes, model_facts, plan, window_cells
from kvdesk.errors import ContextError


@pytest.mark.parametrize(
    ("n_ctx", "n_seq_max", "unified", "sizes"),
    [  # measured
        (300, 1, True, (512, 512)),
        (300, 3, False, (768, 256)),
        (1024, 4, False, (1024, 256)),
        (1024, 4, True, (1024, 1024)),
    ],
)
def test_context_sizes(n_ctx: int, n_seq_max: int, unified: bool, sizes: tuple[int, int]) -> None:
    assert context_sizes(n_ctx, n_seq_max, unified) == sizes


def test_window_cells() -> None:
    assert window_cells(8192, 512, 4, 128, kv_unified=True, swa_full=False) == 2304
    assert window_cells(8192, 512, 4, 128, kv_unified=False, swa_full=False) == 768
    assert window_cells(8192, 512, 4, 128, kv_unified=False, swa_full=True) == 8192


@pytest.mark.parametrize(
    ("args", "kind", "swa_type"),
    [
        (("llama", 0, False, False, 0), "attention", "none"),
        (("gemma3", 512, False, False, 2), "iswa", "standard"),
        (("llama4", 8192, False, False, 0), "iswa", "chunked"),
        (("mamba", 0, True, False, -1), "recurrent", "none"),
        (("lfm2", 0, False, True, 2), "hybrid", "none"),
        (("lfm2", 64, False, True, 2), "hybrid_iswa", "standard"),
        (("minimax-m3", 0, False, False, 2), "msa", "none"),
        (("deepseek32", 0, False, False, 0), "dsa", "none"),
        (("dots3note", 128, False, False, 0), "dsa_iswa", "standard"),
        (("deepseek4", 128, False, True, 0), "dsv4", "standard"),
        (("glm5-next", 0, False, True, -1), "hybrid_idx", "none"),
        (("eagle3", 0, False, False, 0), "unknown", "none"),
        (("bert", 0, False, False, 2), "unknown", "none"),
    ],
)
def test_kinds(args: tuple[str, int, bool, bool, int], kind: str, swa_type: str) -> None:
    facts = model_facts(*args)
    assert (facts.kind, facts.swa_type) == (kind, swa_type)
    assert bool(facts.reason) == (kind == "unknown")


def test_hy_v4_has_an_indexer_where_its_metadata_says_so() -> None:
    assert model_facts("hy_v4", 0, False, False, 0).kind == "dsa"
    assert model_facts("hy_v4", 0, False, False, 0, indexer=False).kind == "attention"
    assert model_facts("glm-dsa", 0, False, False, 0, indexer=False).kind == "dsa"


@pytest.mark.parametrize(
    ("kind", "sizes", "followers"),
    [
        ("attention", (512,), ()),
        ("dsa", (512, 512), ()),
        ("dsa_iswa", (512, 512, 512), ()),
        ("hybrid_idx", (512,), (512,)),
        ("dsv4", (512, 512), (256, 256, 256)),
        ("recurrent", (), ()),
    ],
)
def test_sizes_of_the_caches(kind: MemoryKind, sizes: tuple[int, ...], followers: tuple[int, ...]) -> None:
    made = plan(ModelFacts("x", kind), ContextParams(n_ctx=300))
    assert (made.cache_sizes, made.made_sizes) == (sizes, sizes + followers)
    assert made.reorders == (not followers)


@pytest.mark.parametrize(
    ("architecture", "n_ubatch", "n"), [("lfm2", 32, 6), ("lfm2", 4, 2), ("lfm2", 1, 0), ("jamba", 32, 0)]
)
def test_earlier_states_need_a_larger_ubatch_and_an_architecture_that_keeps_them(
    architecture: str, n_ubatch: int, n: int
) -> None:
    facts = model_facts(architecture, 0, False, True, 0)
    assert plan(facts, ContextParams(n_ctx=300, n_ubatch=n_ubatch, n_rs_seq=6)).n_rs_seq == n


def test_deepseek_v4_gives_each_sequence_cells_of_its_own() -> None:
    facts = model_facts("deepseek4", 128, False, True, 0)
    made = plan(facts, ContextParams(n_ctx=512, n_seq_max=4, kv_unified=True))
    assert (made.n_stream, made.n_cells, made.kv_unified) == (4, 512, False)


def test_mrope_has_no_shift_and_a_longer_cell() -> None:
    facts = model_facts("qwen2vl", 0, False, False, 8)
    assert (facts.n_pos_per_embd, facts.can_shift, facts.cell_ext) == (4, False, True)


def test_small_window_cannot_shift() -> None:
    facts = model_facts("gemma3", 512, False, False, 2)
    assert not plan(facts, ContextParams(n_ctx=8192, swa_full=False)).can_shift
    assert plan(facts, ContextParams(n_ctx=8192, swa_full=True)).can_shift


def test_batch_sizes_are_cut_before_padding() -> None:
    g = plan(model_facts("llama", 0, False, False, 0), ContextParams(n_ctx=300, n_batch=2048, n_ubatch=512))
    assert (g.n_batch, g.n_ubatch) == (300, 300)


@pytest.mark.parametrize("params", [ContextParams(n_ctx=0), ContextParams(n_seq_max=300), ContextParams(n_seq_max=0)])
def test_impossible_contexts(params: ContextParams) -> None:
    with pytest.raises(ContextError):
        plan(model_facts("llama", 0, False, False, 0), params)
