"""Tiny models with random weights, one for each memory of its own that llama.cpp has: attention to what an indexer
chooses ("dsa"), with a window beside it ("dsa_iswa"), or with a recurrent state ("hybrid_idx"), and compressed keys
("dsv4").
"""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.cache.models import N_EMBD, NORMS, OUT, OUT_NORM, Shapes, Table, experts, numbers, write_table

N_FF = 32
_Q, _KV, _ROPE, _NOPE, _V, _INDEX = 32, 64, 32, 32, 32, 64  # ranks of Q and KV, numbers of a head
_HC = 4  # residual streams of hyper-connections

_FFN: Shapes = {"ffn_gate.weight": (N_FF, N_EMBD), "ffn_up.weight": (N_FF, N_EMBD), "ffn_down.weight": (N_EMBD, N_FF)}
_EXPERTS = experts(_FFN)
_LATENT: Shapes = {
    "attn_q_a_norm.weight": (_Q,),
    "attn_kv_a_norm.weight": (_KV,),
    "attn_q_a.weight": (_Q, N_EMBD),
    "attn_q_b.weight": (_NOPE + _ROPE, _Q),
    "attn_v_b.weight": (1, _V, _KV),
    "attn_output.weight": (N_EMBD, _V),
}
_INDEXER: Shapes = {
    "indexer.k_norm.weight": (_INDEX,),
    "indexer.k_norm.bias": (_INDEX,),
    "indexer.proj.weight": (1, N_EMBD),
    "indexer.attn_k.weight": (_INDEX, N_EMBD),
    "indexer.attn_q_b.weight": (_INDEX, _Q),
}
_HYPER: Shapes = {
    f"hc_{part}_{name}": shape
    for part in ("attn", "ffn")
    for name, shape in {
        "fn.weight": (_HC * (_HC + 2), _HC * N_EMBD), "base.weight": (_HC * (_HC + 2),), "scale.weight": (3,)
    }.items()
}  # fmt: skip
_DOTS: Shapes = {
    **NORMS,
    **_LATENT,
    "attn_k_norm.weight": (_ROPE,),
    "attn_kv_a_mqa.weight": (_KV + _ROPE, N_EMBD),
    "attn_k_b.weight": (1, _KV, _NOPE),
    "attn_gate.weight": (1, N_EMBD),
}
_DEEPSEEK: Shapes = {
    **NORMS,
    **_LATENT,
    **_INDEXER,
    **_FFN,
    "attn_kv_a_mqa.weight": (_KV + _ROPE, N_EMBD),
    "attn_k_b.weight": (1, _KV, _NOPE),
}
_KDA: Shapes = {
    **{f"attn_{part}.weight": (N_EMBD, N_EMBD) for part in ("q", "k", "v", "output")},
    **{f"ssm_conv1d_{part}.weight": (N_EMBD, 1, 4) for part in ("q", "k", "v")},
    **{f"ssm_{part}.weight": (N_EMBD, N_EMBD) for part in ("f_a", "f_b", "g_a", "g_b")},
    "ssm_a": (1,),
    "ssm_dt.bias": (N_EMBD,),
    "ssm_beta.weight": (1, N_EMBD),
    "ssm_norm.weight": (N_EMBD,),
}
_GLM: Shapes = {
    **_LATENT,
    **_INDEXER,
    "attn_kv_a_mqa.weight": (_KV, N_EMBD),
    "attn_k_b.weight": (1, _KV, _NOPE + _ROPE),
    "indexer_compressor_gate.weight": (_INDEX, N_EMBD),
    "indexer_compressor_ape.weight": (4, _INDEX),
}
_V4: Shapes = {
    **NORMS,
    **_EXPERTS,
    **_HYPER,
    "attn_q_a_norm.weight": (_Q,),
    "attn_q_a.weight": (_Q, N_EMBD),
    "attn_q_b.weight": (_KV, _Q),
    "attn_kv.weight": (_KV, N_EMBD),
    "attn_kv_a_norm.weight": (_KV,),
    "attn_output_a.weight": (1, _V, _KV),
    "attn_output_b.weight": (N_EMBD, _V),
    "attn_sinks.weight": (1,),
}


def _compressor(name: str, width: int, ratio: int) -> Shapes:
    rows = 2 * width if ratio == 4 else width
    return {
        f"{name}_compressor_kv.weight": (rows, N_EMBD),
        f"{name}_compressor_gate.weight": (rows, N_EMBD),
        f"{name}_compressor_ape.weight": (ratio, rows),
        f"{name}_compressor_norm.weight": (width,),
    }


