"""Commands and events as JSON, for another process or another machine: `kvdesk.codec`, by the types of their fields.

A message is an object: its `type` and its fields. Inside, a dataclass has a `type` if several are possible. A mapping
is an array of pairs, a number that is not finite a text, and a numpy array `{"dtype", "shape", "data"}` with its bytes,
little-endian, in base64. A frame has those bytes behind the JSON instead, as they are.

Reading is strict: what is read came from somebody else. A missing field has its default, as one of an older kvdesk; an
unknown field and an unknown message are errors.
"""

import collections.abc
import math
import struct
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NewType

import msgspec
import numpy as np

from kvdesk.codec import CodecError, decode, encode, from_builtins, to_builtins
from kvdesk.settings.table import Table
from kvdesk.values import dataclass, is_dataclass, names, replace, required

MOST_ARRAY_BYTES: Final = 64 << 20
"""Of one array: the cells of a context of 131,072 take 3 MB."""
MOST_BUFFERS: Final = 1 << 18
"""Arrays in one frame."""
MOST_FRAME_BYTES: Final = 1 << 30
"""Of the JSON and of all arrays in one frame."""

_HEAD: Final = struct.Struct("<II")  # bytes of JSON, number of buffers
_LENGTH: Final = struct.Struct("<I")
_INT: Final = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_FLOAT: Final = float | Literal["inf", "-inf", "nan"]
_Data = int | bytes  # the number of a buffer, or the bytes themselves

Buffers = list[bytes | memoryview] | None
"""Where the bytes of arrays go, one after another; None: into the JSON."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How the values of a type are written and read.

    raw    the type that msgspec reads
    write  a value to one that msgspec writes; None: it writes these
    read   a value of `raw` to one of the type, raises CodecError; None: it is one
    """

    raw: Any
    write: Callable[[Any, Buffers], Any] | None = None
    read: Callable[[Any, Sequence[bytes]], Any] | None = None


def to_json(kind: Any, value: object) -> Any:
    """A value of the type `kind`, such as `Event` or `Command`, or any that is made of the same, as JSON has it."""
    return to_builtins(_write(_form(kind), value, None))


def from_json(kind: Any, value: object) -> Any:
    """What `to_json` was given. Raises CodecError."""
    return _read(_form(kind), from_builtins(_form(kind).raw, value), ())


def frame(kind: Any, value: object) -> bytes:
    """As `to_json`, in bytes: the length of the JSON, the number and the lengths of the buffers, then all these."""
    buffers: list[bytes | memoryview] = []
    text = encode(_write(_form(kind), value, buffers))
    lengths = (_LENGTH.pack(len(buffer)) for buffer in buffers)
    return b"".join((_HEAD.pack(len(text), len(buffers)), *lengths, text, *buffers))


def read_frame(kind: Any, read: Callable[[int], bytes]) -> Any:
    """The next value. `read(n)` returns exactly that many bytes, or raises. Raises CodecError."""
    n_text, n_buffers = _HEAD.unpack(read(_HEAD.size))
    if n_buffers > MOST_BUFFERS:
        raise CodecError(f"a frame has {n_buffers:,} arrays, more than {MOST_BUFFERS:,}")
    lengths = [length for (length,) in _LENGTH.iter_unpack(read(_LENGTH.size * n_buffers))] if n_buffers else []
    if max(lengths, default=0) > MOST_ARRAY_BYTES or n_text + sum(lengths) > MOST_FRAME_BYTES:
        raise CodecError(f"a frame has {n_text + sum(lengths):,} bytes, more than it may")
    value = decode(_form(kind).raw, read(n_text))
    return _read(_form(kind), value, [read(length) for length in lengths])


def _write(form: _Form, value: Any, buffers: Buffers) -> Any:
    return value if form.write is None else form.write(value, buffers)


def _read(form: _Form, value: Any, buffers: Sequence[bytes]) -> Any:
    return value if form.read is None else form.read(value, buffers)


# --- types to forms ---------------------------------------------------------------------------------------------------


