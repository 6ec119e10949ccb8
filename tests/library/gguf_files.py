"""Writes GGUF files for tests, broken ones too: nothing here checks anything."""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
LAYOUTS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", 11: "q", 12: "d"}


class Raw(NamedTuple):
    """A value given as type and bytes."""

    kind: int
    data: bytes


class TensorInfo(NamedTuple):
    name: str
    shape: Sequence[int]
    kind: int = 0
    offset: int | None = None  # None: where the one before ends
    n_bytes: int | None = None  # None: float32


Value = int | float | bool | str | list[str] | list[int] | Raw


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def array(kind: int, items: Sequence[int | str]) -> Raw:
    body = b"".join(text(i) if isinstance(i, str) else struct.pack("<" + LAYOUTS[kind], i) for i in items)
    return Raw(ARRAY, struct.pack("<IQ", kind, len(items)) + body)


def _encoded(value: Value) -> Raw:
    if isinstance(value, Raw):
        return value
    if isinstance(value, bool):
        return Raw(BOOL, struct.pack("<?", value))
    if isinstance(value, int):
        return Raw(U32, struct.pack("<I", value))
    if isinstance(value, float):
        return Raw(F32, struct.pack("<f", value))
    if isinstance(value, str):
        return Raw(STRING, text(value))
    if value and isinstance(value[0], int):
        return array(I32, value)
    return array(STRING, value)


def padded(n: int, alignment: int) -> int:
    return -(-n // alignment) * alignment


def gguf(
    metadata: Mapping[str, Value] | Sequence[tuple[str, Value]] = (),
    tensors: Sequence[TensorInfo] = (),
    *,
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
    with_data: bool = True,
) -> bytes:
    entries = list(metadata.items()) if isinstance(metadata, Mapping) else list(metadata)
    head = struct.pack(
        "<4sIQQ",
        b"GGUF",
        version,
        len(tensors) if n_tensors is None else n_tensors,
        len(entries) if n_keys is None else n_keys,
    )
    body = [head]
    for key, value in entries:
        kind, data = _encoded(value)
        body += [text(key), struct.pack("<I", kind), data]
    end = 0
    for info in tensors:
        offset = padded(end, alignment) if info.offset is None else info.offset
        n_bytes = info.n_bytes
        if n_bytes is None:
            n_bytes = 4
            for n in info.shape:
                n_bytes *= n
        end = offset + n_bytes
        shape = struct.pack(f"<I{len(info.shape)}Q", len(info.shape), *info.shape)
        body += [text(info.name), shape, struct.pack("<IQ", info.kind, offset)]
    data = b"".join(body)
    if with_data and tensors and end < 1 << 24:
        data += bytes(padded(len(data), alignment) - len(data) + end)
    return data


def llama(**changes: Value) -> dict[str, Value]:
    """Metadata of a small model; `changes` are keys after "llama." with "__" for "."."""
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": "Tiny",
        "llama.block_count": 2,
        "llama.context_length": 2048,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 128,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": [f"t{i}" for i in range(300)],
        "tokenizer.chat_template": "{{ messages }}",
    }
    return metadata | {f"llama.{key.replace('__', '.')}": value for key, value in changes.items()}


WEIGHTS = (TensorInfo("token_embd.weight", (64, 300)), TensorInfo("output.weight", (64, 300)))
