"""Hostile GGUF files by seed: a model that works, damaged in some places. Writes bytes; knows nothing of kvdesk.

The file is taken apart into its header's entries and its tensors, one of the `DAMAGES` changes some of them, and it is
put together again, so that what is wrong is deep inside llama.cpp's loader, tokenizer or graph and not only in the
first bytes. Format: ggml/docs/gguf.md.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kvdesk.values import replace
from tests.library.gguf_files import ARRAY, LAYOUTS, STRING
from tests.library.gguf_files import text as _text

EXTREMES = (0, 1, 2, 3, 7, 64, 255, 513, 65_535, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
WORDS = (
    *("", " ", "x", "gpt2", "llama", "bert", "t5", "rwkv", "plamo2", "none", "yarn", "longrope", "\x00", "é" * 40),
    *("default", "gpt-4o", "tekken", "deepseek-llm", "whitespace", "superbpe", "gemma4", "chameleon", "mamba"),
)
TEMPLATES = (
    "",
    "{% for %}",
    "{{ 1 / 0 }}",
    "{{ raise_exception('no') }}",
    "{{ 'a' * 20000000000 }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ messages[0].content * 100000 }}",
    "{{ bos_token * 90000 }}",
    "{{ '\ud800' }}",
    "{% for m in messages %}{{ ('a' * 99999 ~ m.content) }}{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
)


@dataclass(slots=True)
class Entry:
    """One key of the metadata: its value's type and bytes."""

    key: bytes
    kind: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Info:
    """One tensor of the list."""

    name: bytes
    dims: tuple[int, ...]
    kind: int
    offset: int


@dataclass(slots=True)
class File:
    """A GGUF file taken apart. `counts`: tensors and keys that the header tells of beyond those there are."""

    entries: list[Entry]
    infos: list[Info]
    weights: bytes
    counts: list[int] = field(default_factory=lambda: [0, 0])
    version: int = 3

    def entry(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == key.encode()), None)

    def put(self, key: str, kind: int, data: bytes) -> None:
        found = self.entry(key)
        if found is None:
            self.entries.append(Entry(key.encode(), kind, data))
        else:
            found.kind, found.data = kind, data

    def together(self) -> bytes:
        counts = len(self.infos) + self.counts[0], len(self.entries) + self.counts[1]
        parts = [struct.pack("<4sIQQ", b"GGUF", self.version, *(max(0, n) % 2**64 for n in counts))]
        parts += [_text(e.key) + struct.pack("<I", e.kind) + e.data for e in self.entries]
        for info in self.infos:
            dims = struct.pack(f"<I{len(info.dims)}Q", len(info.dims), *(dim % 2**64 for dim in info.dims))
            parts.append(_text(info.name) + dims + struct.pack("<IQ", info.kind, info.offset % 2**64))
        head = b"".join(parts)
        return head + bytes(-len(head) % 32) + self.weights


def apart(data: bytes) -> File:
    """Take a file apart that is whole."""
    version, n_tensors, n_keys = struct.unpack_from("<IQQ", data, 4)
    at = 24
    entries, infos = [], []
    for _ in range(n_keys):
        key, at = _read_text(data, at)
        kind = struct.unpack_from("<I", data, at)[0]
        end = _end_of(data, at + 4, kind)
        entries.append(Entry(key, kind, data[at + 4 : end]))
        at = end
    for _ in range(n_tensors):
        name, at = _read_text(data, at)
        n_dims = struct.unpack_from("<I", data, at)[0]
        dims = struct.unpack_from(f"<{n_dims}Q", data, at + 4)
        kind, offset = struct.unpack_from("<IQ", data, at + 4 + 8 * n_dims)
        infos.append(Info(name, dims, kind, offset))
        at += 16 + 8 * n_dims
    return File(entries, infos, data[at + -at % 32 :], version=version)


def hostile(bases: list[Path], seed: int) -> tuple[str, bytes]:
    """What was done to which base, and the file. The same seed and bases, the same file."""
    rng = random.Random(seed)
    base = bases[seed % len(bases)]
    file = apart(base.read_bytes())
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        damage = rng.choice(DAMAGES)
        done.append(damage.__name__.strip("_"))
        damage(file, rng)
    data = bytearray(file.together())
    raw = rng.random()
    if raw < 0.08:
        done.append("truncated")
        del data[rng.choice((rng.randrange(64), rng.randrange(len(data)), len(data) - len(file.weights) // 3)) :]
    elif raw < 0.2:
        done.append("flipped")
        n_head = len(data) - len(file.weights)
        for _ in range(rng.choice((1, 8, 64))):
            data[rng.randrange(4, max(5, n_head))] ^= 1 << rng.randrange(8)
    return f"{base.stem}: {', '.join(done)}", bytes(data)


# --- the damages ----------------------------------------------------------------------------------------------------


def _count(file: File, rng: random.Random) -> None:
    file.counts[rng.randrange(2)] = rng.choice((-1, 1, 2, 2**16, 2**31, 2**62))


def _number(file: File, rng: random.Random) -> None:
    numbers = [e for e in file.entries if e.kind in LAYOUTS]
    for entry in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 4)))):
        if rng.random() < 0.3:
            entry.kind = rng.choice(tuple(LAYOUTS))
        entry.data = _extreme(entry.kind, rng)


