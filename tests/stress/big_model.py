"""A model of about a billion parameters, as slow as a real one: random weights, the vocabulary of another GGUF."""

from pathlib import Path
from typing import Final

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType

N_LAYER, N_EMBD, N_HEAD, N_HEAD_KV, N_FF = 16, 2048, 32, 8, 5632
N_KV: Final = N_EMBD // N_HEAD * N_HEAD_KV
LAYER: Final = {
    "attn_q": (N_EMBD, N_EMBD),
    "attn_k": (N_KV, N_EMBD),
    "attn_v": (N_KV, N_EMBD),
    "attn_output": (N_EMBD, N_EMBD),
    "ffn_gate": (N_FF, N_EMBD),
    "ffn_up": (N_FF, N_EMBD),
    "ffn_down": (N_EMBD, N_FF),
}
"""The matrices of a layer: rows, columns."""
LARGEST_NODE: Final = N_FF * N_EMBD / (N_LAYER * sum(rows * columns for rows, columns in LAYER.values()))
"""The part of a ubatch's multiplications that its largest matrix takes, which is one node of the graph."""
_BLOCK, _BLOCK_BYTES = 32, 18  # Q4_0: a half-precision scale and 32 numbers of 4 bits (ggml-common.h, block_q4_0)


def write_big(path: Path, vocabulary: Path) -> Path:
    """Write the model, 0.5 GB in Q4_0, with the tokenizer and the template of the file `vocabulary`."""
    out = gguf.GGUFWriter(str(path), "llama")
    n_vocab = _copy_tokenizer(gguf.GGUFReader(str(vocabulary)), out)
    out.add_context_length(8192)
    out.add_embedding_length(N_EMBD)
    out.add_block_count(N_LAYER)
    out.add_feed_forward_length(N_FF)
    out.add_head_count(N_HEAD)
    out.add_head_count_kv(N_HEAD_KV)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(N_EMBD // N_HEAD)
    out.add_vocab_size(n_vocab)
    rng = np.random.default_rng(0)
    _add_matrix(out, "token_embd", (n_vocab, N_EMBD), rng)
    _add_norm(out, "output_norm")
    for i in range(N_LAYER):
        _add_norm(out, f"blk.{i}.attn_norm")
        _add_norm(out, f"blk.{i}.ffn_norm")
        for name, shape in LAYER.items():
            _add_matrix(out, f"blk.{i}.{name}", shape, rng)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def _copy_tokenizer(reader: gguf.GGUFReader, out: gguf.GGUFWriter) -> int:
    """Everything of the tokenizer. Returns the number of tokens."""
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            value = field.contents()
            if field.types[0] == GGUFValueType.ARRAY:
                out.add_array(name, value)
            else:
                out.add_key_value(name, value, field.types[0])
    return len(reader.fields["tokenizer.ggml.tokens"].data)


def _add_norm(out: gguf.GGUFWriter, name: str) -> None:
    out.add_tensor(f"{name}.weight", np.ones(N_EMBD, np.float32))


def _add_matrix(out: gguf.GGUFWriter, name: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    rows, columns = shape
    blocks = np.frombuffer(rng.bytes(rows * columns // _BLOCK * _BLOCK_BYTES), np.uint8).copy()
    blocks = blocks.reshape(rows, columns // _BLOCK, _BLOCK_BYTES)
    scale = np.float16(0.5 / np.sqrt(columns)).tobytes()
    blocks[:, :, :2] = np.frombuffer(scale, np.uint8)
    out.add_tensor(
        f"{name}.weight",
        blocks.reshape(rows, -1),
        raw_shape=(rows, columns // _BLOCK * _BLOCK_BYTES),
        raw_dtype=GGMLQuantizationType.Q4_0,
    )
