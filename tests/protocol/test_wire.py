"""Every command and event goes over the wire and back as it was; what is no message is refused with a clear error."""

import io
import json
import random
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NewType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvdesk import values
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, StreamMap, Verification
from kvdesk.codec import CodecError
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol import wire
from kvdesk.protocol.cache import CacheView
from kvdesk.protocol.chat import Generate, LoadModel, TextDelta, Working
from kvdesk.protocol.messages import Command, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import ClearCache, Operate
from kvdesk.protocol.wire import frame, from_json, read_frame, to_json
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Sampling
from kvdesk.settings.table import Table

FEW = settings(max_examples=8, deadline=None, database=None)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TABLES: Mapping[type[Table], st.SearchStrategy[Table]] = {
    ContextSettings: st.sampled_from([ContextSettings(), ContextSettings(n_ctx=0, type_k=CacheType.Q8_0, exact=True)]),
    CachePolicy: st.sampled_from([CachePolicy(), CachePolicy(n_keep=7)]),
    Sampling: st.sampled_from([Sampling(), Sampling(temperature=0.1, logit_bias=((5, -1.0), ("so", 2.5)))]),
}
TEXTS = st.text(st.characters() | st.just("\ud800"), max_size=8)  # half of a surrogate pair, too
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: INT64,
    bool: st.booleans(),
    float: st.floats(),
    bytes: st.binary(max_size=9),
    Path: st.sampled_from([Path("model.gguf"), Path("/a folder/ü.gguf"), Path("\udcff")]),
    type(None): st.none(),
}


