"""Tiny models of more architectures, written for the tests: random weights, one head of 64, no text tokenizer.

A table: layers by architecture, tensors by name with their shapes in numpy's order (rows first).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.cache.indexed_models import INDEXED, write_indexed
from tests.cache.models import write_model

N_EMBD, N_FF, N_VOCAB, N_POSITIONS = 64, 64, 128, 64
D_INNER, D_STATE, D_CONV, DT_RANK = 2 * N_EMBD, 16, 4, 4
_CONV = D_INNER + 2 * D_STATE
_EXTRA = 8  # rwkv: low-rank sizes

Shapes = dict[str, tuple[int, ...]]
E, F = (N_EMBD,), (N_FF,)
EE, FE, EF = (N_EMBD, N_EMBD), (N_FF, N_EMBD), (N_EMBD, N_FF)

_QKV = {f"attn_{part}.weight": EE for part in ("q", "k", "v", "output")}
_FFN = {"ffn_norm.weight": E, "ffn_gate.weight": FE, "ffn_up.weight": FE, "ffn_down.weight": EF}
_LLAMA: Shapes = {"attn_norm.weight": E, **_QKV, **_FFN}
_PHI3: Shapes = {**_LLAMA, "ffn_up.weight": (2 * N_FF, N_EMBD)}
del _PHI3["ffn_gate.weight"]
_FUSED: Shapes = {"attn_norm.weight": E, "attn_norm.bias": E, "attn_qkv.weight": (3 * N_EMBD, N_EMBD)}
_FUSED |= {"attn_output.weight": EE, "ffn_up.weight": FE, "ffn_down.weight": EF}
_BIASED: Shapes = {**_FUSED, "attn_qkv.bias": (3 * N_EMBD,), "attn_output.bias": E, "ffn_norm.weight": E}
_BIASED |= {"ffn_norm.bias": E, "ffn_up.bias": F, "ffn_down.bias": E}
_SSM: Shapes = {
    "ssm_in.weight": (D_INNER + _CONV + DT_RANK, N_EMBD),
    "ssm_conv1d.weight": (_CONV, D_CONV),
    "ssm_conv1d.bias": (_CONV,),
    "ssm_dt.bias": (DT_RANK,),
    "ssm_a": (DT_RANK, 1),
    "ssm_d": (DT_RANK, 1),
    "ssm_norm.weight": (1, D_INNER),
    "ssm_out.weight": (N_EMBD, D_INNER),
}
_RWKV: Shapes = {
    "attn_norm.weight": E,
    "attn_norm.bias": E,
    "attn_norm_2.weight": E,
    "attn_norm_2.bias": E,
    "time_mix_w1.weight": (5 * _EXTRA, N_EMBD),
    "time_mix_w2.weight": (5, N_EMBD, _EXTRA),
    "time_mix_lerp_x.weight": (1, 1, N_EMBD),
    "time_mix_lerp_fused.weight": (5, 1, 1, N_EMBD),
    "time_mix_first.weight": (1, N_EMBD),
    "time_mix_decay.weight": E,
    "time_mix_decay_w1.weight": (_EXTRA, N_EMBD),
    "time_mix_decay_w2.weight": (N_EMBD, _EXTRA),
    "time_mix_ln.weight": E,
    "time_mix_ln.bias": E,
    "channel_mix_lerp_k.weight": (1, 1, N_EMBD),
    "channel_mix_lerp_r.weight": (1, 1, N_EMBD),
    "channel_mix_key.weight": FE,
    "channel_mix_value.weight": EF,
    "channel_mix_receptance.weight": EE,
}
_RWKV |= {f"time_mix_{part}.weight": EE for part in ("key", "value", "receptance", "gate", "output")}

_NORM: Shapes = {"output_norm.weight": E}
_NORM_B: Shapes = {**_NORM, "output_norm.bias": E}
_TOKEN_NORM: Shapes = {"token_embd_norm.weight": E, "token_embd_norm.bias": E}
_OUT: Shapes = {"output.weight": (N_VOCAB, N_EMBD)}

ARCHITECTURES: dict[str, tuple[list[Shapes], Shapes]] = {
    "llama": ([_LLAMA] * 2, _NORM),
    "qwen3": ([{**_LLAMA, "attn_q_norm.weight": E, "attn_k_norm.weight": E}] * 2, _NORM),
    "smollm3": ([_LLAMA] * 4, _NORM),
    "qwen2vl": ([_LLAMA] * 2, _NORM),
    "stablelm": ([{**_LLAMA, "attn_norm.bias": E, "ffn_norm.bias": E}] * 2, {**_NORM_B, **_OUT}),
    "phi3": ([_PHI3] * 2, _NORM),
    "falcon": ([_FUSED] * 2, _NORM_B),
    "gptneox": ([_BIASED] * 2, {**_NORM_B, **_OUT}),
    "bloom": ([_BIASED] * 2, {**_NORM_B, **_TOKEN_NORM}),
    "gpt2": ([_BIASED] * 2, {**_NORM_B, "position_embd.weight": (N_POSITIONS, N_EMBD)}),
    "mamba2": ([{"attn_norm.weight": E, **_SSM}] * 2, _NORM),
    "granitehybrid": ([{"attn_norm.weight": E, **_SSM, **_FFN}, _LLAMA], _NORM),
    "falcon-h1": (
        [{**_SSM, **{name.replace("ffn_norm.weight", "ffn_norm"): shape for name, shape in _LLAMA.items()}}] * 2,
        _NORM,
    ),
    "lfm2": (
        [
            {
                "attn_norm.weight": E,
                **_FFN,
                "shortconv.conv.weight": (N_EMBD, 3),
                "shortconv.in_proj.weight": (3 * N_EMBD, N_EMBD),
                "shortconv.out_proj.weight": EE,
            },
            {**_LLAMA, "attn_q_norm.weight": E, "attn_k_norm.weight": E},
        ],
        {"token_embd_norm.weight": E},
    ),
    "rwkv6": ([_RWKV] * 2, {**_NORM_B, **_TOKEN_NORM, **_OUT}),
}


def write(
    path: Path,
    architecture: str,
    *,
    context: int = 4096,
    text: bool = False,
    pre: str = "gpt-2",
    more: Callable[[gguf.GGUFWriter], None] | None = None,
    tokenizer: Callable[[gguf.GGUFWriter], None] | None = None,
    marks: Mapping[str, int] | None = None,
) -> Path:
    """Write a model of `architecture`; `more` adds metadata to it. `text`: it has a tokenizer, of a token a byte, with
    the pre-tokenizer `pre` and with `marks`, more tokens and their types; `tokenizer` writes another one, of N_VOCAB
    tokens.
    """
    marks = marks or {}
    n_vocab = len(byte_tokens()) + len(marks) if text else N_VOCAB
    layers, rest = ARCHITECTURES[architecture]
    out = gguf.GGUFWriter(str(path), architecture)
    out.add_context_length(N_POSITIONS if architecture == "gpt2" else context)
    out.add_embedding_length(N_EMBD)
    out.add_block_count(len(layers))
    out.add_feed_forward_length(N_FF)
    out.add_head_count(0 if architecture in ("mamba2", "rwkv6") else 1)
    if architecture in ("granitehybrid", "lfm2"):
        out.add_head_count_kv([0, 1])
    elif architecture not in ("mamba2", "rwkv6"):
        out.add_head_count_kv(1)
    out.add_layer_norm_eps(1e-5)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(n_vocab)
    _add_special(out, architecture)
    if more is not None:
        more(out)
    if text:
        add_tokenizer(out, pre, marks)
    elif tokenizer is not None:
        tokenizer(out)
    else:
        out.add_tokenizer_model("test")
        out.add_token_list([f"tok_{i}" for i in range(N_VOCAB)])
        out.add_token_types([1] * N_VOCAB)
        out.add_token_scores([0.0] * N_VOCAB)
    rng = np.random.default_rng(0)
    tensors = {"token_embd.weight": (n_vocab, N_EMBD), **rest}
    tensors |= {f"blk.{i}.{name}": shape for i, layer in enumerate(layers) for name, shape in layer.items()}
    for name, shape in tensors.items():
        out.add_tensor(name, _data(name, shape, rng))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def written(folder: Path, name: str, *, text: bool = False) -> Path:
    """The file of an architecture, or of a class of memory (`tests.cache.models`), written where it is not yet."""
    path = folder / f"{name}{'-text' * text}.gguf"
    if path.exists():
        return path
    if name in INDEXED:
        return write_indexed(path, name, _tokenizer if text else None)
    return write(path, name, text=text) if name in ARCHITECTURES else write_model(path, name)


def byte_tokens() -> list[str]:
    """GPT-2's characters for the 256 bytes, one merged pair, since llama.cpp wants merges, and ChatML's marks."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    chars = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [*(chars[b] for b in range(256)), "qq", "<|im_start|>", "<|im_end|>"]


