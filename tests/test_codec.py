"""Values come back from JSON as they were; what is no value of a type is refused with one kind of error."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, NewType

import numpy as np
import pytest

from kvdesk.codec import CodecError, decode, decode_one_of, encode, from_builtins, to_builtins

Key = NewType("Key", str)


class Colour(StrEnum):
    RED = "red"


class Range(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    low: float | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    key: Key
    parts: tuple[Inner, ...] = ()
    ranges: tuple[tuple[Range, Key], ...] = ()
    named: Mapping[str, float] = field(default_factory=dict)
    colour: Colour = Colour.RED
    kind: Literal["outer"] = "outer"


@dataclass(frozen=True, slots=True)
class Other:
    n: int
    kind: Literal["other"] = "other"


VALUE = Outer(Key("ü\n"), (Inner("a", 0.5), Inner("b")), ((Range(1, 2), Key("m")),), {"x": 1.0})
KINDS: Mapping[str, type[Outer | Other]] = {"outer": Outer, "other": Other}


def test_a_value_comes_back_as_it_was() -> None:
    data = encode(VALUE)
    assert b"\n" not in data
    assert decode(Outer, data) == VALUE
    assert isinstance(decode(Outer, data).ranges[0][0], Range)
    assert json.loads(json.dumps(to_builtins(VALUE))) == json.loads(data)
    assert from_builtins(Outer, json.loads(data)) == VALUE


@pytest.mark.parametrize("value", [VALUE, Other(1 << 60)])
def test_the_kind_tells_which_type_a_value_has(value: Outer | Other) -> None:
    assert decode_one_of(KINDS, encode(value)) == value


def test_another_version_may_have_fewer_fields_and_more() -> None:
    assert decode(Inner, b'{"name": "a", "colour": "red"}') == Inner("a")


def test_numbers_of_numpy_are_numbers() -> None:
    data = encode([np.float64(0.5), np.int32(3), np.float32(0.25)])
    assert json.loads(data) == [0.5, 3, 0.25]


def test_what_utf8_cannot_hold_comes_back_and_what_json_cannot_is_null() -> None:
    assert encode(Inner("a", math.nan)) == b'{"name":"a","low":null}'
    halves = Outer(Key("a\ud800b"), (Inner("\udcff"),))
    assert decode(Outer, encode(halves)) == halves
    assert decode(list[float], b"[1, Infinity]") == [1.0, math.inf]  # as Python's json writes it


def test_what_has_no_form_in_json_is_an_error_of_ours() -> None:
    with pytest.raises(NotImplementedError, match="complex has no form"):
        encode(1j)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expecting value"),
        (b"{]", "expecting property name"),
        (b"[]", "object"),
        (b"{}", "key"),
        (b'{"key": 5}', "key"),
        (b'{"key": "\xff"}', "utf-8"),
        (b'{"key": "a", "parts": [{"name": "a", "low": "0.5"}]}', r"parts\[0\]\.low"),
        (b'{"key": "a", "colour": "blue"}', "blue"),
        (b'{"key": "a", "unknown": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_what_is_no_value_is_refused_with_a_sentence(data: bytes, said: str) -> None:
    with pytest.raises(CodecError, match=f"(?i){said}"):
        decode(Outer, data)


@pytest.mark.parametrize("data", [b"{}", b'{"kind": 1}', b'{"kind": "third"}', b'{"kind": "other", "n": "1"}'])
def test_an_unknown_kind_and_a_wrong_field_of_a_known_one_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_one_of(KINDS, data)


def test_builtins_of_another_type_are_refused() -> None:
    with pytest.raises(CodecError, match="low"):
        from_builtins(Inner, {"name": "a", "low": []})
