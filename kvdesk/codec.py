"""Values to JSON and back: between processes, and in kvdesk's own files. Knows nothing of what it writes.

A frozen dataclass is an object of its fields, a tuple an array. Reading is strict in types, ignores fields it does
not know, and gives a missing field its default, so that files and processes of another version can be read. The
imports are few, since children start with this.

`decode_one_of` reads one of several dataclasses: a field `kind` has the tag of each. A class with `model_validate` and
`model_dump` (settings) reads and writes itself.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Final, NoReturn, TypeVar, cast

import msgspec

T = TypeVar("T")


class CodecError(ValueError):
    """What was read is not a value of the wanted type; says what is wrong with it, and where."""


class _Tagged(msgspec.Struct):
    kind: str


def encode(value: object, indent: int = 0) -> bytes:
    """JSON, without an end of line: on one line, or on many, indented. Not-a-number becomes null."""
    try:
        data = _ENCODER.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot hold: in ASCII, as an escape
        return json.dumps(to_builtins(value), indent=indent or None).encode()
    return msgspec.json.format(data, indent=indent) if indent else data


def decode(kind: type[T], data: bytes | str) -> T:
    """The value that `encode` was given. Raises CodecError."""
    decoder: msgspec.json.Decoder[T] = _decoder(cast(Any, kind))
    try:
        return decoder.decode(data)
    except (msgspec.ValidationError, RecursionError) as error:
        raise CodecError(_sentence(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # half of a surrogate pair, or one of the numbers that only Python writes, such as NaN
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodecError(_sentence(error)) from error
    return from_builtins(kind, value)


def decode_one_of(kinds: Mapping[str, type[T]], data: bytes | str) -> T:
    """A value of the type that its field `kind` names. Raises CodecError."""
    tag = decode(_Tagged, data).kind
    if tag not in kinds:
        raise CodecError(f"there is no kind {tag[:100]!r}")
    return decode(kinds[tag], data)


def read_json(text: bytes | str) -> Any:
    """JSON of others. Raises ValueError, also for NaN, Infinity and 1e999, and RecursionError."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def to_builtins(value: object) -> Any:
    """The value as dicts, texts, numbers, and lists or tuples: what `encode` writes, before it is text."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def from_builtins(kind: type[T], value: object) -> T:
    """A value from dicts, lists, texts and numbers. Raises CodecError."""
    try:
        return msgspec.convert(value, kind, dec_hook=_made)
    except (ValueError, RecursionError) as error:
        raise CodecError(_sentence(error)) from error


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_made)


def _made(kind: Any, value: object) -> object:
    """A value of a class that reads itself. Raises NotImplementedError for any other, ValueError."""
    if not hasattr(kind, "model_validate"):
        raise NotImplementedError(f"{kind} has no form in JSON")
    return kind.model_validate(value)


def _plain(value: object) -> object:
    """What writes itself, numbers of numpy, subclasses of numbers and texts. Raises NotImplementedError."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is no number here")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _sentence(error: Exception) -> str:
    return "the value is nested too deeply" if isinstance(error, RecursionError) else str(error)[:500]


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain)
