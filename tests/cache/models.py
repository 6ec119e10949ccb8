"""Tiny models with random weights, written for the tests: one per memory class, one head of 64, no text tokenizer."""

from pathlib import Path

import gguf
import numpy as np

N_EMBD, N_FF, N_VOCAB, N_SWA = 64, 64, 128, 32
KINDS = ("attention", "iswa", "chunked", "hybrid", "hybrid_iswa")


class _Writer:
    def __init__(self, path: Path, architecture: str) -> None:
        self.out = gguf.GGUFWriter(str(path), architecture)
        self.rng = np.random.default_rng(0)

    def tensor(self, name: str, *shape: int) -> None:
        """`shape` in numpy's order: rows first."""
        if len(shape) == 1:
            data = np.ones(shape, dtype=np.float32)
        else:
            data = self.rng.normal(0, 0.1, shape).astype(np.float32)
        self.out.add_tensor(name, data)

    def header(self, n_layer: int, n_head_kv: int | list[int], n_swa: int) -> None:
        out = self.out
        out.add_context_length(4096)
        out.add_embedding_length(N_EMBD)
        out.add_block_count(n_layer)
        out.add_feed_forward_length(N_FF)
        out.add_head_count(1)
        out.add_head_count_kv(n_head_kv)
        out.add_key_length(N_EMBD)
        out.add_value_length(N_EMBD)
        out.add_rope_dimension_count(N_EMBD)
        out.add_layer_norm_rms_eps(1e-5)
        out.add_vocab_size(N_VOCAB)
        if n_swa:
            out.add_sliding_window(n_swa)
        out.add_tokenizer_model("test")
        out.add_token_list([f"tok_{i}" for i in range(N_VOCAB)])
        out.add_token_types([1] * N_VOCAB)
        out.add_token_scores([0.0] * N_VOCAB)
        self.tensor("token_embd.weight", N_VOCAB, N_EMBD)

    def attention(self, i: int) -> None:
        for part in ("q", "k", "v", "output"):
            self.tensor(f"blk.{i}.attn_{part}.weight", N_EMBD, N_EMBD)

    def ffn(self, i: int) -> None:
        self.tensor(f"blk.{i}.attn_norm.weight", N_EMBD)
        self.tensor(f"blk.{i}.ffn_norm.weight", N_EMBD)
        self.tensor(f"blk.{i}.ffn_gate.weight", N_FF, N_EMBD)
        self.tensor(f"blk.{i}.ffn_up.weight", N_FF, N_EMBD)
        self.tensor(f"blk.{i}.ffn_down.weight", N_EMBD, N_FF)

    def close(self) -> None:
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def write_model(path: Path, kind: str) -> Path:
    """Write the smallest model of a memory class."""
    if kind.startswith("hybrid"):
        return _write_lfm2(path, N_SWA if kind == "hybrid_iswa" else 0, 12 if kind == "hybrid_deep" else 1)
    if kind == "msa":
        return _write_minimax_m3(path)
    architecture = {"iswa": "gemma2", "chunked": "llama4"}.get(kind, "llama")
    out = _Writer(path, architecture)
    n_layer = 4 if kind == "chunked" else 2  # llama4 fails an assertion without a layer that has no RoPE: every fourth
    out.header(n_layer, 1, N_SWA if kind == "iswa" else 0)
    out.tensor("output_norm.weight", N_EMBD)
    if kind == "chunked":  # windows of 8192 in every second layer; experts that no layer has
        out.out.add_expert_count(2)
        out.out.add_expert_used_count(1)
        out.out.add_expert_feed_forward_length(N_FF)
        out.out.add_interleave_moe_layer_step(100)
        out.out.add_sliding_window_pattern(2)
    for i in range(n_layer):
        out.attention(i)
        out.ffn(i)
        if kind == "iswa":
            out.tensor(f"blk.{i}.post_attention_norm.weight", N_EMBD)
            out.tensor(f"blk.{i}.post_ffw_norm.weight", N_EMBD)
    out.close()
    return path


def _write_lfm2(path: Path, n_swa: int, n_recurrent: int) -> Path:
    """The last layer is attention, those before it are short convolutions (recurrent)."""
    out = _Writer(path, "lfm2")
    out.header(n_recurrent + 1, [0] * n_recurrent + [1], n_swa)
    out.out.add_shortconv_l_cache(3)
    out.tensor("token_embd_norm.weight", N_EMBD)
    for i in range(n_recurrent):
        out.ffn(i)
        out.tensor(f"blk.{i}.shortconv.conv.weight", N_EMBD, 3)
        out.tensor(f"blk.{i}.shortconv.in_proj.weight", 3 * N_EMBD, N_EMBD)
        out.tensor(f"blk.{i}.shortconv.out_proj.weight", N_EMBD, N_EMBD)
    out.ffn(n_recurrent)
    out.attention(n_recurrent)
    out.tensor(f"blk.{n_recurrent}.attn_q_norm.weight", N_EMBD)
    out.tensor(f"blk.{n_recurrent}.attn_k_norm.weight", N_EMBD)
    out.close()
    return path


def _write_minimax_m3(path: Path) -> Path:
    """In layer 1 an indexer chooses 4 blocks of 4 positions; it has two experts, and one for all tokens."""
    out = _Writer(path, "minimax-m3")
    out.header(2, 1, 0)
    for key, value in {"head_count": 1, "key_length": N_EMBD, "top_k": 4, "block_size": 4, "local_blocks": 1}.items():
        out.out.add_uint32(f"minimax-m3.attention.indexer.{key}", value)
    out.out.add_leading_dense_block_count(1)
    out.out.add_expert_count(2)
    out.out.add_expert_used_count(1)
    out.out.add_expert_feed_forward_length(N_FF)
    out.out.add_expert_shared_count(1)
    out.out.add_expert_weights_scale(1.0)
    out.out.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    out.tensor("output_norm.weight", N_EMBD)
    out.tensor("output.weight", N_VOCAB, N_EMBD)
    for i in range(2):
        out.attention(i)
        for part in ("attn_norm", "attn_q_norm", "attn_k_norm", "ffn_norm"):
            out.tensor(f"blk.{i}.{part}.weight", N_EMBD)
    for part in ("gate", "up", "down"):
        out.tensor(f"blk.0.ffn_{part}.weight", N_FF, N_EMBD)
        out.tensor(f"blk.1.ffn_{part}_exps.weight", 2, N_FF, N_EMBD)
        out.tensor(f"blk.1.ffn_{part}_shexp.weight", N_FF, N_EMBD)
    out.tensor("blk.1.ffn_gate_inp.weight", 2, N_EMBD)
    out.tensor("blk.1.exp_probs_b.bias", 2)
    out.tensor("blk.1.indexer.q_proj.weight", N_EMBD, N_EMBD)
    out.tensor("blk.1.indexer.k_proj.weight", N_EMBD, N_EMBD)
    out.tensor("blk.1.indexer.q_norm.weight", N_EMBD)
    out.tensor("blk.1.indexer.k_norm.weight", N_EMBD)
    out.close()
    return path
