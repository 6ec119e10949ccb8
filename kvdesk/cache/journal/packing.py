"""Operations and their patches, packed: columns of numbers with similar neighbours, then zlib.

Owns the layout of packed bytes in memory (they are never written to a file). Must never know where operations come
from. A decode of one token takes about 9 bytes, for its token id and its times. Numbers of operations stay below 2**31.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.flat import join_patches
from kvdesk.cache.memories.cells import Patch
from kvdesk.values import dataclass

REQUEST: Final = "request"
"""Name of an entry that is no call: a request of another program has ended."""
_LEVEL = 4  # of zlib: higher gains 3 % and costs twice the time


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on the cache, as it is recorded.

    number        of `Mirror.operation` after it
    at_s          Unix time in seconds, or seconds since the start of another program's log; kept to the microsecond
    name          short, such as "decode" or "seq_rm"; call: llama.cpp's own call with its arguments
    ms            wall time of the call, kept to the microsecond; 0 for at_s or ms: unknown
    conversation  its id, "" for none; reason: why it was made, "" for none
    """

    number: int
    at_s: float
    name: str
    call: str = ""
    ms: float = 0.0
    conversation: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation in a list: with the number of cells that it changed."""

    operation: Operation
    n_cells: int


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Packed operations `first` to `last`. `texts` and `times` are only needed to list them, `cells` for the map."""

    first: int
    last: int
    n: int
    numbers: bytes
    times: bytes
    texts: bytes
    cells: bytes

    @property
    def n_bytes(self) -> int:
        return len(self.numbers) + len(self.times) + len(self.texts) + len(self.cells) + _OVERHEAD


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """The unpacked patches of a chunk: `all` in one, entries `starts[i]` to `starts[i + 1]` are of operation i."""

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    all: Patch
    head_starts: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Operations."""
        return len(self.numbers)

    def before(self, number: int) -> Patch:
        """The operations up to number `number`, itself included, as one patch."""
        return self._part(0, int(self.numbers.searchsorted(number, side="right")))

    def of(self, i: int) -> Patch:
        """The i-th operation."""
        return self._part(i, i + 1)

    def _part(self, first: int, end: int) -> Patch:
        cells, heads = slice(self.starts[first], self.starts[end]), self.all.heads
        return self.all.part(cells, heads[self.head_starts[first] : self.head_starts[end]])


Group = tuple[Sequence[Operation], Patches]
"""Operations, one after another, and what each of them changed."""

_OVERHEAD = 400  # bytes of the Python objects of a chunk, measured


def alone(number: int, patch: Patch) -> Patches:
    """The patch of one operation."""
    starts = np.array([0, patch.n_cells], dtype=np.int64)
    return Patches(np.array([number], dtype=np.int64), starts, patch, np.array([0, len(patch.heads)], dtype=np.int64))


def pack(groups: Sequence[Group], words: int) -> Chunk:
    """Pack operations, ascending by number."""
    operations = [operation for group, _ in groups for operation in group]
    numbers = np.array([o.number for o in operations], dtype=np.int64)
    at_us = np.array([round(o.at_s * 1e6) for o in operations], dtype=np.int64)
    took_us = np.array([round(o.ms * 1e3) for o in operations], dtype=np.int64)
    texts = [[getattr(o, name) for o in operations] for name in ("name", "call", "conversation", "reason")]
    counts = np.concatenate([np.diff(patches.starts) for _, patches in groups])
    n_heads = np.concatenate([np.diff(patches.head_starts) for _, patches in groups])
    whole = join_patches([patches.all for _, patches in groups], words)
    heads = np.array(whole.heads, dtype=np.int64).reshape(-1, 2)
    age = np.repeat(numbers, counts) - whole.written_at_op
    columns = [
        _steps(whole.index),
        _steps(whole.pos.astype(np.int64)),
        whole.token,
        _steps(age),
        *whole.bits.view(np.int32).T,
        _steps(heads[:, 0]),
        _steps(heads[:, 1]),
    ]
    return Chunk(
        first=int(numbers[0]),
        last=int(numbers[-1]),
        n=len(operations),
        numbers=_squeeze([_steps(numbers), counts, n_heads]),
        times=_squeeze([_steps(at_us), took_us]),
        texts=zlib.compress(json.dumps(texts).encode(), _LEVEL),
        cells=_squeeze(columns, 4),
    )


def unpack_cells(chunk: Chunk, words: int) -> Patches:
    """The patches of a chunk."""
    steps, counts, n_heads = _columns(chunk.numbers, [chunk.n] * 3)
    n, h = int(counts.sum()), int(n_heads.sum())
    index, pos, token, age, *rest = _columns(chunk.cells, [n] * (4 + 2 * words) + [h] * 2, 4)
    halves, (streams, heads) = rest[: 2 * words], rest[2 * words :]
    numbers = np.cumsum(steps)
    patch = Patch(
        index=np.cumsum(index, dtype=np.int64),
        pos=np.cumsum(pos, dtype=np.int32),
        bits=np.stack(halves, axis=1).view(np.uint64),
        token=token,
        written_at_op=np.repeat(numbers, counts) - np.cumsum(age, dtype=np.int64),
        heads=tuple(zip(np.cumsum(streams).tolist(), np.cumsum(heads).tolist(), strict=True)),
    )
    return Patches(numbers, _starts(counts), patch, _starts(n_heads))


def unpack_operations(chunk: Chunk) -> list[Entry]:
    """The operations of a chunk, without their patches."""
    steps, counts, _ = _columns(chunk.numbers, [chunk.n] * 3)
    at_us, took_us = _columns(chunk.times, [chunk.n] * 2)
    texts: list[list[str]] = json.loads(zlib.decompress(chunk.texts))
    names, calls, conversations, reasons = texts
    rows = zip(
        np.cumsum(steps).tolist(),
        np.cumsum(at_us).tolist(),
        names,
        calls,
        took_us.tolist(),
        conversations,
        reasons,
        counts.tolist(),
        strict=True,
    )
    return [
        Entry(Operation(number, at / 1e6, name, call, took / 1e3, conversation, reason), n)
        for number, at, name, call, took, conversation, reason, n in rows
    ]


def _steps(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Differences of neighbours, the first to 0: `np.cumsum` undoes it."""
    return np.diff(values, prepend=0)


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])


def _squeeze(columns: Sequence[NDArray[Any]], width: int = 8) -> bytes:
    """Columns of `width` bytes, byte plane after byte plane (high bytes are nearly always the same), then zlib."""
    planes = [np.ascontiguousarray(c, dtype=f"<i{width}").view(np.uint8).reshape(-1, width).T for c in columns]
    return zlib.compress(b"".join(plane.tobytes() for plane in planes), _LEVEL)


def _columns(data: bytes, lengths: Sequence[int], width: int = 8) -> list[NDArray[Any]]:
    """Undo `_squeeze` for columns of these lengths."""
    raw = np.frombuffer(zlib.decompress(data), dtype=np.uint8)
    columns = []
    at = 0
    for n in lengths:
        planes = raw[at : at + width * n].reshape(width, n)
        columns.append(np.ascontiguousarray(planes.T).view(f"<i{width}").reshape(n))
        at += width * n
    return columns
