"""The matrix of capabilities: every answer has its sentence, and answers follow from model and settings alone."""

import json
from contextlib import nullcontext

import pytest

from kvdesk.__main__ import main
from kvdesk.backends.local.llama.capabilities import capabilities
from kvdesk.backends.local.llama.memory.guards import Guards
from kvdesk.backends.local.llama.traits import ModelTraits, Traits, context_traits, model_traits
from kvdesk.cache.batch import Batch
from kvdesk.cache.creation import CreatedCache, Creation
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.errors import RefusedCall
from kvdesk.protocol.operations import OperationName
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.values import replace

MADE = Creation((CreatedCache(256, 4, 4, 1),), 0)


def traits(
    facts: ModelFacts | None = None,
    model: ModelTraits | None = None,
    settings: ContextSettings | None = None,
    head_k: int = 64,
    rotation: bool = True,
) -> Traits:
    settings = settings or ContextSettings(n_ctx=512, n_seq_max=4)
    params = ContextParams(
        n_ctx=settings.n_ctx,
        n_seq_max=settings.n_seq_max,
        n_batch=settings.n_batch,
        n_ubatch=32,
        kv_unified=settings.kv_unified,
        swa_full=settings.swa_full,
        flash_attn=settings.flash_attn,
    )
    geometry = plan(facts or ModelFacts("llama", "attention"), params)
    return Traits(
        model or ModelTraits(n_rot=(64,)), geometry, settings, 100, MADE, (head_k,), (64,) if rotation else ()
    )


def answer(t: Traits, operation: OperationName) -> str:
    return capabilities(t)[operation].answer


def test_every_row_has_a_sentence() -> None:
    rows = capabilities(traits()).values()
    assert len({row.operation for row in rows}) == len(rows) == 15
    for row in rows:
        assert row.answer in ("yes", "no", "with loss")
        assert row.why.endswith(".")
        assert row.allowed == (row.answer != "no")


def test_an_indexer_is_exact_only_alone() -> None:
    assert answer(traits(ModelFacts("dots3note", "dsa_iswa", 32, "standard", mla=True)), "exact answers") == "with loss"
    assert answer(traits(ModelFacts("deepseek4", "dsv4", 32, "standard", mla=True)), "exact answers") == "yes"
    assert answer(traits(settings=ContextSettings(flash_attn=False)), "exact answers") == "no"


def test_a_plain_model_can_do_all() -> None:
    assert {row.answer for row in capabilities(traits()).values()} == {"yes", "with loss"}
    assert answer(traits(), "seq_add") == "yes"
    assert answer(traits(), "seq_add with quantized K") == "with loss"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (traits(ModelFacts("qwen2vl", "attention", n_pos_per_embd=4, can_shift=False)), "M-RoPE"),
        (traits(ModelFacts("step35", "attention", can_shift=False)), "step35"),
        (traits(ModelFacts("gemma3", "iswa", 32, "standard"), settings=ContextSettings(swa_full=False)), "swa_full"),
        (traits(model=ModelTraits(mixed_rope=True)), "not rotated"),
        (replace(traits(), creation=Creation((CreatedCache(256, 0, 4, 1),), 0)), "no layers"),
        (traits(settings=ContextSettings(type_k=CacheType.BF16)), "bf16"),
        (traits(settings=ContextSettings(type_k=CacheType.Q8_0), rotation=False), "rotation matrix"),
        (traits(settings=ContextSettings(type_k=CacheType.Q8_0), head_k=80), "multiple of 64"),
        (traits(model=ModelTraits(n_rot=(32,)), settings=ContextSettings(type_k=CacheType.Q4_0)), "Only a part"),
        (traits(ModelFacts("granitehybrid", "hybrid"), ModelTraits(has_rope=False)), "empty rotation"),
        (traits(ModelFacts("new", "attention", reason="another kind")), "does not know"),
    ],
)
def test_no_shift_and_why(changed: Traits, says: str) -> None:
    found = capabilities(changed)["seq_add"]
    assert found.answer == "no"
    assert says in found.why


def test_positions_that_are_learned_move_in_name_only() -> None:
    assert answer(traits(ModelFacts("gpt2", "attention"), ModelTraits(n_positions=64, has_rope=False)), "seq_add") == (
        "with loss"
    )
    assert answer(traits(ModelFacts("bloom", "attention"), ModelTraits(has_rope=False)), "seq_add") == "yes"


def test_recurrent_and_hybrid() -> None:
    recurrent = traits(ModelFacts("mamba", "recurrent"))
    for operation in ("partial seq_rm", "partial seq_cp", "compaction", "quantized K", "quantized V"):
        assert answer(recurrent, operation) == "no"
    hybrid = traits(ModelFacts("lfm2", "hybrid"))
    assert answer(hybrid, "partial seq_rm") == "no"
    assert answer(hybrid, "compaction") == "yes"
    assert answer(hybrid, "seq_add") == "with loss"


