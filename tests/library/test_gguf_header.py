"""read_header: what it reads, what it refuses with which words, and that nothing makes it slow or large."""

import math
import os
import random
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvdesk import paths
from kvdesk.errors import ModelFileError
from kvdesk.library.gguf_header import GgufHeader, Skipped, read_any_header, read_header
from tests.library.gguf_files import ARRAY, STRING, WEIGHTS, Raw, TensorInfo, Value, array, gguf, llama, text
from tests.needs import needs_pipes

HUGE = (1 << 64) - 1


def write(folder: Path, data: bytes, name: str = "model.gguf") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(path: Path) -> str:
    """The sentence `path` is refused with, which must come quickly and be one."""
    start_s = time.thread_time()
    with pytest.raises(ModelFileError) as caught:
        read_header(path)
    assert time.thread_time() - start_s < 6
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


# --- what is read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_a_model(tmp_path: Path, version: int) -> None:
    extra: dict[str, Value] = {
        "a.big": array(5, range(5000)),
        "a.few": [1, 2, 3],
        "a.flag": True,
        "a.words": ["x", "y"],
        "a.real": 0.5,
    }
    header = read_header(write(tmp_path, gguf(llama() | extra, WEIGHTS, version=version)))
    assert header.version == version
    assert header.architecture == "llama"
    assert header.name == "Tiny"
    assert header.n_vocab == 300
    assert header.text("tokenizer.chat_template") == "{{ messages }}"
    assert header.metadata["tokenizer.ggml.tokens"] == Skipped("string", 300)
    assert header.metadata["a.big"] == Skipped("<i", 5000)
    assert header.metadata["a.few"] == (1, 2, 3)
    assert header.metadata["a.flag"] is True
    assert header.metadata["a.words"] == ("x", "y")
    assert header.metadata["a.real"] == 0.5
    assert [t.name for t in header.tensors] == ["token_embd.weight", "output.weight"]
    assert header.tensors[1].n_bytes == 64 * 300 * 4
    assert header.data_offset % header.alignment == 0
    assert not header.is_split
    assert header.file_size == header.data_offset + 2 * 64 * 300 * 4


def test_alignment_and_long_strings(tmp_path: Path) -> None:
    metadata = llama() | {"general.alignment": 256, "a.long": "x" * (1 << 21)}
    header = read_header(write(tmp_path, gguf(metadata, WEIGHTS, alignment=256)))
    assert header.alignment == 256
    assert header.metadata["a.long"] == Skipped("string", 1 << 21)


def test_per_layer_numbers(tmp_path: Path) -> None:
    header = read_header(write(tmp_path, gguf(llama(attention__head_count_kv=[2, 0]), WEIGHTS)))
    assert header.per_layer("attention.head_count_kv", 2) == (2, 0)
    assert header.per_layer("attention.head_count", 2) == (4, 4)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e308, 4.0])
def test_a_number_per_layer_that_is_no_whole_number_is_0(tmp_path: Path, number: float) -> None:
    double = 12
    one = Raw(double, struct.pack("<d", number))
    each = Raw(ARRAY, struct.pack("<IQ2d", double, 2, number, number))
    header = read_header(write(tmp_path, gguf(llama(attention__head_count=one, feed_forward_length=each), WEIGHTS)))
    assert header.per_layer("attention.head_count", 2) == (0, 0)
    assert header.per_layer("feed_forward_length", 2) == (0, 0)


def test_token_lists_of_every_shape_are_skipped_exactly(tmp_path: Path) -> None:
    """Empty strings, NULs and long ones break the fast path; what follows must be found all the same."""
    chance = random.Random(7)
    words = [
        chance.choice(["", "\0" * 9, "a" * 255, "b" * 256, "c" * 70000, "dd", "e\0\0\0\0\0\0\0\0"]) for _ in range(700)
    ]
    words += [f"w{i}" for i in range(3000)] + [""] * 600 + ["ü" * 100] * 900 + ["z" * 300] * 20
    header = read_header(write(tmp_path, gguf(llama() | {"tokenizer.ggml.tokens": words, "after": 42}, WEIGHTS)))
    assert header.metadata["tokenizer.ggml.tokens"] == Skipped("string", len(words))
    assert header.metadata["after"] == 42


def test_a_normal_model_is_read_in_50_ms(tmp_path: Path) -> None:
    """Best of five: the machine may be busy."""
    words = [f"token{i}" for i in range(256_000)]
    metadata = llama() | {"tokenizer.ggml.tokens": words, "tokenizer.ggml.scores": array(6, range(256_000))}
    path = write(tmp_path, gguf(metadata, WEIGHTS))
    times = []
    for _ in range(5):
        start_s = time.thread_time()
        read_header(path)
        times.append(time.thread_time() - start_s)
    assert min(times) < 0.05