def add_tokenizer(out: gguf.GGUFWriter, pre: str, marks: Mapping[str, int]) -> None:
    tokens = byte_tokens()
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(pre)
    out.add_token_list([*tokens, *marks])
    out.add_token_types([1] * (len(tokens) - 2) + [3, 3, *marks.values()])  # normal, control
    out.add_token_merges(["q q"])
    out.add_eos_token_id(len(tokens) - 1)


def _tokenizer(out: gguf.GGUFWriter) -> int:
    add_tokenizer(out, "gpt-2", {})
    return len(byte_tokens())


def _add_special(out: gguf.GGUFWriter, architecture: str) -> None:
    if architecture in ("gptneox", "stablelm"):
        out.add_rope_dimension_count(16)  # a quarter of the head
        out.add_parallel_residual(True)
    if architecture == "qwen2vl":
        out.add_rope_dimension_sections([16, 8, 8, 0])
    if architecture in ("mamba2", "granitehybrid", "falcon-h1"):
        out.add_ssm_conv_kernel(D_CONV)
        out.add_ssm_inner_size(D_INNER)
        out.add_ssm_state_size(D_STATE)
        out.add_ssm_time_step_rank(DT_RANK)
        out.add_ssm_group_count(1)
    if architecture == "lfm2":
        out.add_shortconv_l_cache(3)
    if architecture == "rwkv6":
        out.add_wkv_head_size(N_EMBD)
        out.add_time_mix_extra_dim(_EXTRA)
        out.add_time_decay_extra_dim(_EXTRA)


def _data(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    if name.endswith("ssm_a"):
        return np.full(shape, -1.0, dtype=np.float32)
    if name.endswith(".bias"):
        return np.zeros(shape, dtype=np.float32)
    if len(shape) == 1 or "norm" in name:
        return np.ones(shape, dtype=np.float32)
    wide = 1.0 if ".attn_q." in name or ".attn_k." in name else 0.1  # so that positions make a difference
    return rng.normal(0, wide, shape).astype(np.float32)
