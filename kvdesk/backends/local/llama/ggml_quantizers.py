"""Converts floats to rows of K and V with the quantizers that the engine's CPU code uses for the cache.

`kvdesk.library.ggml_rows` does the reverse, and the rotation.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from kvdesk.backends.local.llama.binding import ggml_function
from kvdesk.library.ggml_rows import Bytes, Floats
from kvdesk.library.ggml_types import BY_NAME, TYPES

_F32: Final = next(number for number, kind in TYPES.items() if kind is BY_NAME["f32"])
_FROM_FLOAT: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class _TypeTraits(ctypes.Structure):
    """ggml.h, `struct ggml_type_traits`."""

    _fields_ = (
        ("type_name", ctypes.c_char_p),
        ("blck_size", ctypes.c_int64),
        ("blck_size_interleave", ctypes.c_int64),
        ("type_size", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.c_void_p),
        ("from_float", ctypes.c_void_p),
    )


class _CpuTraits(ctypes.Structure):
    """The beginning of ggml-cpu.h, `struct ggml_type_traits_cpu`."""

    _fields_ = (("from_float", ctypes.c_void_p),)


def encode(table: Floats, ggml_type: int) -> Bytes:
    """Rows of bytes, shape (n_rows, row_bytes), from rows of floats, shape (n_rows, width), for a type of a cache
    (`settings.CacheType`); `width` is a multiple of its block.

    Bit for bit what `ggml_set_rows` writes into a cache on the CPU (ggml-cpu/ops.cpp, `from_float`).
    """
    source, kind = np.ascontiguousarray(table, np.float32), TYPES[ggml_type]
    if ggml_type == _F32:
        return source.view(np.uint8)
    target = np.empty((len(source), kind.row_bytes(source.shape[1])), np.uint8)
    _from_float(ggml_type)(source.ctypes.data, target.ctypes.data, source.size)
    return target


@functools.cache
def _from_float(ggml_type: int) -> Callable[[int, int, int], None]:
    """The processor's quantizer. If the build has no library for it with a known name, the reference, which may round
    the last bit differently. Raises EngineError.
    """
    found = ggml_function("ggml_get_type_traits_cpu", "ggml_get_type_traits")
    traits = _CpuTraits if found.__name__.endswith("_cpu") else _TypeTraits
    found.argtypes, found.restype = [ctypes.c_int], ctypes.POINTER(traits)
    return _FROM_FLOAT(found(ggml_type).contents.from_float)
