"""Reads the header of a GGUF file: metadata and the list of tensors, never tensor data.

Owns the format (ggml/src/gguf.cpp; versions 2 and 3) and its limits, which are tighter than llama.cpp's: what no model
has is refused in bounded time and memory. Whether the file is a language model is asked of `model_kind`. Opens files
that llama.cpp may die of; never calls llama.cpp.
"""

import os
import re
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from kvdesk.errors import ModelFileError, explained
from kvdesk.library.ggml_types import REMOVED, TYPES, GgmlType
from kvdesk.library.gguf_cursor import Cursor, Damaged, Truncated
from kvdesk.library.model_kind import check_language_model, describe_foreign
from kvdesk.translation import plural, tr

MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 18
MAX_KEY = 1 << 10  # bytes
MAX_STRING = 1 << 20  # bytes of a value that is kept; longer ones are skipped
MAX_NUMBERS = 1 << 12  # elements of an array that is kept
MAX_STRINGS = 64
MAX_KEPT = 16 << 20  # bytes of all values together
MAX_NAME = 63  # bytes (ggml.h, GGML_MAX_NAME)
MAX_DIMS = 4
DEFAULT_ALIGNMENT = 32
IMPOSSIBLE = 1 << 44  # bytes that no model file lacks: such a length is damage, not a broken download

