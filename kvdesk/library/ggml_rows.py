"""Rows of K and V as numbers: floats from the bytes of any type that a cache may have, rotated as llama.cpp does it.

Owns how ggml stores these types (ggml/src/ggml-quants.c, `dequantize_row_*`) and the rotation of quantized K and V
(ggml/src/ggml-cpu/ops.cpp, `ggml_compute_forward_fwht`). Floats to bytes is the engine's own work:
`kvdesk.backends.local.llama.ggml_quantizers`.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.state.blob import Section
from kvdesk.library.ggml_types import TYPES

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
PIECE: Final = 1 << 22
"""Bytes that are read together."""
_IQ4_NL: Final = np.array((-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113), np.float32)
_ROTATED: Final = 1 << 17
"""Numbers that are rotated together: they stay in the cache of the processor."""


def _half(blocks: Bytes, at: int) -> Floats:
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def _nibbles(codes: Bytes) -> Bytes:
    return np.concatenate((codes & 15, codes >> 4), axis=1)


def _fifth(blocks: Bytes, at: int) -> Bytes:
    """Bit 4 of each of 32 codes."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") * np.uint8(16)


def _bf16(data: Bytes) -> Floats:
    return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)


_PLAIN: Final[dict[int, Callable[[Bytes], Floats]]] = {
    0: lambda data: data.view("<f4"),
    1: lambda data: data.view("<f2").astype(np.float32),
    30: _bf16,
}
_BLOCKS: Final[dict[int, Callable[[Bytes], Floats]]] = {
    2: lambda b: _half(b, 0) * (_nibbles(b[:, 2:]).astype(np.float32) - 8),
    3: lambda b: _half(b, 0) * _nibbles(b[:, 4:]) + _half(b, 2),
    6: lambda b: _half(b, 0) * ((_nibbles(b[:, 6:]) | _fifth(b, 2)).astype(np.float32) - 16),
    7: lambda b: _half(b, 0) * (_nibbles(b[:, 8:]) | _fifth(b, 4)) + _half(b, 2),
    8: lambda b: _half(b, 0) * b[:, 2:].copy().view(np.int8),
    20: lambda b: _half(b, 0) * _IQ4_NL[_nibbles(b[:, 2:])],
}


def can_decode(ggml_type: int) -> bool:
    """Whether `decode` knows the type."""
    return ggml_type in _PLAIN or ggml_type in _BLOCKS


def is_known(section: Section) -> bool:
    """Whether the numbers of the section can be read."""
    kind = TYPES.get(section.ggml_type)
    if kind is None or not can_decode(section.ggml_type) or not section.row_bytes:
        return False
    return section.row_bytes % kind.size == 0 and not (section.n_rows and kind.block > 1)


def rows(blob: memoryview, section: Section, n_cells: int, n_bytes: int = 0) -> Iterator[Floats]:
    """The numbers, a row for each cell, some cells at a time: about `n_bytes` of them, 0: `PIECE`. The section is known
    (`is_known`).
    """
    data = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset)
    step = max(1, (n_bytes or PIECE) // section.row_bytes)
    if section.n_rows:
        element = section.row_bytes // section.n_rows
        columns = data.reshape(section.n_rows, n_cells, element)
        for first in range(0, n_cells, step):
            part = np.ascontiguousarray(columns[:, first : first + step].transpose(1, 0, 2))
            yield decode(part.reshape(len(part), -1), section.ggml_type)
    else:
        table = data.reshape(n_cells, section.row_bytes)
        for first in range(0, n_cells, step):
            yield decode(table[first : first + step], section.ggml_type)


def decode(table: Bytes, ggml_type: int) -> Floats:
    """Rows of floats, shape (n_rows, width), from rows of bytes, shape (n_rows, row_bytes), of a type it knows
    (`can_decode`).
    """
    n_rows = len(table)
    flat = np.ascontiguousarray(table).reshape(-1)
    if ggml_type in _PLAIN:
        found = _PLAIN[ggml_type](flat)
    else:
        found = _BLOCKS[ggml_type](flat.reshape(-1, TYPES[ggml_type].size))
    return np.asarray(found, np.float32).reshape(n_rows, -1)


def rotate(table: Floats, n_rot: int) -> Floats:
    """Rows of floats, each run of `n_rot` numbers times the orthonormal Hadamard matrix of that size, a power of 2; the
    rows themselves where it is 0. It is its own inverse, but for rounding.

    llama.cpp so turns K, V and Q before a quantized cache takes them, and back what V gives (llama-graph.cpp:2883,
    2928). Bit for bit what its CPU computes: scaled first, then sums and differences, the nearest numbers first.
    """
    if not n_rot:
        return table
    turned = np.empty(table.size, np.float32)
    flat = np.ascontiguousarray(table, np.float32).reshape(-1)
    for first in range(0, flat.size, _ROTATED):
        part = flat[first : first + _ROTATED].reshape(-1, n_rot)
        columns = np.ascontiguousarray(part.T)  # many runs beside each other: long rows for numpy
        columns *= np.float32(1) / np.sqrt(np.float32(n_rot))
        size = 1
        while size < n_rot:
            pairs = columns.reshape(n_rot // (2 * size), 2, size, -1)
            difference = pairs[:, 0] - pairs[:, 1]
            pairs[:, 0] += pairs[:, 1]
            pairs[:, 1] = difference
            size *= 2
        turned[first : first + _ROTATED].reshape(-1, n_rot)[...] = columns.T
    return turned.reshape(table.shape)