def test_the_embedded_model() -> None:
    path = paths.embedded_model()
    assert path is not None
    header = read_header(path)
    assert header.architecture == "llama"
    assert header.hyper("block_count") == 30
    assert header.n_vocab == 49152
    assert "<|im_start|>" in header.text("tokenizer.chat_template")


# --- what is refused ------------------------------------------------------------------------------------------------


def test_not_a_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.gguf") == f"There is no file {tmp_path / 'none.gguf'}."
    assert "is a folder" in refusal(tmp_path)
    assert "is empty" in refusal(write(tmp_path, b""))
    assert "not the name of a file" in refusal(Path("a\0b"))


@needs_pipes
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "device or pipe" in refusal(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = write(tmp_path, gguf(llama(), WEIGHTS))
    path.chmod(0)
    assert "no permission" in refusal(path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"Once upon a time there was a model.\n" * 50, "is a text file"),
        ("größer".encode() * 100, "is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!doctype html><html>", "web page"),
        (b"PK\x03\x04" + bytes(100), "ZIP archive"),
        (struct.pack("<Q", 80) + b'{"__metadata__":{}}' + bytes(80), "safetensors"),
        (b"tjgg" + bytes(100), "old format"),
        (bytes(1000), "only zeros"),
        (b"\x7fELF\x02\x01\x00" + bytes(range(256)), "is not a GGUF model"),
        (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(64), "version 1"),
        (b"GGUF" + struct.pack("<I", 77) + bytes(64), "version 77"),
        (b"GGUF" + struct.pack("<I", 0) + bytes(64), "version 0"),
        (b"GGUF", "is cut off"),
    ],
)
def test_other_formats(tmp_path: Path, data: bytes, words: str) -> None:
    assert words in refusal(write(tmp_path, data))


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"general.architecture": "clip"}, "mmproj"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "LoRA adapter"),
        ({"general.architecture": "bert", "bert.block_count": 2}, "embedding model"),
        ({"general.architecture": "llama", "llama.attention.causal": False, "llama.block_count": 1}, "embedding model"),
        ({"general.architecture": "flux"}, "images"),
        ({"general.architecture": "whisper"}, "speech"),
        ({"general.architecture": "t5", "t5.block_count": 2}, "encoder-decoder"),
        ({"general.architecture": "dream"}, "diffusion"),
        ({"general.architecture": "eagle3"}, "draft"),
        ({"general.architecture": "marvin"}, 'kind "marvin"'),
        ({"general.architecture": "imatrix"}, "importance matrix"),
        ({"general.name": "x"}, "does not name its architecture"),
        ({"general.architecture": "llama"}, "how many layers"),
    ],
)
def test_other_kinds(tmp_path: Path, metadata: dict[str, str | int | bool], words: str) -> None:
    assert words in refusal(write(tmp_path, gguf(list(metadata.items()), WEIGHTS)))


def test_vocabulary_only(tmp_path: Path) -> None:
    assert "only a vocabulary" in refusal(write(tmp_path, gguf(llama())))