def test_streams() -> None:
    streams = traits(settings=ContextSettings(kv_unified=False, n_seq_max=4))
    assert answer(streams, "partial seq_cp") == "no"
    assert answer(streams, "seq_keep") == "with loss"


def test_quantized_v_needs_flash_attention() -> None:
    assert answer(traits(settings=ContextSettings(flash_attn=False)), "quantized V") == "no"
    assert answer(traits(settings=ContextSettings(type_v=CacheType.Q8_0)), "flash attention off") == "no"


def test_what_moves_cells_tells_of_rounding_without_flash_attention() -> None:
    """Sums then depend on where cells lie (docs/known-limits.md)."""
    plain, off = traits(), traits(settings=ContextSettings(flash_attn=False))
    for operation in ("swap", "compaction"):
        assert answer(plain, operation) == "yes"
        assert answer(off, operation) == "with loss"
        assert "rounding" in capabilities(off)[operation].why
    recurrent = traits(ModelFacts("mamba", "recurrent"), settings=ContextSettings(flash_attn=False))
    assert answer(recurrent, "swap") == "yes", "one state per conversation: no sum over cells"


def test_traits_from_metadata_and_log() -> None:
    meta = {"gpt2.attention.causal": "false", "gpt2.rope.dimension_count": "32", "granite.rope.scaling.finetuned": ""}
    found = model_traits("gpt2", -1, 256, lambda key: meta.get(key, ""))
    assert found == ModelTraits(causal=False, n_positions=256, has_rope=False, n_rot=(32,))
    assert model_traits("granite", 0, 256, lambda key: meta.get(key, "")).has_rope
    assert not model_traits("granite", 0, 256, lambda _: "false").has_rope
    line = "llama_kv_cache: attn_rot_{} = {}, n_embd_head_k_all = {}\n".format
    lines = [line("k", 1, 64), line("v", 0, 64), line("k", 1, 384), line("v", 1, 384)]
    made = context_traits(found, traits().geometry, ContextSettings(), 7, lines)
    assert made.head_k == (64, 384)
    assert (made.rotated_k, made.rotated_v) == ((64, 128), (0, 64))
    assert made.rotation
    assert not context_traits(found, traits().geometry, ContextSettings(), 7, [*lines, line("k", 0, 64)]).rotation


def test_keys_of_an_indexer_are_moved_where_the_engine_rotates_what_was_rotated() -> None:
    sparse, latent = (capabilities(traits(ModelFacts("x", kind))) for kind in ("msa", "dsa"))
    assert (sparse["seq_add"].answer, latent["seq_add"].answer) == ("yes", "no")
    assert "indexer" in latent["seq_add"].why
    others = set(sparse) - {"seq_add", "seq_add with quantized K", "attention", "exact answers"}
    assert [sparse[name] for name in others] == [latent[name] for name in others]


def test_of_a_memory_that_is_not_mirrored_nothing_is_promised() -> None:
    rows = capabilities(traits(ModelFacts("new", "unknown", reason="new uses a cache of its own"))).values()
    assert {row.answer for row in rows} == {"unknown", "no"}
    assert all("new uses a cache" in row.why for row in rows if row.answer == "unknown")
    assert not {row.operation for row in rows if row.allowed} & {"seq_add", "swap", "compaction"}


@pytest.mark.parametrize(
    ("architecture", "seq_ids", "refused"),
    [
        ("plamo2", [(0,), (1,)], True),
        ("plamo2", [(0,), (0, 1)], True),
        ("plamo2", [(0, 1), (1, 0)], False),
        ("plamo2", [(1,), (1,)], False),
        ("minimax-01", [(0,), (0, 1)], True),
        ("minimax-01", [(0,), (1,)], False),
        ("llama", [(0,), (0, 1)], False),
    ],
)
def test_batches_that_two_architectures_cannot_compute(
    architecture: str, seq_ids: list[tuple[int, ...]], refused: bool
) -> None:
    """Each refused one aborted llama.cpp in an audit (models/plamo2.cpp:397, models/minimax-01.cpp:117)."""
    found = traits(model=model_traits(architecture, 0, 256, lambda _: ""))

    def mirror() -> Mirror:
        raise AssertionError("nothing here depends on what is in the cache")

    with pytest.raises(RefusedCall) if refused else nullcontext():
        Guards(found, mirror).batch(Batch([1, 2], [0, 1], seq_ids, [True, True]))


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capabilities", "--json", "--n-ctx", "256"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["memory"] == "attention"
    assert {row["operation"]: row["answer"] for row in told["capabilities"]}["seq_add"] == "yes"
    assert main(["capabilities", "--no-flash-attn", "--type-v", "q8_0"]) == 2
    assert "flash attention" in capsys.readouterr().err