STRING, ARRAY = 8, 9
NUMBERS = {
    number: struct.Struct(f"<{code}")
    for number, code in {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "?",
        10: "Q",
        11: "q",
        12: "d",
    }.items()
}
SPLIT_NAME = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A value that was not kept: `count` elements of an array, or bytes of a string."""

    kind: str
    count: int


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | Skipped


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor is. `offset` counts from `GgufHeader.data_offset`; `n_bytes` is without padding."""

    name: str
    shape: tuple[int, ...]
    kind: GgmlType
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself. Sizes and offsets in bytes."""

    path: Path
    version: int
    metadata: Mapping[str, Value] = field(repr=False)
    tensors: tuple[Tensor, ...] = field(repr=False)
    alignment: int
    data_offset: int
    file_size: int

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def name(self) -> str:
        """The model's own name, or the file's if it has none."""
        return self.text("general.name") or self.path.stem

    @property
    def n_split(self) -> int:
        """Files this model consists of."""
        return max(1, self.integer("split.count", 1))

    @property
    def is_split(self) -> bool:
        return self.n_split > 1

    @property
    def split_paths(self) -> tuple[Path, ...]:
        """All files of the model, this one first (llama.cpp's own naming)."""
        match = SPLIT_NAME.match(self.path.name)
        if not self.is_split or match is None:
            return (self.path,)
        n = self.n_split
        return tuple(self.path.with_name(f"{match[1]}-{i:05d}-of-{n:05d}.gguf") for i in range(1, n + 1))

    @property
    def n_vocab(self) -> int:
        """Tokens in the vocabulary; 0 when the file does not say."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, Skipped):
            return tokens.count
        if isinstance(tokens, tuple):
            return len(tokens)
        return self.integer(f"{self.architecture}.vocab_size", 0)

    def text(self, key: str) -> str:
        """A string, or the empty one."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def integer(self, key: str, default: int) -> int:
        """A whole number, or `default`."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) else default

    def hyper(self, key: str, default: int = 0) -> int:
        """A whole number of the architecture, such as `block_count`."""
        return self.integer(f"{self.architecture}.{key}", default)

    def per_layer(self, key: str, n_layer: int) -> tuple[int, ...]:
        """A whole number per layer: given for each, or one for all; else 0, also for other numbers, which llama.cpp
        refuses (llama-model-loader.cpp, `get_key_or_arr`).
        """
        value = self.metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, tuple):
            numbers = tuple(n if isinstance(n, int) else 0 for n in value)[:n_layer]
            return numbers + (0,) * (n_layer - len(numbers))
        return (value if isinstance(value, int) else 0,) * n_layer


def read_header(path: Path) -> GgufHeader:
    """The header of the language model in `path`.

    Raises ModelFileError, whose text says what is wrong with the file or what else it is.
    """
    header = read_any_header(path)
    _check_splits(header)  # first: a later part does not name its architecture
    check_language_model(header)
    return header


def read_any_header(path: Path) -> GgufHeader:
    """The header of any GGUF file, whatever it is for. Raises ModelFileError."""
    try:
        with explained(tr("{file} cannot be read: {why}."), ModelFileError, file=path.name), _open(path) as file:
            return _read(path, file, os.fstat(file.fileno()).st_size)
    except Truncated as error:
        if error.missing > IMPOSSIBLE:
            raise ModelFileError(
                tr("{file} is damaged: it claims an impossible size.").format(file=path.name), str(error)
            ) from error
        sentence = tr("{name} is cut off: {bytes} or more are missing. Download it again.").format(
            name=path.name, bytes=_bytes(error.missing)
        )
        raise ModelFileError(sentence, str(error)) from error
    except Damaged as error:
        raise ModelFileError(tr("{file} is damaged: {error}.").format(file=path.name, error=error)) from error


def _open(path: Path) -> BinaryIO:
    """Open a regular file; devices and pipes are refused, since opening one may wait forever."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError(tr("{file} is a folder, not a model file.").format(file=path.name or path))
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(tr("{file} is not a file but a device or pipe.").format(file=path.name))
        if status.st_size == 0:
            raise ModelFileError(tr("{file} is empty.").format(file=path.name))
        return path.open("rb")
    except FileNotFoundError as error:
        raise ModelFileError(tr("There is no file {path}.").format(path=path)) from error
    except PermissionError as error:
        raise ModelFileError(tr("You have no permission to read {path}.").format(path=path)) from error
    except ValueError as error:  # a NUL in the name
        raise ModelFileError(tr("This is not the name of a file."), repr(path)) from error


def _read(path: Path, file: BinaryIO, size: int) -> GgufHeader:
    start = file.read(512)
    if start[:4] != b"GGUF":
        raise ModelFileError(f"{path.name} {describe_foreign(start)}")
    cursor = Cursor(file, size)
    cursor.skip(4)
    version = cursor.u32()
    if version & 0xFFFF == 0 and version:
        raise ModelFileError(
            tr("{file} is a GGUF for big-endian machines; this one is little-endian.").format(file=path.name)
        )
    if version not in (2, 3):
        raise ModelFileError(
            tr("{file} is GGUF version {version}; llama.cpp here reads versions 2 and 3.").format(
                file=path.name, version=version
            )
        )
    n_tensors, n_keys = cursor.u64(), cursor.u64()
    if n_keys > MAX_KEYS:
        raise Damaged(tr("it claims {n_keys:,} metadata entries").format(n_keys=n_keys))
    if n_tensors > MAX_TENSORS:
        raise Damaged(tr("it claims {n_tensors:,} tensors").format(n_tensors=n_tensors))
    metadata = _metadata(cursor, n_keys)
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1) or alignment > 1 << 20:
        raise Damaged(tr("its alignment is not a power of two"))
    tensors = _tensors(cursor, n_tensors, alignment)
    data_offset = _padded(cursor.position, alignment)
    if tensors and (missing := data_offset + tensors[-1].offset + tensors[-1].n_bytes - size) > 0:
        raise ModelFileError(
            tr("{file} is cut off: {bytes} are missing. Download it again.").format(
                file=path.name, bytes=_bytes(missing)
            )
        )
    return GgufHeader(path, version, metadata, tensors, alignment, data_offset, size)


def _bytes(n: int) -> str:
    return plural("1 byte", "%n bytes", n)


