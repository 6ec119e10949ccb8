"""A tiny model that chats as the embedded one does: its tokenizer and template, so that prompts have as many tokens.

Two layers of random weights take less than a millisecond a token. What it says has no meaning.
"""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kvdesk import paths
from kvdesk.library import preflight
from kvdesk.library.gguf_header import read_header
from kvdesk.settings import ContextSettings
from tests.backends.local.tiny_models import ARCHITECTURES
from tests.cache.models import E
from tests.library.gguf_files import STRING, Raw, TensorInfo, Value, gguf, llama, padded
from tests.library.gguf_files import text as string
from tests.stress.hostile_models import apart

N_EMBD = E[0]
INFILL = {"pre": 8, "suf": 9, "mid": 10}
"""Control tokens that the embedded model has for something else."""


def write_talking(
    path: Path, like: Path, template: str | None = None, *, marks: Mapping[str, int] | None = None, n_layer: int = 2
) -> Path:
    """Write the model to `path`, with all keys of the tokenizer of the file `like`, or another chat `template`.
    `marks`: more tokens, and their types. `n_layer`: one or two.
    """
    entries = apart(like.read_bytes()[: 8 << 20]).entries
    tokenizer = {e.key.decode(): Raw(e.kind, e.data) for e in entries if e.key.startswith(b"tokenizer.")}
    for text, kind in (marks or {}).items():
        _add(tokenizer, "tokens", string(text))
        _add(tokenizer, "token_type", struct.pack("<i", kind))
    if template is not None:
        tokenizer["tokenizer.chat_template"] = Raw(STRING, string(template))
    (n_vocab,) = struct.unpack_from("<Q", tokenizer["tokenizer.ggml.tokens"].data, 4)
    metadata: dict[str, Value] = {
        **llama(
            block_count=n_layer, attention__head_count=1, attention__head_count_kv=1, feed_forward_length=N_EMBD,
            context_length=8192, vocab_size=n_vocab, rope__dimension_count=N_EMBD,
            attention__layer_norm_rms_epsilon=1e-5,
        ),
        **tokenizer,
        **{f"tokenizer.ggml.fim_{part}_token_id": token for part, token in INFILL.items()},
    }  # fmt: skip
    layers, rest = ARCHITECTURES["llama"]
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (n_vocab, N_EMBD), "output.weight": (n_vocab, N_EMBD)}
    shapes |= rest | {
        f"blk.{i}.{name}": shape for i, layer in enumerate(layers[:n_layer]) for name, shape in layer.items()
    }
    head = gguf(metadata, [TensorInfo(name, shape[::-1]) for name, shape in shapes.items()], with_data=False)
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(head.ljust(padded(len(head), 32), b"\0"))
        for shape in shapes.values():
            values = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
            file.write(values.astype("<f4").tobytes())
    return path


def trust(path: Path) -> None:
    """Remember in the home that a trial of the model went well, for children that use this home."""
    key = preflight._fingerprint(read_header(path), ContextSettings())
    preflight._remember(paths.data_dir() / "preflight.json", key, preflight.Verdict(ok=True))


def _add(tokenizer: dict[str, Raw], key: str, value: bytes) -> None:
    """One more value at the end of an array."""
    kind, data = tokenizer[f"tokenizer.ggml.{key}"]
    of, n = struct.unpack_from("<IQ", data)
    tokenizer[f"tokenizer.ggml.{key}"] = Raw(kind, struct.pack("<IQ", of, n + 1) + data[12:] + value)
