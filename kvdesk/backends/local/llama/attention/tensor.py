"""A `ggml_tensor` while a graph is computed: its inputs and its numbers.

Owns the layout of the struct (ggml.h), which llama-cpp-python does not wrap. `check_layout` verifies it on a tensor
before any is read. All `file:line` references are llama.cpp 0c1e57098.
"""

import ctypes
import functools
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import ggml_function
from kvdesk.errors import EngineError
from kvdesk.library.ggml_rows import can_decode, decode
from kvdesk.library.ggml_types import TYPES
from kvdesk.translation import tr

_DIMS, _PARAMS, _SOURCES, _NAME = 4, 16, 10, 64  # GGML_MAX_DIMS, _OP_PARAMS / 4, _SRC, _NAME (ggml.h:221-233)
_I32: Final = 26  # GGML_TYPE_I32
_DEPTH: Final = 8
"""Most tensors that are followed, from one to its source, to find a name or an operation."""
_JOINS: Final = "CONCAT"
_ROWS: Final = 2  # the dimension of K in which its rows follow each other, before it is permuted
_KEEPS_ROWS: Final = ("CPY", "CONT", "VIEW", "RESHAPE", "PERMUTE")
_FUNCTIONS: Final = {  # of ggml: the types of the result and of the argument
    "ggml_get_name": (ctypes.c_void_p, ctypes.c_void_p),
    "ggml_nelements": (ctypes.c_int64, ctypes.c_void_p),
    "ggml_element_size": (ctypes.c_size_t, ctypes.c_void_p),
    "ggml_op_name": (ctypes.c_char_p, ctypes.c_int),
    "ggml_backend_buffer_is_host": (ctypes.c_bool, ctypes.c_void_p),
}
_LAYER: Final = re.compile(rb"-(\d+)(?: \(|$)")  # `llm_graph_context::cb` appends the layer to the name


class Tensor(ctypes.Structure):
    """`struct ggml_tensor` (ggml.h:685)."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * _DIMS),
        ("nb", ctypes.c_size_t * _DIMS),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * _PARAMS),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * _SOURCES),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * _NAME),
        ("extra", ctypes.c_void_p),
        ("padding", ctypes.c_char * 8),
    )


def source(tensor: Any, i: int) -> Any:
    """Input number `i` of the operation that makes the tensor, a `Tensor`; None if it has none."""
    address = tensor.src[i]
    return Tensor.from_address(address) if address else None


def parameters(tensor: Any, n: int) -> list[float]:
    """The first `n` parameters of the operation, as numbers of C's float."""
    return [float(number) for number in np.frombuffer(tensor.op_params, "<f4", n)]


def numbers(tensor: Any) -> NDArray[np.float32]:
    """A copy of all numbers of the tensor. The shape is ggml's in numpy's order: the innermost dimension is last.

    Raises EngineError if they are not in this computer's memory, or of a type that no cache has.
    """
    rows = _rows(tensor, known=can_decode(tensor.type))
    return decode(rows, tensor.type).reshape([int(n) for n in tensor.ne[::-1]])


def integers(tensor: Any) -> NDArray[np.int32]:
    """`numbers` of a tensor of i32."""
    rows = _rows(tensor, known=tensor.type == _I32)
    return rows.view("<i4").reshape([int(n) for n in tensor.ne[::-1]])


def layer_of(tensor: Any) -> int:
    """The layer in the name of the tensor or of its sources; -1 if no name has one."""
    for one in ancestors(tensor):
        if match := _LAYER.search(one.name):
            return int(match[1])
    return -1


def rows_of(tensor: Any, name: bytes) -> int:
    """How many rows of the tensor, the first ones, are those of one whose name begins with `name`, in order: perhaps
    converted, but not selected. Others may be joined behind them. 0 if they are not.
    """
    n = int(tensor.ne[1])
    for _ in range(_DEPTH):
        if tensor.name.startswith(name):
            return n
        kind = operation(tensor.op)
        joins = kind == _JOINS and tensor.op_params[0] == _ROWS
        address = tensor.view_src or (tensor.src[0] if joins or kind in _KEEPS_ROWS else None)
        if not address:
            return 0
        tensor = Tensor.from_address(address)
        if joins:
            n = int(tensor.ne[_ROWS])
    return 0


def check_layout(address: int) -> None:
    """Compare the struct's fields of a tensor with the results of ggml's functions. Raises EngineError."""
    tensor = Tensor.from_address(address)
    name, n_bytes = int(_ggml("ggml_get_name")(address)), int(_ggml("ggml_element_size")(address))
    same = name == address + Tensor.name.offset and int(np.prod(tensor.ne)) == _ggml("ggml_nelements")(address)
    kind = TYPES.get(tensor.type)
    if not same or kind is None or kind.size != n_bytes:
        raise EngineError(tr("This llama.cpp lays out its tensors otherwise: what they hold cannot be read."))


@functools.cache
def operation(number: int) -> str:
    """The name of an operation by its number in a tensor, such as "FLASH_ATTN_EXT"."""
    name: bytes = _ggml("ggml_op_name")(number)
    return name.decode()


def ancestors(tensor: Any) -> Iterator[Any]:
    """The tensor, what it is a view of, and its sources, nearest first."""
    level = [tensor]
    for _ in range(_DEPTH):
        yield from level
        addresses = [a for one in level for a in (one.view_src, one.src[0], one.src[1]) if a]
        level = [Tensor.from_address(address) for address in dict.fromkeys(addresses)]


def _rows(tensor: Any, *, known: bool) -> NDArray[np.uint8]:
    """A copy of its bytes, since the engine goes on: shape (rows, bytes). `known`: whether its type can be read."""
    kind = TYPES.get(tensor.type)
    ne, nb = [int(n) for n in tensor.ne], [int(n) for n in tensor.nb]
    if kind is None or not known or nb[0] != kind.size or not tensor.data or not _in_memory(tensor):
        raise EngineError(tr("The numbers of the tensor {name} cannot be read.").format(name=tensor.name.decode()))
    row = kind.row_bytes(ne[0])
    span = row + sum((n - 1) * step for n, step in zip(ne[1:], nb[1:], strict=True))
    raw = np.ctypeslib.as_array((ctypes.c_uint8 * span).from_address(tensor.data))
    table = np.lib.stride_tricks.as_strided(raw, (*ne[:0:-1], row), (*nb[:0:-1], 1), writeable=False)
    return np.array(table).reshape(-1, row)


def _in_memory(tensor: Any) -> bool:
    return tensor.buffer is None or bool(_ggml("ggml_backend_buffer_is_host")(tensor.buffer))


@functools.cache
def _ggml(name: str) -> Any:
    function = ggml_function(name)
    function.restype, argument = _FUNCTIONS[name]
    function.argtypes = [argument]
    return function