def _metadata(cursor: Cursor, n_keys: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    start, skipped = cursor.position, 0
    for _ in range(n_keys):
        key = cursor.string(MAX_KEY)
        if not key:
            raise Damaged(tr("a metadata entry has no name, or an endless one"))
        if key in metadata:
            raise Damaged(tr("its metadata has two entries {key!r}").format(key=key))
        before = cursor.position
        metadata[key] = _value(cursor, cursor.u32())
        if isinstance(metadata[key], Skipped):
            skipped += cursor.position - before
        if cursor.position - start - skipped > MAX_KEPT:
            raise Damaged(tr("it has far too much metadata"))
    return metadata


def _value(cursor: Cursor, kind: int) -> Value:
    if kind == STRING:
        before = cursor.position
        text = cursor.string(MAX_STRING)
        return Skipped("string", cursor.position - before - 8) if text is None else text
    if kind == ARRAY:
        return _array(cursor, cursor.u32(), cursor.u64())
    if kind not in NUMBERS:
        raise Damaged(tr("its metadata has a value of unknown type {kind}").format(kind=kind))
    return cursor.number(NUMBERS[kind])


def _array(cursor: Cursor, kind: int, count: int) -> Value:
    if kind == STRING:
        if count > MAX_STRINGS:
            cursor.skip_strings(count)
            return Skipped("string", count)
        texts = [cursor.string(MAX_STRING) for _ in range(count)]
        return tuple("" if text is None else text for text in texts)
    if kind not in NUMBERS:  # arrays of arrays are refused by llama.cpp too
        raise Damaged(tr("its metadata has an array of unknown type {kind}").format(kind=kind))
    layout = NUMBERS[kind]
    if count > MAX_NUMBERS:
        cursor.skip(count * layout.size)
        return Skipped(layout.format, count)
    return tuple(value for (value,) in layout.iter_unpack(cursor.read(count * layout.size)))


def _tensors(cursor: Cursor, n_tensors: int, alignment: int) -> tuple[Tensor, ...]:
    """The tensors, which must lie one after the other as gguf.cpp demands: none overlap, none is out of order."""
    tensors: dict[str, Tensor] = {}
    expected = 0
    for _ in range(n_tensors):
        name = cursor.string(MAX_NAME)
        if name is None or name in tensors:
            raise Damaged(
                tr("two tensors are called {name!r}").format(name=name) if name else tr("a tensor has an endless name")
            )
        n_dims = cursor.u32()
        if n_dims > MAX_DIMS:
            raise Damaged(tr("tensor {name!r} has {n_dims:,} dimensions").format(name=name, n_dims=n_dims))
        shape = tuple(cursor.u64() for _ in range(n_dims))
        kind = _tensor_type(name, cursor.u32())
        offset = cursor.u64()
        row, rows = shape[0] if shape else 1, 1
        for n in shape[1:]:
            rows *= n
        if row * rows >= 1 << 63 or row % kind.block:
            raise Damaged(tr("tensor {name!r} has an impossible shape").format(name=name))
        if offset != expected:
            raise Damaged(tr("tensor {name!r} does not begin where the previous one ends").format(name=name))
        tensors[name] = Tensor(name, shape, kind, offset, kind.row_bytes(row) * rows)
        expected = _padded(offset + tensors[name].n_bytes, alignment)
    return tuple(tensors.values())


def _tensor_type(name: str, number: int) -> GgmlType:
    if number in TYPES:
        return TYPES[number]
    if number in REMOVED:
        raise Damaged(
            tr("tensor {name!r} has a data type that llama.cpp no longer reads ({number})").format(
                name=name, number=number
            )
        )
    raise Damaged(
        tr("tensor {name!r} has a data type this llama.cpp does not know ({number})").format(name=name, number=number)
    )


def _padded(n: int, alignment: int) -> int:
    return (n + alignment - 1) // alignment * alignment


def _check_splits(header: GgufHeader) -> None:
    """Of a model in several files the first must be opened, and all must be there (llama-model-loader.cpp)."""
    if not header.is_split:
        return
    if header.n_split > 1000:
        raise ModelFileError(
            tr("{file} is damaged: it claims to be one of {n_split:,} files.").format(
                file=header.path.name, n_split=header.n_split
            )
        )
    paths = header.split_paths
    if header.integer("split.no", 0) != 0:
        first = f", {paths[0].name}" if len(paths) > 1 else ""
        raise ModelFileError(
            tr("{file} is a later part of a split model; open part 1{first}.").format(
                file=header.path.name, first=first
            )
        )
    if len(paths) == 1:
        raise ModelFileError(
            tr("{file} is part of a model in several files, but has lost its name's ending.").format(
                file=header.path.name
            )
        )
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise ModelFileError(
            tr("Of this model's {n_split} files {n} are missing: {first}.").format(
                n_split=header.n_split, n=len(missing), first=missing[0]
            )
        )
