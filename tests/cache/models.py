"""Tiny models with random weights, written for the tests: one per memory class, one head of 64, no text tokenizer.

Each is a table: tensors by name, with their shapes in numpy's order (rows first), and metadata.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

N_EMBD, N_FF, N_VOCAB, N_SWA = 64, 64, 128, 32
KINDS = ("attention", "iswa", "chunked", "hybrid", "hybrid_iswa")

Shapes = dict[str, tuple[int, ...]]
Table = tuple[str, list[Shapes], Shapes, dict[str, Any]]
"""Architecture, tensors of each layer, further ones, metadata (None: what all have is left out)."""
E, EE, FE, EF = (N_EMBD,), (N_EMBD, N_EMBD), (N_FF, N_EMBD), (N_EMBD, N_FF)

NORMS: Shapes = {"attn_norm.weight": E, "ffn_norm.weight": E}
QKV: Shapes = {f"attn_{part}.weight": EE for part in ("q", "k", "v", "output")}
QK_NORMS: Shapes = {"attn_q_norm.weight": E, "attn_k_norm.weight": E}
FFN: Shapes = {"ffn_gate.weight": FE, "ffn_up.weight": FE, "ffn_down.weight": EF}
LLAMA: Shapes = {**NORMS, **QKV, **FFN}
CONV: Shapes = {
    **NORMS,
    **FFN,
    "shortconv.conv.weight": (N_EMBD, 3),
    "shortconv.in_proj.weight": (3 * N_EMBD, N_EMBD),
    "shortconv.out_proj.weight": EE,
}
OUT_NORM: Shapes = {"output_norm.weight": E}
OUT: Shapes = {"output.weight": (N_VOCAB, N_EMBD)}
_INDEXER: Shapes = {
    "indexer.q_proj.weight": EE,
    "indexer.k_proj.weight": EE,
    "indexer.q_norm.weight": E,
    "indexer.k_norm.weight": E,
}
_HEAD = {"attention.key_length": N_EMBD, "attention.value_length": N_EMBD, "rope.dimension_count": N_EMBD}
_SWA = {"attention.sliding_window": N_SWA}


def experts(ffn: Shapes) -> Shapes:
    """Two of this size, and one for all tokens."""
    return {
        "ffn_gate_inp.weight": (2, N_EMBD),
        "exp_probs_b.bias": (2,),
        **{name.replace(".", "_exps."): (2, *shape) for name, shape in ffn.items()},
        **{name.replace(".", "_shexp."): shape for name, shape in ffn.items()},
    }


def _lfm2(n_recurrent: int, more: dict[str, Any]) -> Table:
    """The last layer is attention, those before it are short convolutions (recurrent)."""
    layers = [*[CONV] * n_recurrent, {**NORMS, **FFN, **QKV, **QK_NORMS}]
    metadata = {"attention.head_count_kv": [*[0] * n_recurrent, 1], "shortconv.l_cache": 3}
    return "lfm2", layers, {"token_embd_norm.weight": E}, {**_HEAD, **metadata, **more}


_MODELS: dict[str, Table] = {
    "attention": ("llama", [LLAMA] * 2, OUT_NORM, _HEAD),
    "iswa": (
        "gemma2",
        [{**LLAMA, "post_attention_norm.weight": E, "post_ffw_norm.weight": E}] * 2,
        OUT_NORM,
        {**_HEAD, **_SWA},
    ),
    "chunked": (  # windows of 8192 in every second layer; experts that no layer has
        "llama4",
        [LLAMA] * 4,  # llama4 fails an assertion without a layer that has no RoPE: every fourth
        OUT_NORM,
        {
            **_HEAD,
            "expert_count": 2,
            "expert_used_count": 1,
            "expert_feed_forward_length": N_FF,
            "interleave_moe_layer_step": 100,
            "attention.sliding_window_pattern": 2,
        },
    ),
    "hybrid": _lfm2(1, {}),
    "hybrid_iswa": _lfm2(1, _SWA),
    "hybrid_deep": _lfm2(12, {}),
    "msa": (  # in layer 1 an indexer chooses 4 blocks of 4 positions; it has two experts, and one for all tokens
        "minimax-m3",
        [{**LLAMA, **QK_NORMS}, {**NORMS, **QKV, **QK_NORMS, **experts(FFN), **_INDEXER}],
        {**OUT_NORM, **OUT},
        {
            **_HEAD,
            "attention.indexer.head_count": 1,
            "attention.indexer.key_length": N_EMBD,
            "attention.indexer.top_k": 4,
            "attention.indexer.block_size": 4,
            "attention.indexer.local_blocks": 1,
            "leading_dense_block_count": 1,
            "expert_count": 2,
            "expert_used_count": 1,
            "expert_feed_forward_length": N_FF,
            "expert_shared_count": 1,
            "expert_weights_scale": 1.0,
            "expert_gating_func": gguf.ExpertGatingFuncType.SIGMOID,
        },
    ),
}


def numbers(out: gguf.GGUFWriter) -> int:
    """A tokenizer that reads no text."""
    out.add_tokenizer_model("test")
    out.add_token_list([f"tok_{i}" for i in range(N_VOCAB)])
    out.add_token_types([1] * N_VOCAB)
    out.add_token_scores([0.0] * N_VOCAB)
    return N_VOCAB


def write_model(path: Path, kind: str, tokenizer: Callable[[gguf.GGUFWriter], int] = numbers) -> Path:
    """Write the smallest model of a memory class."""
    return write_table(path, _MODELS[kind], tokenizer)


def plain(_name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    return np.ones(shape, np.float32) if len(shape) == 1 else rng.normal(0, 0.1, shape).astype(np.float32)


def write_table(
    path: Path,
    table: Table,
    tokenizer: Callable[[gguf.GGUFWriter], int] = numbers,
    data: Callable[[str, tuple[int, ...], np.random.Generator], NDArray[np.float32]] = plain,
) -> Path:
    """Write the model. `tokenizer` adds one and returns how many tokens it has; `data`: the numbers of a tensor."""
    architecture, layers, rest, metadata = table
    out = gguf.GGUFWriter(str(path), architecture)
    n_vocab = tokenizer(out)
    common = {
        "context_length": 4096, "embedding_length": N_EMBD, "block_count": len(layers), "feed_forward_length": N_FF,
        "vocab_size": n_vocab, "attention.head_count": 1, "attention.head_count_kv": 1,
        "attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    for key, value in {**common, **metadata}.items():
        if value is not None:
            _add(out, f"{architecture}.{key}", value)
    rng = np.random.default_rng(0)
    tensors = {"token_embd.weight": (n_vocab, N_EMBD), **rest}
    if "output.weight" in rest:
        tensors["output.weight"] = (n_vocab, N_EMBD)
    tensors |= {f"blk.{i}.{name}": shape for i, layer in enumerate(layers) for name, shape in layer.items()}
    for name, shape in tensors.items():
        out.add_tensor(name, data(name, shape, rng))
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