@cache
def _form(hint: Any) -> _Form:
    """Of any type that occurs in a message. Raises TypeError for one that cannot be written."""
    if isinstance(hint, NewType):
        return _form(hint.__supertype__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is np.ndarray:
        return _array(np.dtype(typing.get_args(args[1])[0]))
    if origin is tuple and args[-1:] != (Ellipsis,):
        return _row(tuple(map(_form, args)))
    if origin in (tuple, frozenset, collections.abc.Sequence):
        return _rows(_form(args[0]), frozenset if origin is frozenset else tuple)
    if origin is collections.abc.Mapping:
        pairs = _rows(_row((_form(args[0]), _form(args[1]))), dict)
        return replace(pairs, write=lambda value, buffers: _write(pairs, value.items(), buffers))
    if is_dataclass(hint):
        return _dataclass(typing.cast(type, hint))
    if isinstance(hint, type) and issubclass(hint, Table):
        return _table(hint)
    if origin is Literal or hint in (str, bool, type(None)) or (isinstance(hint, type) and issubclass(hint, Enum)):
        return _Form(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    raise TypeError(f"{hint} has no form on the wire")


def _write_bytes(value: bytes | memoryview, buffers: Buffers) -> Any:
    if buffers is None:
        return value
    buffers.append(value)
    return len(buffers) - 1


def _read_bytes(value: int | bytes, buffers: Sequence[bytes]) -> bytes:
    if isinstance(value, bytes):
        return value
    if not 0 <= value < len(buffers):
        raise CodecError(f"it takes bytes in base64, and not {value}")
    return buffers[value]


_SCALARS: Final[collections.abc.Mapping[Any, _Form]] = {
    int: _Form(_INT),
    float: _Form(_FLOAT, lambda value, _: value if math.isfinite(value) else str(float(value)), lambda x, _: float(x)),
    bytes: _Form(_Data, _write_bytes, _read_bytes),
    Path: _Form(str, lambda value, _: str(value), lambda value, _: Path(value)),
}


def _table(kind: type[Table]) -> _Form:
    """A table of settings, checked separately."""

    def read(value: dict[str, Any], _buffers: Sequence[bytes]) -> Table:
        if unknown := sorted(value.keys() - kind.model_fields):
            raise CodecError(f"{kind.__name__} has no field {', '.join(unknown)[:200]}")
        try:
            return kind.model_validate_json(encode(value), strict=True)
        except ValueError as error:
            raise CodecError(f"{kind.__name__} is not valid: {str(error)[:500]}") from error

    return _Form(dict[str, Any], lambda value, _: value.model_dump(mode="json"), read)


def _rows(item: _Form, make: type) -> _Form:
    """A tuple, a frozenset or a dict; a sequence is read as a tuple."""

    def write(value: Any, buffers: Buffers) -> Any:
        return list(value) if item.write is None else [item.write(part, buffers) for part in value]

    def read(value: tuple[Any, ...], buffers: Sequence[bytes]) -> Any:
        return make(value if item.read is None else (item.read(part, buffers) for part in value))

    return _Form(
        types.GenericAlias(tuple, (item.raw, ...)), write, None if make is tuple and item.read is None else read
    )


def _row(items: tuple[_Form, ...]) -> _Form:
    def write(value: tuple[Any, ...], buffers: Buffers) -> Any:
        return [_write(item, part, buffers) for item, part in zip(items, value, strict=True)]

    def read(value: tuple[Any, ...], buffers: Sequence[bytes]) -> Any:
        return tuple(_read(item, part, buffers) for item, part in zip(items, value, strict=True))

    raw = types.GenericAlias(tuple, tuple(item.raw for item in items))
    return _Form(raw, write, read if any(item.read for item in items) else None)


class _Array(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=3)]
    data: _Data


def _array(dtype: np.dtype[Any]) -> _Form:
    """Of this type exactly; what is read cannot be written to."""
    stored = dtype.newbyteorder("<")

    def write(value: Any, buffers: Buffers) -> _Array:
        data = np.ascontiguousarray(value, dtype=stored).reshape(-1).view(np.uint8).data
        return _Array(dtype.name, np.shape(value), _write_bytes(data, buffers))

    def read(value: _Array, buffers: Sequence[bytes]) -> Any:
        if value.dtype != dtype.name:
            raise CodecError(f"it takes an array of {dtype.name}, and not of {value.dtype[:60]}")
        n_bytes = math.prod(value.shape) * dtype.itemsize
        if n_bytes > MOST_ARRAY_BYTES:
            raise CodecError(f"an array has {n_bytes:,} bytes, more than {MOST_ARRAY_BYTES:,}")
        data = _read_bytes(value.data, buffers)
        if len(data) != n_bytes:
            raise CodecError(f"an array of the shape {value.shape} has {n_bytes:,} bytes, and not {len(data):,}")
        if dtype == np.bool_ and max(data, default=0) > 1:
            raise CodecError("an array of bool has bytes other than 0 and 1")
        try:
            return np.frombuffer(data, stored).astype(dtype, copy=False).reshape(value.shape)
        except ValueError as error:  # of no bytes, with a side that numpy cannot count
            raise CodecError(f"an array cannot have the shape {value.shape}") from error

    return _Form(_Array, write, read)


@cache
def _dataclass(kind: type, tag: str | None = None) -> _Form:
    """It is read as a struct with the same fields, which is checked. tag: its `type`."""
    hints = typing.get_type_hints(kind)
    forms = [(name, _form(hints[name])) for name in names(kind)]
    writers, readers = [(name, form.write) for name, form in forms], [(name, form.read) for name, form in forms]
    needed = required(kind)
    members = [(name, form.raw) if name in needed else (name, form.raw, msgspec.UNSET) for name, form in forms]
    raw = msgspec.defstruct(
        kind.__name__, members, kw_only=True, forbid_unknown_fields=True, tag=tag, tag_field=tag and "type"
    )

    def write(value: Any, buffers: Buffers) -> dict[str, Any]:
        parts = {} if tag is None else {"type": tag}
        for name, writer in writers:
            part = getattr(value, name)
            parts[name] = part if writer is None else writer(part, buffers)
        return parts

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        parts = {}
        for name, reader in readers:
            if (part := getattr(value, name)) is not msgspec.UNSET:
                parts[name] = part if reader is None else reader(part, buffers)
        return kind(**parts)

    return _Form(raw, write, read)


def _union(members: tuple[Any, ...]) -> _Form:
    """One of several types: of dataclasses told by `type`, else by the type of the JSON value."""
    if type(None) in members:
        form = _form(typing.Union[*(member for member in members if member is not type(None))])
        return _Form(
            form.raw | None,
            form.write and (lambda value, buffers: None if value is None else _write(form, value, buffers)),
            form.read and (lambda value, buffers: None if value is None else _read(form, value, buffers)),
        )
    if not all(map(is_dataclass, members)):
        forms = [_form(member) for member in members]
        if any(form.write or form.read for form in forms):
            raise TypeError(f"{members} cannot be told apart on the wire")
        return _Form(typing.Union[*(form.raw for form in forms)])
    by_kind = {member: _dataclass(member, member.__name__) for member in members}
    by_raw = {form.raw: form for form in by_kind.values()}
    return _Form(
        typing.Union[*by_raw],
        lambda value, buffers: _write(by_kind[type(value)], value, buffers),
        lambda value, buffers: _read(by_raw[type(value)], value, buffers),
    )