def test_missing_bytes_are_counted(tmp_path: Path) -> None:
    data = gguf(llama(), WEIGHTS)
    assert "1,234 bytes are missing" in refusal(write(tmp_path, data[:-1234]))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = gguf(llama(), WEIGHTS)
    for n in [*range(1, 700, 7), len(data) // 2, len(data) - 1]:
        refusal(write(tmp_path, data[:n]))


def test_splits(tmp_path: Path) -> None:
    split = {"split.count": 2, "split.no": 0}
    first = write(tmp_path, gguf(llama() | split, WEIGHTS), "m-00001-of-00002.gguf")
    assert "m-00002-of-00002.gguf" in refusal(first)
    second = write(tmp_path, gguf(llama() | split | {"split.no": 1}, WEIGHTS), "m-00002-of-00002.gguf")
    assert "a later part of a split model; open part 1, m-00001-of-00002.gguf" in refusal(second)
    rest = {"split.no": 1, "split.count": 2, "split.tensors.count": 5}  # all that llama-gguf-split writes into it
    later = write(tmp_path, gguf(rest, WEIGHTS), "other-00002-of-00002.gguf")
    assert "a later part of a split model; open part 1, other-00001-of-00002.gguf" in refusal(later)
    assert refusal(write(tmp_path, gguf(rest, WEIGHTS), "renamed-part.gguf")).endswith("split model; open part 1.")
    header = read_header(first)
    assert header.is_split
    assert header.split_paths == (first, second)
    assert "lost its name" in refusal(write(tmp_path, gguf(llama() | split, WEIGHTS), "renamed.gguf"))
    assert "files" in refusal(
        write(tmp_path, gguf(llama() | {"split.count": 1 << 31}, WEIGHTS), "m-00001-of-00003.gguf")
    )


def tensors(*infos: TensorInfo) -> bytes:
    return gguf(llama(), infos)


HOSTILE = {
    "keys": gguf(n_keys=HUGE),
    "many_keys": gguf(n_keys=1 << 20),
    "n_tensors": gguf(llama(), n_tensors=HUGE),
    "empty_key": gguf([("", 1)]),
    "long_key": gguf([("k" * 5000, 1)]),
    "endless_key": gguf(n_keys=1) + struct.pack("<Q", HUGE),
    "duplicate": gguf([("a", 1), ("a", 2)]),
    "value_type": gguf([("a", Raw(99, b""))]),
    "endless_string": gguf([("a", Raw(STRING, struct.pack("<Q", HUGE)))]),
    "nested_arrays": gguf([("a", Raw(ARRAY, struct.pack("<IQ", ARRAY, 1) * 1000))]),
    "endless_numbers": gguf([("a", Raw(ARRAY, struct.pack("<IQ", 0, HUGE)))]),
    "endless_strings": gguf([("a", Raw(ARRAY, struct.pack("<IQ", STRING, HUGE)))]),
    "more_strings": gguf([("a", Raw(ARRAY, struct.pack("<IQ", STRING, 100_000) + text("x") * 50_000))]),
    "array_type": gguf([("a", Raw(ARRAY, struct.pack("<IQ", 77, 1) + bytes(99)))]),
    "too_much": gguf([(f"a{i}", "x" * (1 << 20)) for i in range(20)]),
    "alignment_0": gguf(llama() | {"general.alignment": 0}, WEIGHTS),
    "alignment_3": gguf(llama() | {"general.alignment": 3}, WEIGHTS),
    "alignment_text": gguf(llama() | {"general.alignment": "x"}, WEIGHTS),
    "alignment_huge": gguf(llama() | {"general.alignment": 1 << 31}, WEIGHTS),
    "tensor_name": tensors(TensorInfo("n" * 64, (1,))),
    "tensor_twice": tensors(TensorInfo("a", (8,)), TensorInfo("a", (8,))),
    "tensor_dims": tensors(TensorInfo("a", (1,) * 5)),
    "tensor_many_dims": gguf(llama(), n_tensors=1) + text("a") + struct.pack("<I", 1 << 31) + bytes(99),
    "tensor_overflow": tensors(TensorInfo("a", (1 << 40, 1 << 40), n_bytes=32)),
    "tensor_outside": tensors(TensorInfo("a", (1 << 40,), n_bytes=32)),
    "tensor_type": tensors(TensorInfo("a", (32,), 250)),
    "tensor_removed_type": tensors(TensorInfo("a", (32,), 31)),
    "tensor_block": tensors(TensorInfo("a", (33,), 2, n_bytes=32)),
    "tensor_overlap": tensors(TensorInfo("a", (64,)), TensorInfo("b", (64,), offset=32)),
    "tensor_gap": tensors(TensorInfo("a", (64,)), TensorInfo("b", (64,), offset=1 << 62)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, HOSTILE[name])
    tracemalloc.start()
    refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_millions_of_empty_strings_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvdesk.library.gguf_cursor.MAX_SECONDS", 0.1)
    n = 4_000_000
    path = write(tmp_path, gguf([("a", Raw(ARRAY, struct.pack("<IQ", STRING, n) + bytes(8 * n)))]))
    start_s = time.thread_time()
    assert "too long" in refusal(path)
    assert time.thread_time() - start_s < 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_damage_never_escapes(tmp_path: Path, data: st.DataObject) -> None:
    """Any bytes changed in the header: a header or a ModelFileError, nothing else."""
    whole = gguf(llama(), WEIGHTS)
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, 900) | st.integers(0, 5200))
        changed[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
    path = write(tmp_path, bytes(changed[: data.draw(st.sampled_from([len(whole), 4000, 300]))]))
    for read in (read_header, read_any_header):
        try:
            assert isinstance(read(path), GgufHeader)
        except ModelFileError:
            pass
