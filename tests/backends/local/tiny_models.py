"""Tiny models of more architectures than those of `tests.cache.models`, and tokenizers of text for all."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.cache.indexed_models import INDEXED, write_indexed
from tests.cache.models import (
    CONV,
    EE,
    EF,
    FE,
    FFN,
    LLAMA,
    N_EMBD,
    N_FF,
    N_VOCAB,
    NORMS,
    OUT,
    OUT_NORM,
    QK_NORMS,
    E,
    Shapes,
    numbers,
    write_model,
    write_table,
)

N_POSITIONS = 64
D_INNER, D_STATE, D_CONV, DT_RANK = 2 * N_EMBD, 16, 4, 4
_CONV = D_INNER + 2 * D_STATE
_EXTRA = 8  # rwkv: low-rank sizes

F = (N_FF,)
_PHI3: Shapes = {**LLAMA, "ffn_up.weight": (2 * N_FF, N_EMBD)}
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

_NORM_B: Shapes = {**OUT_NORM, "output_norm.bias": E}
_TOKEN_NORM: Shapes = {"token_embd_norm.weight": E, "token_embd_norm.bias": E}

ARCHITECTURES: dict[str, tuple[list[Shapes], Shapes]] = {
    "llama": ([LLAMA] * 2, OUT_NORM),
    "qwen3": ([{**LLAMA, **QK_NORMS}] * 2, OUT_NORM),
    "smollm3": ([LLAMA] * 4, OUT_NORM),
    "qwen2vl": ([LLAMA] * 2, OUT_NORM),
    "stablelm": ([{**LLAMA, "attn_norm.bias": E, "ffn_norm.bias": E}] * 2, {**_NORM_B, **OUT}),
    "phi3": ([_PHI3] * 2, OUT_NORM),
    "falcon": ([_FUSED] * 2, _NORM_B),
    "gptneox": ([_BIASED] * 2, {**_NORM_B, **OUT}),
    "bloom": ([_BIASED] * 2, {**_NORM_B, **_TOKEN_NORM}),
    "gpt2": ([_BIASED] * 2, {**_NORM_B, "position_embd.weight": (N_POSITIONS, N_EMBD)}),
    "mamba2": ([{"attn_norm.weight": E, **_SSM}] * 2, OUT_NORM),
    "granitehybrid": ([{**NORMS, **_SSM, **FFN}, LLAMA], OUT_NORM),
    "falcon-h1": (
        [{**_SSM, **{name.replace("ffn_norm.weight", "ffn_norm"): shape for name, shape in LLAMA.items()}}] * 2,
        OUT_NORM,
    ),
    "lfm2": ([CONV, {**LLAMA, **QK_NORMS}], {"token_embd_norm.weight": E}),
    "rwkv6": ([_RWKV] * 2, {**_NORM_B, **_TOKEN_NORM, **OUT}),
}
_STATES = {
    "ssm.conv_kernel": D_CONV,
    "ssm.inner_size": D_INNER,
    "ssm.state_size": D_STATE,
    "ssm.time_step_rank": DT_RANK,
    "ssm.group_count": 1,
}
_NO_HEADS = {"attention.head_count": 0, "attention.head_count_kv": None}
_QUARTER = {"rope.dimension_count": 16, "use_parallel_residual": True}  # of the head
_METADATA: dict[str, dict[str, Any]] = {
    "gpt2": {"context_length": N_POSITIONS},
    "gptneox": _QUARTER,
    "stablelm": _QUARTER,
    "qwen2vl": {"rope.dimension_sections": [16, 8, 8, 0]},
    "mamba2": {**_NO_HEADS, **_STATES},
    "granitehybrid": {"attention.head_count_kv": [0, 1], **_STATES},
    "falcon-h1": _STATES,
    "lfm2": {"attention.head_count_kv": [0, 1], "shortconv.l_cache": 3},
    "rwkv6": {**_NO_HEADS, "wkv.head_size": N_EMBD, "time_mix_extra_dim": _EXTRA, "time_decay_extra_dim": _EXTRA},
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

    def write_tokenizer(out: gguf.GGUFWriter) -> int:
        if more is not None:
            more(out)
        if text:
            return add_tokenizer(out, pre, marks or {})
        if tokenizer is None:
            return numbers(out)
        tokenizer(out)
        return N_VOCAB

    metadata = {"context_length": context, **_METADATA.get(architecture, {})}
    return write_table(path, (architecture, *ARCHITECTURES[architecture], metadata), write_tokenizer, _data)


def written(folder: Path, name: str, *, text: bool = False) -> Path:
    """The file of an architecture, or of a class of memory (`tests.cache.models`), written where it is not yet."""
    path = folder / f"{name}{'-text' * text}.gguf"
    if path.exists():
        return path
    if name in ARCHITECTURES:
        return write(path, name, text=text)
    return (write_indexed if name in INDEXED else write_model)(path, name, _tokenizer if text else numbers)


def byte_tokens() -> list[str]:
    """GPT-2's characters for the 256 bytes, one merged pair, since llama.cpp wants merges, and ChatML's marks."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    chars = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [*(chars[b] for b in range(256)), "qq", "<|im_start|>", "<|im_end|>"]


def add_tokenizer(out: gguf.GGUFWriter, pre: str, marks: Mapping[str, int]) -> int:
    """Returns how many tokens it has."""
    tokens = byte_tokens()
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(pre)
    out.add_token_list([*tokens, *marks])
    out.add_token_types([1] * (len(tokens) - 2) + [3, 3, *marks.values()])  # normal, control
    out.add_token_merges(["q q"])
    out.add_eos_token_id(len(tokens) - 1)
    return len(tokens) + len(marks)


def _tokenizer(out: gguf.GGUFWriter) -> int:
    return add_tokenizer(out, "gpt-2", {})


def _data(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    if name.endswith("ssm_a"):
        return np.full(shape, -1.0, dtype=np.float32)
    if name.endswith(".bias"):
        return np.zeros(shape, dtype=np.float32)
    if len(shape) == 1 or "norm" in name:
        return np.ones(shape, dtype=np.float32)
    wide = 1.0 if ".attn_q." in name or ".attn_k." in name else 0.1  # so that positions make a difference
    return rng.normal(0, wide, shape).astype(np.float32)
