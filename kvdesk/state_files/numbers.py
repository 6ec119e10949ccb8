"""The numbers of a saved K or V: rows of floats from bytes, of any type that a cache may have, and what they are like.

Owns how ggml stores the types of caches (ggml/src/ggml-quants.c, `dequantize_row_*`). Reads a few megabytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.blob import Section
from kvdesk.library.ggml_types import TYPES
from kvdesk.state_files.found import Numbers
from kvdesk.values import replace

_Bytes = NDArray[np.uint8]
_Floats = NDArray[np.float32]
PIECE: Final = 1 << 22
"""Bytes that are read together."""
_IQ4_NL: Final = np.array((-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113), np.float32)


def _half(blocks: _Bytes, at: int) -> _Floats:
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def _nibbles(codes: _Bytes) -> _Bytes:
    return np.concatenate((codes & 15, codes >> 4), axis=1)


def _fifth(blocks: _Bytes, at: int) -> _Bytes:
    """Bit 4 of each of 32 codes."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") * np.uint8(16)


def _bf16(data: _Bytes) -> _Floats:
    return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)


_PLAIN: Final[dict[int, Callable[[_Bytes], _Floats]]] = {
    0: lambda data: data.view("<f4"),
    1: lambda data: data.view("<f2").astype(np.float32),
    30: _bf16,
}
_BLOCKS: Final[dict[int, Callable[[_Bytes], _Floats]]] = {
    2: lambda b: _half(b, 0) * (_nibbles(b[:, 2:]).astype(np.float32) - 8),
    3: lambda b: _half(b, 0) * _nibbles(b[:, 4:]) + _half(b, 2),
    6: lambda b: _half(b, 0) * ((_nibbles(b[:, 6:]) | _fifth(b, 2)).astype(np.float32) - 16),
    7: lambda b: _half(b, 0) * (_nibbles(b[:, 8:]) | _fifth(b, 4)) + _half(b, 2),
    8: lambda b: _half(b, 0) * b[:, 2:].copy().view(np.int8),
    20: lambda b: _half(b, 0) * _IQ4_NL[_nibbles(b[:, 2:])],
}


def is_known(section: Section) -> bool:
    """Whether the numbers of the section can be read."""
    kind = TYPES.get(section.ggml_type)
    if kind is None or section.ggml_type not in _PLAIN | _BLOCKS or not section.row_bytes:
        return False
    return section.row_bytes % kind.size == 0 and not (section.n_rows and kind.block > 1)


def rows(blob: memoryview, section: Section, n_cells: int) -> Iterator[_Floats]:
    """The numbers, a row for each cell, some cells at a time. The section is known (`is_known`)."""
    data = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset)
    step = max(1, PIECE // section.row_bytes)
    if section.n_rows:
        element = section.row_bytes // section.n_rows
        columns = data.reshape(section.n_rows, n_cells, element)
        for first in range(0, n_cells, step):
            part = np.ascontiguousarray(columns[:, first : first + step].transpose(1, 0, 2))
            yield _floats(part.reshape(len(part), -1), section.ggml_type)
    else:
        table = data.reshape(n_cells, section.row_bytes)
        for first in range(0, n_cells, step):
            yield _floats(table[first : first + step], section.ggml_type)


def _floats(table: _Bytes, ggml_type: int) -> _Floats:
    n_rows = len(table)
    flat = np.ascontiguousarray(table).reshape(-1)
    if ggml_type in _PLAIN:
        found = _PLAIN[ggml_type](flat)
    else:
        found = _BLOCKS[ggml_type](flat.reshape(-1, TYPES[ggml_type].size))
    return np.asarray(found, np.float32).reshape(n_rows, -1)


def describe(blob: memoryview, section: Section, layer: int, n_cells: int) -> Numbers:
    """What the numbers of one tensor are like."""
    kind = TYPES.get(section.ggml_type)
    found = Numbers(
        section.kind, layer, kind.name if kind else str(section.ggml_type), section.row_bytes, section.n_rows
    )
    if not n_cells or not is_known(section):
        return found
    n, total, most, n_bad = 0, 0.0, 0.0, 0
    low, high = np.inf, -np.inf
    with np.errstate(all="ignore"):
        for part in rows(blob, section, n_cells):
            good = np.isfinite(part)
            n_bad_here = int(part.size - np.count_nonzero(good))
            if n_bad_here:
                part = np.where(good, part, np.float32(0))
            n_bad += n_bad_here
            norms = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            n, total, most = n + len(part), total + float(norms.sum()), max(most, float(norms.max()))
            low, high = min(low, float(part.min())), max(high, float(part.max()))
    return replace(found, norm_mean=total / n, norm_max=most, low=low, high=high, n_bad=n_bad)
