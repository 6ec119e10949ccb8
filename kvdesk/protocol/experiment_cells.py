"""The cells of an experiment's own cache as they go from its process to the page: an event among the others."""

from __future__ import annotations

import base64
import zlib
from typing import Literal

import numpy as np

from kvdesk.cache.geometry import SwaType
from kvdesk.cache.snapshot import CacheMap, CacheName, StreamMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class PackedStream:
    """A `StreamMap`. data: its arrays, one after another, by zlib in base64; words: of `seq_bits`, for each cell."""

    size: int
    head: int
    used: int
    high_water: int
    words: int
    data: str


@dataclass(frozen=True, slots=True)
class PackedMap:
    """A `CacheMap`."""

    name: CacheName
    n_swa: int
    swa_type: SwaType
    streams: tuple[PackedStream, ...]


@dataclass(frozen=True, slots=True)
class CellsSeen:
    """All cells of the context that the experiment used last, after operation number `operation`."""

    operation: int
    packed: tuple[PackedMap, ...]
    kind: Literal["cells"] = "cells"

    @classmethod
    def of(cls, operation: int, maps: tuple[CacheMap, ...]) -> CellsSeen:
        """To be written as JSON."""
        return cls(operation, tuple(PackedMap(m.name, m.n_swa, m.swa_type, tuple(map(_pack, m.streams))) for m in maps))

    @property
    def maps(self) -> tuple[CacheMap, ...]:
        """As they were. Raises ValueError for data that does not fit."""
        return tuple(CacheMap(m.name, tuple(map(_unpack, m.streams)), m.n_swa, m.swa_type) for m in self.packed)


def _pack(stream: StreamMap) -> PackedStream:
    arrays = (stream.pos, stream.seq_bits, stream.token, stream.written_at_op)
    data = base64.b64encode(zlib.compress(b"".join(array.tobytes() for array in arrays), 1)).decode()
    words = stream.seq_bits.shape[1]
    return PackedStream(stream.size, stream.head, stream.used, stream.high_water, words, data)


def _unpack(stream: PackedStream) -> StreamMap:
    try:
        data = zlib.decompress(base64.b64decode(stream.data))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    n = len(data) // (16 + 8 * stream.words)
    ends = np.cumsum((4 * n, 8 * stream.words * n, 4 * n))
    pos, bits, token, written = (data[a:b] for a, b in zip((0, *ends), (*ends, len(data)), strict=True))
    return StreamMap(
        np.frombuffer(pos, np.int32),
        np.frombuffer(bits, np.uint64).reshape(n, stream.words),
        np.frombuffer(token, np.int32),
        np.frombuffer(written, np.int64),
        stream.size,
        stream.head,
        stream.used,
        stream.high_water,
    )
