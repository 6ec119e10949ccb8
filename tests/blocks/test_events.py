"""Messages of both wire formats, and what is no message."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.blocks.events import AllBlocksCleared, BadEvents, Batch, BlockRemoved, BlockStored, decode

FIVE = "0000000000000005"
STORED = {"type": "BlockStored", "block_hashes": [5, b"\x01\x02"], "parent_block_hash": None, "token_ids": [1, 2, 3, 4]}


def packed(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def test_maps_and_arrays_say_the_same() -> None:
    maps = [STORED | {"block_size": 2, "lora_id": None, "medium": "CPU", "what_comes": [1]}]
    maps += [{"type": "BlockRemoved", "block_hashes": [5], "medium": "CPU"}, {"type": "AllBlocksCleared"}]
    arrays = [["BlockStored", [5, b"\x01\x02"], None, [1, 2, 3, 4], 2, None, "CPU"], ["BlockRemoved", [5], "CPU"]]
    arrays += [["AllBlocksCleared"]]
    expected = (BlockStored((FIVE, "0102"), None, (1, 2, 3, 4), 2, "CPU"), BlockRemoved((FIVE,), "CPU"))
    for events in (maps, arrays):
        assert decode(packed([12.5, events, 0])) == Batch(12.5, (*expected, AllBlocksCleared()))
        assert decode(packed({"ts": 12.5, "events": events})).events[:2] == expected


def test_unknown_events_are_left_out() -> None:
    assert decode(packed([1.0, [{"type": "BlockPinned"}, ["Other", 1], []]])) == Batch(1.0, ())


@pytest.mark.parametrize(
    "value",
    [
        7,
        [1.0],
        [1.0, {}],
        [1.0, [3]],
        [1.0, [STORED]],
        [1.0, [STORED | {"block_size": 0}]],
        [1.0, [STORED | {"block_size": 2, "token_ids": ["a"]}]],
        [1.0, [STORED | {"block_size": 2, "block_hashes": [1.5]}]],
        [1.0, [STORED | {"block_size": 2, "parent_block_hash": "a"}]],
    ],
)
def test_what_is_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(BadEvents):
        decode(packed(value))


@given(st.binary(max_size=200))
def test_nothing_else_is_raised_whatever_comes(payload: bytes) -> None:
    try:
        decode(payload)
    except BadEvents:
        pass
