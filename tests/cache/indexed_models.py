"""Tiny models with random weights, one for each memory of its own that llama.cpp has: attention to what an indexer
chooses ("dsa"), with a window beside it ("dsa_iswa"), or with a recurrent state ("hybrid_idx"), and compressed keys
("dsv4").
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np

N_EMBD, N_FF, N_VOCAB = 64, 32, 128
_Q, _KV, _ROPE, _NOPE, _V, _INDEX = 32, 64, 32, 32, 32, 64  # ranks of Q and KV, numbers of a head
_HC = 4  # residual streams of hyper-connections

Shapes = dict[str, tuple[int, ...]]
_NORMS: Shapes = {"attn_norm.weight": (N_EMBD,), "ffn_norm.weight": (N_EMBD,)}
_FFN: Shapes = {"ffn_gate.weight": (N_FF, N_EMBD), "ffn_up.weight": (N_FF, N_EMBD), "ffn_down.weight": (N_EMBD, N_FF)}
_EXPERTS: Shapes = {
    "ffn_gate_inp.weight": (2, N_EMBD),
    "exp_probs_b.bias": (2,),
    **{name.replace(".", "_exps."): (2, *shape) for name, shape in _FFN.items()},
    **{name.replace(".", "_shexp."): shape for name, shape in _FFN.items()},
}
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
    **_NORMS,
    **_LATENT,
    "attn_k_norm.weight": (_ROPE,),
    "attn_kv_a_mqa.weight": (_KV + _ROPE, N_EMBD),
    "attn_k_b.weight": (1, _KV, _NOPE),
    "attn_gate.weight": (1, N_EMBD),
}
_DEEPSEEK: Shapes = {
    **_NORMS,
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
    **_NORMS,
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
_MOE = {"expert_count": 2, "expert_used_count": 2, "expert_shared_count": 1, "expert_feed_forward_length": N_FF}
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

INDEXED: dict[str, tuple[str, list[Shapes], Shapes, dict[str, Any]]] = {
    "dsa": (
        "deepseek32",
        [_DEEPSEEK, _DEEPSEEK],
        {},
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
        {},
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
        [{**_NORMS, **_GLM, **_FFN, **_HYPER}, {**_NORMS, **_KDA, **_EXPERTS, **_HYPER}],
        {},
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
            "output_hc_fn.weight": (_HC, _HC * N_EMBD), "output_hc_base.weight": (_HC,), "output_hc_scale.weight": (1,)
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
"""By memory class: architecture, tensors of each layer, further ones, metadata."""


def write_indexed(path: Path, kind: str, tokenizer: Callable[[gguf.GGUFWriter], int] | None = None) -> Path:
    """Write the model of a memory class. `tokenizer` adds one that reads text, and returns how many tokens it has."""
    architecture, layers, rest, metadata = INDEXED[kind]
    out = gguf.GGUFWriter(str(path), architecture)
    n_vocab = N_VOCAB if tokenizer is None else tokenizer(out)
    common = {
        "context_length": 4096, "embedding_length": N_EMBD, "block_count": len(layers), "feed_forward_length": N_FF,
        "vocab_size": n_vocab, "attention.head_count": 1, "attention.head_count_kv": 1,
        "attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    for key, value in {**common, **metadata}.items():
        _add(out, f"{architecture}.{key}", value)
    if tokenizer is None:
        out.add_tokenizer_model("test")
        out.add_token_list([f"tok_{i}" for i in range(N_VOCAB)])
        out.add_token_types([1] * N_VOCAB)
        out.add_token_scores([0.0] * N_VOCAB)
    rng = np.random.default_rng(0)
    tensors = {"token_embd.weight": (n_vocab, N_EMBD), "output_norm.weight": (N_EMBD,), **rest}
    tensors |= {"output.weight": (n_vocab, N_EMBD)}
    tensors |= {f"blk.{i}.{name}": shape for i, layer in enumerate(layers) for name, shape in layer.items()}
    for name, shape in tensors.items():
        wide = rng.normal(0, 0.1, shape).astype(np.float32)
        out.add_tensor(name, -np.ones(shape, np.float32) if name.endswith("ssm_a") else wide)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def _add(out: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case list():
            out.add_array(key, value)
        case bool():
            out.add_bool(key, value)
        case float():
            out.add_float32(key, value)
        case _:
            out.add_uint32(key, value)
