"""Commands and events as JSON, for another process or another machine: written and read by the types of their fields.

A message is an object: its `type` and its fields. Inside, a dataclass is an object of its fields (with `type` where
several may stand there), a tuple or a set an array, a mapping an array of pairs, and a numpy array `{"dtype", "shape",
"data"}` with its bytes, little-endian, in base64. A frame has those bytes behind the JSON instead, as they are.

Reading is strict: what is read came from somebody else. A field that is missing has its default, as one of an older
kvdesk; one that is not known is an error, and a message that is not known has an error of its own (`UnknownMessage`),
so that whoever follows a newer kvdesk can pass over it.
"""

from __future__ import annotations

import base64
import binascii
import collections.abc
import dataclasses
import json
import math
import operator
import struct
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NewType

import numpy as np

from kvdesk.settings.table import Table

MOST_ARRAY_BYTES: Final = 64 << 20
"""Of one array: the cells of a context of 131,072 take 3 MB."""
MOST_BUFFERS: Final = 1 << 18
"""Arrays in one frame."""
MOST_FRAME_BYTES: Final = 1 << 30
"""Of the JSON and of all arrays in one frame."""

_NOT_FINITE: Final = ("inf", "-inf", "nan")
_HEAD: Final = struct.Struct("<II")  # bytes of JSON, number of buffers
_LENGTH: Final = struct.Struct("<I")

Buffers = list[bytes] | None
"""Where the bytes of arrays stand, one after another; None: in the JSON, in base64."""


class WireError(ValueError):
    """What was read is no message of kvdesk: says what is wrong with it, and where."""


class UnknownMessage(WireError):
    """A message that this kvdesk does not know: `name` is its type."""

    def __init__(self, name: str) -> None:
        super().__init__(f"this kvdesk does not know the message {name}")
        self.name = name


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """How the values of a type are written and read. `read` raises WireError; `json`: the JSON types it is told by."""

    write: Callable[[Any, Buffers], Any]
    read: Callable[[Any, Sequence[bytes]], Any]
    json: tuple[type, ...] = ()


def to_json(kind: Any, value: object) -> Any:
    """A value of the type `kind`, such as `Event` or `Command`, or any that is made of the same, as JSON has it."""
    return _form(kind).write(value, None)


def from_json(kind: Any, value: object) -> Any:
    """What `to_json` was given. Raises WireError."""
    return _form(kind).read(value, ())


# --- frames ----------------------------------------------------------------------------------------------------------


def frame(kind: Any, value: object) -> bytes:
    """As `to_json`, in bytes: the length of the JSON, the number and the lengths of the buffers, then all these."""
    buffers: list[bytes] = []
    text = json.dumps(_form(kind).write(value, buffers), separators=(",", ":")).encode()
    lengths = b"".join(_LENGTH.pack(len(buffer)) for buffer in buffers)
    return b"".join((_HEAD.pack(len(text), len(buffers)), lengths, text, *buffers))


def read_frame(kind: Any, read: Callable[[int], bytes]) -> Any:
    """The next value. `read(n)` returns exactly so many bytes, or raises. Raises WireError."""
    n_text, n_buffers = _HEAD.unpack(read(_HEAD.size))
    if n_buffers > MOST_BUFFERS:
        raise WireError(f"a frame has {n_buffers:,} arrays, more than {MOST_BUFFERS:,}")
    lengths = [length for (length,) in _LENGTH.iter_unpack(read(_LENGTH.size * n_buffers))] if n_buffers else []
    if max(lengths, default=0) > MOST_ARRAY_BYTES or n_text + sum(lengths) > MOST_FRAME_BYTES:
        raise WireError(f"a frame has {n_text + sum(lengths):,} bytes, more than it may")
    text = read(n_text)
    buffers = [read(length) for length in lengths]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"this is no JSON: {error}") from error
    return _form(kind).read(value, buffers)


# --- types to forms ---------------------------------------------------------------------------------------------------