def _extreme(kind: int, rng: random.Random) -> bytes:
    """A number of this type."""
    layout = LAYOUTS[kind]
    if layout in "fd":
        return struct.pack("<" + layout, rng.choice((0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"))))
    return struct.pack("<Q", rng.choice(EXTREMES))[: struct.calcsize(layout)]


def _new_number(file: File, rng: random.Random) -> None:
    entry = file.entry("general.architecture")
    name = entry.data[8:].decode("utf-8", "replace") if entry else "llama"
    key = rng.choice(
        (
            *("block_count", "expert_count", "expert_used_count", "nextn_predict_layers", "attention.head_count"),
            *("attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count"),
            *("attention.sliding_window", "context_length", "feed_forward_length", "vocab_size", "ssm.state_size"),
            *(
                "ssm.conv_kernel",
                "ssm.inner_size",
                "ssm.group_count",
                "expert_shared_count",
                "leading_dense_block_count",
            ),
            *("attention.key_length_mla", "rope.scaling.original_context_length", "attention.causal", "wkv.head_size"),
        )
    )
    kind = rng.choice((4, 4, 4, 5, 10, 7, *LAYOUTS))
    file.put(f"{name}.{key}", kind, _extreme(kind, rng))


def _type(file: File, rng: random.Random) -> None:
    rng.choice(file.entries).kind = rng.choice((0, 4, 5, 6, 7, STRING, ARRAY, 10, 12, 13, 99))


def _string(file: File, rng: random.Random) -> None:
    entry = rng.choice([e for e in file.entries if e.kind == STRING])
    raw = rng.choice(WORDS).encode() if rng.random() < 0.8 else rng.randbytes(rng.randrange(200))
    length = len(raw) if rng.random() < 0.8 else rng.choice((0, 2**20, 2**31, 2**63, 2**64 - 1))
    entry.data = struct.pack("<Q", length) + raw


def _rope_scaling(file: File, rng: random.Random) -> None:
    entry = file.entry("general.architecture")
    name = entry.data[8:].decode("utf-8", "replace") if entry else "llama"
    file.put(f"{name}.rope.scaling.type", STRING, _text(rng.choice(WORDS).encode()))
    file.put(f"{name}.rope.scaling.factor", 6, struct.pack("<f", rng.choice((0.0, -1.0, 1e9, float("nan")))))


def _missing(file: File, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 3))):
        file.entries.remove(rng.choice(file.entries))


def _twice(file: File, rng: random.Random) -> None:
    file.entries.insert(rng.randrange(len(file.entries)), rng.choice(file.entries))


def _dims(file: File, rng: random.Random) -> None:
    i = rng.randrange(len(file.infos))
    dims = list(file.infos[i].dims)
    if rng.random() < 0.2:
        dims = dims[: rng.randrange(len(dims) + 1)] + [rng.choice((0, 1, 2))] * rng.randrange(5)
    else:
        dims[rng.randrange(len(dims))] = rng.choice((0, 1, 63, 65, 128, 2**31, 2**32, 2**62, 2**64 - 1))
    file.infos[i] = replace(file.infos[i], dims=tuple(dims))


def _tensor_type(file: File, rng: random.Random) -> None:
    for i in rng.sample(range(len(file.infos)), rng.choice((1, min(4, len(file.infos))))):
        file.infos[i] = replace(file.infos[i], kind=rng.choice((0, 1, 2, 3, 8, 12, 14, 16, 24, 30, 31, 39, 40, 255)))


def _offset(file: File, rng: random.Random) -> None:
    i = rng.randrange(len(file.infos))
    offset = rng.choice((0, 1, 16, 32, len(file.weights), len(file.weights) - 32, 2**40, 2**63, 2**64 - 32))
    file.infos[i] = replace(file.infos[i], offset=offset)


def _tensors(file: File, rng: random.Random) -> None:
    i, j = (rng.randrange(len(file.infos)) for _ in range(2))
    what = rng.randrange(4)
    if what == 0:
        del file.infos[i]
    elif what == 1:
        file.infos[i] = replace(file.infos[i], name=file.infos[j].name)
    elif what == 2:
        one, other = file.infos[i].name, file.infos[j].name
        file.infos[i], file.infos[j] = replace(file.infos[i], name=other), replace(file.infos[j], name=one)
    else:
        file.infos.append(replace(file.infos[i], name=rng.choice((b"", b"rope_freqs.weight", b"x" * 80))))


def _weights(file: File, rng: random.Random) -> None:
    data = bytearray(file.weights)
    start = rng.randrange(len(data))
    n = min(len(data) - start, rng.choice((4, 4096, len(data))))
    data[start : start + n] = rng.choice((b"\xff", b"\x7f", b"\x00")) * n
    file.weights = bytes(data)


def _vocabulary(file: File, rng: random.Random) -> None:
    tokens = file.entry("tokenizer.ggml.tokens")
    if tokens is None or tokens.kind != ARRAY:
        return
    texts = _strings(tokens.data)
    for _ in range(rng.choice((1, 4, 200))):
        i = rng.randrange(len(texts))
        texts[i] = rng.choice((b"", texts[0], texts[-1], b"\xff\xfe", b" ", b"\n", b"<0x0A>", rng.randbytes(3)))
    if rng.random() < 0.4:
        del texts[rng.randrange(len(texts)) :]
    tokens.data = struct.pack("<IQ", STRING, len(texts)) + b"".join(map(_text, texts))


def _tokenizer(file: File, rng: random.Random) -> None:
    tokens = file.entry("tokenizer.ggml.tokens")
    n = struct.unpack_from("<Q", tokens.data, 4)[0] if tokens and tokens.kind == ARRAY and len(tokens.data) >= 12 else 1
    what = rng.randrange(5)
    if what == 0:
        file.put(
            "tokenizer.ggml.model", STRING, _text(rng.choice((b"llama", b"gpt2", b"bert", b"t5", b"rwkv", b"no_vocab")))
        )
        file.put("tokenizer.ggml.scores", ARRAY, struct.pack(f"<IQ{n % 4096}f", 6, n % 4096, *[0.0] * (n % 4096)))
    elif what == 1:
        file.put("tokenizer.ggml.pre", STRING, _text(rng.choice(WORDS).encode()))
    elif what == 2:
        kinds = rng.choices(range(8), k=n % 4096)
        file.put("tokenizer.ggml.token_type", ARRAY, struct.pack(f"<IQ{len(kinds)}i", 5, len(kinds), *kinds))
    elif what == 3:
        name = rng.choice(("bos", "eos", "unknown", "padding", "separator", "eot", "mask", "fim_pre"))
        file.put(f"tokenizer.ggml.{name}_token_id", 4, struct.pack("<I", rng.choice((*EXTREMES, n, n - 1))))
        file.put("tokenizer.ggml.add_bos_token", 7, b"\1")
    else:
        merges = rng.choice(([], [b""], [b" "], [b"a"], [b"q q"] * 9, [b"q  q"], [b"\xff \xff"]))
        file.put("tokenizer.ggml.merges", ARRAY, struct.pack("<IQ", STRING, len(merges)) + b"".join(map(_text, merges)))


def _template(file: File, rng: random.Random) -> None:
    source = rng.choice(TEMPLATES).encode("utf-8", "surrogatepass")
    file.put("tokenizer.chat_template", STRING, _text(source))


DAMAGES: tuple[Callable[[File, random.Random], None], ...] = (
    *(_count, _number, _number, _number, _new_number, _new_number, _type, _string, _rope_scaling, _missing, _twice),
    *(_dims, _tensor_type, _offset, _tensors, _weights, _vocabulary, _vocabulary, _tokenizer, _tokenizer, _template),
)


# --- bytes ----------------------------------------------------------------------------------------------------------


def _read_text(data: bytes, at: int) -> tuple[bytes, int]:
    n = struct.unpack_from("<Q", data, at)[0]
    return data[at + 8 : at + 8 + n], at + 8 + n


def _end_of(data: bytes, at: int, kind: int) -> int:
    if kind == STRING:
        return _read_text(data, at)[1]
    if kind != ARRAY:
        return at + struct.calcsize(LAYOUTS[kind])
    inner, n = struct.unpack_from("<IQ", data, at)
    at += 12
    if inner in LAYOUTS:
        return at + int(n) * struct.calcsize(LAYOUTS[inner])
    for _ in range(n):
        at = _end_of(data, at, inner)
    return at


def _strings(data: bytes) -> list[bytes]:
    n, at, found = struct.unpack_from("<Q", data, 4)[0], 12, []
    for _ in range(n):
        text, at = _read_text(data, at)
        found.append(text)
    return found
