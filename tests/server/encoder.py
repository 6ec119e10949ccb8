"""Tiny encoders with random weights and a token a byte, written for the tests: one that embeds, one that ranks."""

from pathlib import Path

import gguf
import numpy as np

from tests.backends.local.tiny_models import add_tokenizer, byte_tokens
from tests.cache.models import N_EMBD, N_FF

N_CTX = 1024


def write_encoder(path: Path, pooling: gguf.PoolingType) -> Path:
    """BERT of two layers."""
    out, rng, n_vocab = gguf.GGUFWriter(str(path), "bert"), np.random.default_rng(0), len(byte_tokens())
    out.add_context_length(N_CTX)
    out.add_embedding_length(N_EMBD)
    out.add_block_count(2)
    out.add_feed_forward_length(N_FF)
    out.add_head_count(1)
    out.add_layer_norm_eps(1e-5)
    out.add_causal_attention(False)
    out.add_pooling_type(pooling)
    out.add_vocab_size(n_vocab)
    add_tokenizer(out, "gpt-2", {})
    out.add_token_type_count(1)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (n_vocab, N_EMBD),
        "position_embd": (N_CTX, N_EMBD),
        "token_types": (1, N_EMBD),
    }
    for i in range(2):
        shapes |= {f"blk.{i}.attn_{part}": (N_EMBD, N_EMBD) for part in ("q", "k", "v", "output")}
        shapes |= {f"blk.{i}.ffn_up": (N_FF, N_EMBD), f"blk.{i}.ffn_down": (N_EMBD, N_FF)}
    if pooling == gguf.PoolingType.RANK:
        shapes |= {"cls": (N_EMBD, N_EMBD), "cls.output": (1, N_EMBD)}
    for name, shape in shapes.items():
        out.add_tensor(f"{name}.weight", rng.normal(0, 0.3, shape).astype(np.float32))
    norms = ["token_embd_norm", *(f"blk.{i}.{name}_output_norm" for i in range(2) for name in ("attn", "layer"))]
    for name in norms:
        out.add_tensor(f"{name}.weight", np.ones(N_EMBD, np.float32))
        out.add_tensor(f"{name}.bias", np.zeros(N_EMBD, np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path