_CSA: Shapes = {
    **_compressor("attn", _KV, 4),
    **_compressor("indexer", _INDEX, 4),
    **{name: _INDEXER[name] for name in ("indexer.proj.weight", "indexer.attn_q_b.weight")},
}
_MOE = {
    "feed_forward_length": N_FF,
    "expert_count": 2,
    "expert_used_count": 2,
    "expert_shared_count": 1,
    "expert_feed_forward_length": N_FF,
}
_ENDS: Shapes = {**OUT_NORM, **OUT}
_MLA = {
    "attention.q_lora_rank": _Q,
    "attention.kv_lora_rank": _KV,
    "attention.value_length": _KV,
    "attention.key_length_mla": _NOPE + _ROPE,
    "attention.value_length_mla": _V,
}
_CHOICE = {"attention.indexer.head_count": 1, "attention.indexer.key_length": _INDEX, "attention.indexer.top_k": 8}
_CONNECTIONS = {
    "hyper_connection.count": _HC, "hyper_connection.sinkhorn_iterations": 2, "hyper_connection.epsilon": 1e-6
}  # fmt: skip

INDEXED: dict[str, Table] = {
    "dsa": (
        "deepseek32",
        [_DEEPSEEK, _DEEPSEEK],
        _ENDS,
        {
            **_MOE, **_MLA, **_CHOICE,
            "expert_gating_func": 2,
            "leading_dense_block_count": 2,
            "attention.key_length": _KV + _ROPE,
            "rope.dimension_count": _ROPE,
        },
    ),
    "dsa_iswa": (
        "dots3note",
        [{**_DOTS, **_INDEXER, **_FFN}, {**_DOTS, **_EXPERTS}],
        _ENDS,
        {
            **_MOE, **_MLA, **_CHOICE,
            "expert_gating_func": 2,
            "leading_dense_block_count": 1,
            "attention.key_length": _KV + _ROPE,
            "attention.sliding_window": 32,
            "attention.sliding_window_pattern": [False, True],
            "attention.indexer.types": [True, False],
            **{f"attention.{name}_swa": n for name, n in {
                "key_length": _KV + _ROPE, "value_length": _KV, "key_length_mla": _NOPE + _ROPE,
                "value_length_mla": _V, "kv_lora_rank": _KV}.items()},
            "rope.dimension_count": _ROPE,
            "rope.dimension_count_swa": _ROPE,
            "rope.freq_base_swa": 10000.0,
        },
    ),
    "hybrid_idx": (
        "glm5-next",
        [{**NORMS, **_GLM, **_FFN, **_HYPER}, {**NORMS, **_KDA, **_EXPERTS, **_HYPER}],
        _ENDS,
        {
            **_MOE, **_MLA, **_CHOICE, **_CONNECTIONS,
            "expert_gating_func": 2,
            "leading_dense_block_count": 1,
            "attention.head_count_kv": [1, 0],
            "attention.key_length": _KV,
            "attention.recurrent_layers": [False, True],
            "attention.indexer.kpool": 4,
            "attention.indexer.types": [True, True],
            "rope.dimension_count": 0,
            "ssm.conv_kernel": 4,
            "kda.head_dim": N_EMBD,
            "kda.gate_lower_bound": -5.0,
        },
    ),
    "dsv4": (
        "deepseek4",
        [_V4, {**_V4, **_CSA}, {**_V4, **_compressor("attn", _KV, 128)}],
        {
            **OUT_NORM,
            "output_hc_fn.weight": (_HC, _HC * N_EMBD), "output_hc_base.weight": (_HC,), "output_hc_scale.weight": (1,),
            **OUT,
        },
        {
            **_MOE, **_CHOICE, **_CONNECTIONS,
            "expert_gating_func": 4,
            "expert_weights_scale": 1.0,
            "expert_weights_norm": True,
            "hash_layer_count": 0,
            "attention.q_lora_rank": _Q,
            "attention.key_length": _KV,
            "attention.value_length": _KV,
            "attention.sliding_window": 32,
            "attention.sliding_window_pattern": [True, True, True],
            "attention.output_group_count": 1,
            "attention.output_lora_rank": _V,
            "attention.compress_ratios": [0, 4, 128],
            "attention.compress_rope_freq_base": 160000.0,
            "swiglu_clamp_exp": [10.0] * 3,
            "swiglu_clamp_shexp": [10.0] * 3,
            "rope.dimension_count": _ROPE,
        },
    ),
}  # fmt: skip
"""By memory class."""


def write_indexed(path: Path, kind: str, tokenizer: Callable[[gguf.GGUFWriter], int] = numbers) -> Path:
    return write_table(path, INDEXED[kind], tokenizer, _data)


def _data(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    wide = rng.normal(0, 0.1, shape).astype(np.float32)
    return -np.ones(shape, np.float32) if name.endswith("ssm_a") else wide