def members(union: Any) -> list[type]:
    return list(typing.get_args(union))


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of any type that occurs in a message."""
    if isinstance(hint, NewType):
        return values_of(hint.__supertype__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values_of, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is np.ndarray:
        return arrays_of(np.dtype(typing.get_args(args[1])[0]))
    if origin is frozenset:
        return st.frozensets(values_of(args[0]), max_size=2)
    if origin is tuple and args[-1] is not Ellipsis:
        return st.tuples(*map(values_of, args))
    if origin in (tuple, Sequence):
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    if values.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(typing.cast(type, hint), **{name: values_of(hints[name]) for name in values.names(hint)})
    if hint in TABLES:
        return TABLES[hint]
    if hint in SCALARS:
        return SCALARS[hint]
    return st.sampled_from(hint)  # an enum


def arrays_of(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    shapes = st.sampled_from([(0,), (1,), (3,), (2, 1), (0, 2)])

    def made(shape: tuple[int, ...], seed: int) -> Any:
        n = int(np.prod(shape)) * dtype.itemsize
        data = random.Random(seed).randbytes(n) if dtype != np.bool_ else bytes(seed >> i & 1 for i in range(n))
        return np.frombuffer(data, dtype).reshape(shape)

    return st.builds(made, shapes, st.integers(0, 1 << 30))


def same(a: Any, b: Any) -> bool:
    """Equal with the same types, arrays and what has no == of its own by their content, not-a-number as itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if values.is_dataclass(a):
        return all(same(getattr(a, name), getattr(b, name)) for name in values.names(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b) or (isinstance(a, float) and a != a and b != b)


MESSAGES = [*((Command, kind) for kind in members(Command)), *((Event, kind) for kind in members(Event))]


@pytest.mark.parametrize(("union", "kind"), MESSAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_every_message_comes_back_and_what_is_damaged_is_refused_or_another(union: Any, kind: type) -> None:
    junk = st.sampled_from([None, -1, 1e300, 1 << 80, "", "x" * 300, [], [[1]], {}, {"type": "Nothing"}, True])

    @FEW
    @given(values_of(kind), st.randoms(use_true_random=False), junk)
    def judge(message: object, chance: random.Random, piece: object) -> None:
        value = json.loads(json.dumps(to_json(union, message), allow_nan=False))
        assert same(from_json(union, value), message)
        assert same(read_frame(union, io.BytesIO(frame(union, message)).read), message)
        holder, key = chance.choice(list(places(value)))
        holder[key] = piece
        try:
            read = from_json(union, value)
        except CodecError as error:
            said = str(error)
        else:
            said = type(read).__name__
            assert type(read) in members(union)
        assert 0 < len(said) < 2000

    judge()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON value that can be replaced."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def stream(**changed: Any) -> Any:
    """The JSON of a view of one cell, with one array of its stream changed."""
    arrays = np.zeros(1, np.int32), np.ones((1, 1), np.uint64), np.zeros(1, np.int32), np.ones(1, np.int64)
    cache = CacheMap("kv", (StreamMap(*arrays, size=4, head=1, used=1, high_water=1),), 0)
    view = CacheView(CacheSnapshot(1, (cache,), (), (), 256, 4, Verification("verified", 1)), ())
    value = to_json(Event, view)
    value["snapshot"]["maps"][0]["streams"][0]["pos"].update(changed)
    return value


DELTA = to_json(Event, TextDelta(ConversationId("c"), MessageId("a"), "so", (1, 2)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "Expected `object`, got `null`"),
        ({"type": 5}, r"Expected `str`.*\$\.type"),
        ({"type": "CellsPainted", "n": 3}, r"'CellsPainted'.*\$\.type"),
        ({"type": "CommandFailed", "command": {"type": "Paint"}, "sentence": "No."}, r"'Paint'.*\$\.command\.type"),
        (DELTA | {"colour": "red"}, "unknown field `colour`"),
        (DELTA | {"tokens": [1, "2"]}, r"Expected `int`, got `str` - at `\$\.tokens\[1\]`"),
        (DELTA | {"tokens": [1, True]}, "Expected `int`, got `bool`"),
        (DELTA | {"tokens": [1 << 63]}, r"\$\.tokens\[0\]"),
        (DELTA | {"text": None}, r"Expected `str`, got `null` - at `\$\.text`"),
        ({k: v for k, v in DELTA.items() if k != "answer"}, "missing required field `answer`"),
        (stream(dtype="float64"), "an array of int32"),
        (stream(shape=[2]), "has 8 bytes, and not 4"),
        (stream(shape=[-1]), r"pos\.shape"),
        (stream(shape=[1 << 40]), "more than 67,108,864"),
        (stream(shape=[1, 1, 1, 1]), r"pos\.shape"),
        (stream(shape=[0, 1 << 80], data=""), "cannot have the shape"),
        (stream(data="!!"), r"base64.*pos\.data"),
        (stream(data=0), "bytes in base64"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(value: object, said: str) -> None:
    with pytest.raises(CodecError, match=said):
        from_json(Event, value)


def test_a_field_that_an_older_kvdesk_lacks_has_its_default() -> None:
    value = to_json(Event, Working("reading", 1, 2))
    assert from_json(Event, value) == Working("reading", 1, 2)
    old = to_json(Command, Generate(ConversationId("c"), MessageId("a"), (), Sampling()))
    del old["template"], old["continued"]
    assert from_json(Command, old) == Generate(ConversationId("c"), MessageId("a"), (), Sampling())


def test_an_unknown_setting_is_an_error_too() -> None:
    value = to_json(Command, LoadModel(LocalFile(Path("m.gguf")), ContextSettings()))
    value["context"]["n_gpu_layers"] = 99
    with pytest.raises(CodecError, match="ContextSettings has no field n_gpu_layers"):
        from_json(Command, value)
    value["context"] = ContextSettings().model_dump(mode="json") | {"n_seq_max": 1000}
    with pytest.raises(CodecError, match="n_seq_max"):
        from_json(Command, value)


def test_what_is_read_cannot_be_written_to() -> None:
    view = from_json(Event, stream())
    assert isinstance(view, CacheView)
    with pytest.raises(ValueError, match="read-only"):
        view.snapshot.maps[0].streams[0].pos[0] = 5


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff" + b"\0\0\0\0",  # 4 GB of JSON
        b"\2\0\0\0" + b"\xff\xff\xff\xff",  # 4 G buffers
        b"\2\0\0\0" + b"\1\0\0\0" + b"\xff\xff\xff\xff",  # a buffer of 4 GB
        b"\2\0\0\0" + b"\0\0\0\0" + b"{]",
    ],
)
def test_a_frame_that_cannot_be_is_refused_before_it_is_read(data: bytes) -> None:
    with pytest.raises(CodecError):
        read_frame(Event, io.BytesIO(data).read)


def test_frames_follow_one_another() -> None:
    commands = [Operate(ClearCache()), LoadModel(LocalFile(Path("m.gguf")), ContextSettings())]
    pipe = io.BytesIO(b"".join(frame(Command, command) for command in commands))
    assert [read_frame(Command, pipe.read) for _ in commands] == commands


def test_a_type_that_cannot_be_told_apart_is_found_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="cannot be told apart"):
        wire._form(int | float)
    with pytest.raises(TypeError, match="no form"):
        wire._form(complex)