@cache
def _form(hint: Any) -> _Form:
    """Of any type that occurs in a message. Raises TypeError for one that cannot be written."""
    if isinstance(hint, NewType):
        return _form(hint.__supertype__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _literal(args)
    if origin is np.ndarray:
        return _array(np.dtype(typing.get_args(args[1])[0]))
    if origin in (tuple, frozenset, collections.abc.Sequence):
        return _row(origin, args)
    if origin is collections.abc.Mapping:
        return _mapping(_form(args[0]), _form(args[1]))
    if dataclasses.is_dataclass(hint):
        return _dataclass(typing.cast(type, hint))
    if isinstance(hint, type) and issubclass(hint, Table):
        return _table(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    raise TypeError(f"{hint} has no form on the wire")


def _same(value: Any, _buffers: object) -> Any:
    return value


def _wrong(expected: str, value: object) -> WireError:
    if isinstance(value, list | dict):
        return WireError(f"it takes {expected}, and not {'an array' if isinstance(value, list) else 'an object'}")
    return WireError(f"it takes {expected}, and not {repr(value)[:60]}")


def _exactly(kind: type, expected: str) -> Callable[[Any, Sequence[bytes]], Any]:
    def read(value: Any, _buffers: Sequence[bytes]) -> Any:
        if type(value) is not kind:
            raise _wrong(expected, value)
        return value

    return read


def _read_int(value: Any, _buffers: Sequence[bytes]) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise _wrong("a whole number of 64 bits", value)
    return value


def _write_float(value: float, _buffers: Buffers) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _read_float(value: Any, _buffers: Sequence[bytes]) -> float:
    try:
        if type(value) in (int, float) or (type(value) is str and value in _NOT_FINITE):
            return float(value)
    except OverflowError:
        pass
    raise _wrong("a number", value)


def _read_path(value: Any, _buffers: Sequence[bytes]) -> Path:
    if type(value) is not str:
        raise _wrong("a path", value)
    return Path(value)


def _write_bytes(value: bytes, buffers: Buffers) -> object:
    if buffers is None:
        return base64.b64encode(value).decode()
    buffers.append(value)
    return len(buffers) - 1


def _read_bytes(value: Any, buffers: Sequence[bytes]) -> bytes:
    """The number of a buffer, or the bytes in base64."""
    if type(value) is int and 0 <= value < len(buffers):
        return buffers[value]
    if type(value) is not str:
        raise _wrong("bytes in base64", value)
    if len(value) > MOST_ARRAY_BYTES * 4 // 3 + 4:
        raise WireError(f"it has more than {MOST_ARRAY_BYTES:,} bytes")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong("bytes in base64", value) from error


_SCALARS: Final[Mapping[Any, _Form]] = {
    str: _Form(_same, _exactly(str, "a text"), (str,)),
    int: _Form(lambda value, _: operator.index(value), _read_int, (int,)),
    bool: _Form(lambda value, _: bool(value), _exactly(bool, "true or false"), (bool,)),
    float: _Form(_write_float, _read_float, (float, int)),
    bytes: _Form(_write_bytes, _read_bytes),
    Path: _Form(lambda value, _: str(value), _read_path),
    type(None): _Form(_same, _exactly(type(None), "null"), (type(None),)),
}


def _literal(values: tuple[Any, ...]) -> _Form:
    def read(value: Any, _buffers: Sequence[bytes]) -> Any:
        if type(value) is not str or value not in values:
            raise _wrong(" or ".join(map(repr, values)), value)
        return value

    return _Form(_same, read, (str,))


def _enum(kind: type[Enum]) -> _Form:
    def read(value: Any, _buffers: Sequence[bytes]) -> Enum:
        try:
            return kind(value)
        except ValueError as error:
            raise _wrong(" or ".join(repr(member.value) for member in kind), value) from error

    return _Form(lambda value, _: kind(value).value, read, (str,))


def _table(kind: type[Table]) -> _Form:
    """A table of settings, checked by itself."""

    def write(value: Table, _buffers: Buffers) -> Any:
        return value.model_dump(mode="json")

    def read(value: Any, _buffers: Sequence[bytes]) -> Table:
        _check_names(kind, value, kind.model_fields)
        try:
            return kind.model_validate_json(json.dumps(value), strict=True)
        except ValueError as error:
            raise WireError(f"{kind.__name__} is not valid: {str(error)[:500]}") from error

    return _Form(write, read)


def _row(kind: Any, args: tuple[Any, ...]) -> _Form:
    """A tuple, a sequence (read as a tuple) or a frozenset."""
    if kind is tuple and (not args or args[-1] is not Ellipsis):
        return _fixed_row(tuple(map(_form, args)))
    item = _form(args[0])
    make = frozenset if kind is frozenset else tuple

    def write(value: Any, buffers: Buffers) -> list[Any]:
        return [item.write(part, buffers) for part in value]

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        if type(value) is not list:
            raise _wrong("an array", value)
        return make(item.read(part, buffers) for part in value)

    return _Form(write, read, (list,))


def _fixed_row(items: tuple[_Form, ...]) -> _Form:
    def write(value: Any, buffers: Buffers) -> list[Any]:
        return [item.write(part, buffers) for item, part in zip(items, value, strict=True)]

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        if type(value) is not list or len(value) != len(items):
            raise _wrong(f"an array of {len(items)}", value)
        return tuple(item.read(part, buffers) for item, part in zip(items, value, strict=True))

    return _Form(write, read, (list,))


def _mapping(key: _Form, item: _Form) -> _Form:
    def write(value: Any, buffers: Buffers) -> list[Any]:
        return [[key.write(k, buffers), item.write(v, buffers)] for k, v in value.items()]

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        if type(value) is not list or any(type(pair) is not list or len(pair) != 2 for pair in value):
            raise _wrong("an array of pairs", value)
        return {key.read(k, buffers): item.read(v, buffers) for k, v in value}

    return _Form(write, read)


def _array(dtype: np.dtype[Any]) -> _Form:
    """Of this type exactly; what is read cannot be written to."""
    stored = dtype.newbyteorder("<")
    names = ("dtype", "shape", "data")

    def write(value: Any, buffers: Buffers) -> dict[str, Any]:
        data = np.ascontiguousarray(value, dtype=stored).tobytes()
        return {"dtype": dtype.name, "shape": list(np.shape(value)), "data": _write_bytes(data, buffers)}

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        if type(value) is not dict or set(value) != set(names):
            raise _wrong("an array of numbers", value)
        if value["dtype"] != dtype.name:
            raise _wrong(f"an array of {dtype.name}", value["dtype"])
        shape = value["shape"]
        if type(shape) is not list or len(shape) > 2 or any(type(n) is not int or n < 0 for n in shape):
            raise _wrong("a shape", shape)
        n_bytes = math.prod(shape) * dtype.itemsize
        if n_bytes > MOST_ARRAY_BYTES:
            raise WireError(f"an array has {n_bytes:,} bytes, more than {MOST_ARRAY_BYTES:,}")
        data = _read_bytes(value["data"], buffers)
        if len(data) != n_bytes:
            raise WireError(f"an array of the shape {shape} has {n_bytes:,} bytes, and not {len(data):,}")
        if dtype == np.bool_ and max(data, default=0) > 1:
            raise WireError("an array of bool has bytes other than 0 and 1")
        return np.frombuffer(data, stored).astype(dtype, copy=False).reshape(shape)

    return _Form(write, read)


def _dataclass(kind: type) -> _Form:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    forms = {field.name: _form(hints[field.name]) for field in fields}
    needed = frozenset(
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    writers = tuple((name, form.write) for name, form in forms.items())

    def write(value: Any, buffers: Buffers) -> dict[str, Any]:
        return {name: writer(getattr(value, name), buffers) for name, writer in writers}

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        _check_names(kind, value, forms)
        if missing := needed.difference(value):
            raise WireError(f"{kind.__name__} lacks {', '.join(sorted(missing))}")
        parts = {}
        for name, part in value.items():
            try:
                parts[name] = forms[name].read(part, buffers)
            except WireError as error:
                raise WireError(f"{kind.__name__}.{name}: {error}") from error
        return kind(**parts)

    return _Form(write, read)


def _check_names(kind: type, value: Any, known: Mapping[str, object]) -> None:
    if type(value) is not dict:
        raise _wrong(f"{kind.__name__}, an object", value)
    if unknown := set(value).difference(known):
        raise WireError(f"{kind.__name__} has no field {', '.join(sorted(unknown))[:200]}")


def _union(members: tuple[Any, ...]) -> _Form:
    """One of several types: of dataclasses told by `type`, else by the type of the JSON value."""
    others = tuple(member for member in members if member is not type(None))
    if len(others) < len(members):
        return _optional(_form(others[0]) if len(others) == 1 else _union(others))
    if all(dataclasses.is_dataclass(member) for member in others):
        return _tagged({member.__name__: _form(member) for member in others})
    by_json = {kind: form for form in map(_form, others) for kind in form.json}
    by_type = tuple((member, _form(member)) for member in others)
    if not all(form.json for _, form in by_type) or len(by_json) != sum(len(form.json) for _, form in by_type):
        raise TypeError(f"{members} cannot be told apart on the wire")

    def write(value: Any, buffers: Buffers) -> Any:
        return next(form for member, form in by_type if isinstance(value, member)).write(value, buffers)

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        if (form := by_json.get(type(value))) is None:
            raise _wrong(" or ".join(member.__name__ for member in others), value)
        return form.read(value, buffers)

    return _Form(write, read, tuple(by_json))


def _optional(form: _Form) -> _Form:
    return _Form(
        lambda value, buffers: None if value is None else form.write(value, buffers),
        lambda value, buffers: None if value is None else form.read(value, buffers),
        (*form.json, type(None)),
    )


def _tagged(forms: Mapping[str, _Form]) -> _Form:
    def write(value: Any, buffers: Buffers) -> dict[str, Any]:
        name = type(value).__name__
        return {"type": name, **forms[name].write(value, buffers)}

    def read(value: Any, buffers: Sequence[bytes]) -> Any:
        name = value.get("type") if type(value) is dict else None
        if type(name) is not str:
            raise _wrong("an object with its type", value)
        if name not in forms:
            raise UnknownMessage(name[:100])
        return forms[name].read({key: part for key, part in value.items() if key != "type"}, buffers)

    return _Form(write, read)
