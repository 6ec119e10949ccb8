"""Reads the pickle of a LlamaState without running it: no class is imported, no function called.

Owns a stack machine for the opcodes that pickle writes, which builds plain descriptions of the calls in place of
making them; `pickletools` reads the opcodes. Knows what numpy's arrays look like. Bytes stay where they are: large ones
are views of the file. Raises PickleError for all that a LlamaState does not have.
"""

import pickletools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.values import dataclass, field

MOST_OPCODES: Final = 100_000
MOST_DIMENSIONS: Final = 4
_DTYPE: Final = {"i4", "i8", "f4", "f8", "u1"}
_BYTES: Final = (bytes, bytearray, memoryview)


class PickleError(ValueError):
    """The pickle has something that no saved state has."""


@dataclass(frozen=True, slots=True)
class Name:
    """A class or function that the pickle names, which is not looked up."""

    module: str
    name: str


@dataclass(slots=True, eq=False)
class Made:
    """A call that was not made: what it would have called, with what, and the state that was set afterwards."""

    what: Any
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(slots=True, eq=False)
class _Machine:
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def pop(self) -> Any:
        """Raises PickleError."""
        if not self.stack or (self.marks and self.marks[-1] >= len(self.stack)):
            raise PickleError("its stack is empty")
        return self.stack.pop()

    def since_mark(self) -> list[Any]:
        """Raises PickleError."""
        if not self.marks or (start := self.marks.pop()) > len(self.stack):
            raise PickleError("a mark is missing")
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def top(self, kind: type) -> Any:
        """Raises PickleError."""
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise PickleError(f"no {kind.__name__} where one is changed")
        return self.stack[-1]


class _View:
    """A file for pickletools that gives out views in place of copies of what is long."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def tell(self) -> int:
        return self._at

    def read(self, n: int) -> bytes | memoryview:
        part = self._data[self._at : self._at + n]
        self._at += len(part)
        return part if n > 1 << 16 else bytes(part)

    def readline(self) -> bytes:
        parts: list[bytes] = []
        while not parts or (parts[-1] and not parts[-1].endswith(b"\n")):
            part = bytes(self._data[self._at : self._at + (1 << 16)])
            parts.append(part[: part.find(b"\n") + 1] or part)
            self._at += len(parts[-1])
        return b"".join(parts)


def read_llama_state(data: memoryview) -> dict[str, Any]:
    """The attributes of the LlamaState in a pickle; arrays as numpy's. Raises PickleError."""
    found = _load(data)
    if not isinstance(found, Made) or found.what != Name("llama_cpp.llama", "LlamaState"):
        raise PickleError("it is no LlamaState")
    if not isinstance(found.state, dict):
        raise PickleError("its LlamaState has no attributes")
    return {str(name): _plain(value) for name, value in found.state.items()}


def _load(data: memoryview) -> Any:
    machine = _Machine()
    try:
        for n, (opcode, argument, _) in enumerate(pickletools.genops(_View(data))):  # type: ignore[arg-type]
            if n >= MOST_OPCODES:
                raise PickleError("it has far too many parts")
            if opcode.name == "STOP":
                return machine.pop()
            _do(machine, opcode.name, argument)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, UnicodeError) as error:
        raise PickleError(str(error)[:200]) from error
    raise PickleError("it has no end")


_PUSHED: Final = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    }
)
_VALUES: Final[dict[str, Callable[[], Any]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _do(machine: _Machine, name: str, argument: Any) -> None:  # noqa: C901 - a case for each opcode
    """One opcode. Raises PickleError."""
    stack = machine.stack
    match name:
        case "PROTO" | "FRAME":
            pass
        case _ if name in _PUSHED:
            stack.append(argument)
        case _ if name in _VALUES:
            stack.append(_VALUES[name]())
        case _ if name in _TUPLES:
            stack.append(tuple(machine.pop() for _ in range(_TUPLES[name]))[::-1])
        case "MARK":
            machine.marks.append(len(stack))
        case "TUPLE" | "LIST":
            found = machine.since_mark()
            stack.append(tuple(found) if name == "TUPLE" else found)
        case "DICT":
            stack.append(_pairs(machine.since_mark()))
        case "SETITEM":
            value, key = machine.pop(), machine.pop()
            machine.top(dict).update(_pairs([key, value]))
        case "SETITEMS":
            found = machine.since_mark()
            machine.top(dict).update(_pairs(found))
        case "APPEND":
            value = machine.pop()
            machine.top(list).append(value)
        case "APPENDS":
            found = machine.since_mark()
            machine.top(list).extend(found)
        case "GLOBAL":
            module, _, what = argument.partition(" ")
            stack.append(Name(module, what))
        case "STACK_GLOBAL":
            what, module = machine.pop(), machine.pop()
            stack.append(Name(str(module), str(what)))
        case "REDUCE" | "NEWOBJ":
            arguments, what = machine.pop(), machine.pop()
            stack.append(_made(what, arguments))
        case "BUILD":
            state = machine.pop()
            machine.top(Made).state = state
        case "MEMOIZE":
            machine.memo[len(machine.memo)] = stack[-1]
        case "PUT" | "BINPUT" | "LONG_BINPUT":
            machine.memo[argument] = stack[-1]
        case "GET" | "BINGET" | "LONG_BINGET":
            stack.append(machine.memo[argument])
        case _:
            raise PickleError(f"it has the opcode {name}")


def _pairs(values: list[Any]) -> dict[str, Any]:
    """Raises PickleError."""
    if len(values) % 2 or not all(isinstance(key, str) for key in values[::2]):
        raise PickleError("a dict has keys that are no texts")
    return dict(zip(values[::2], values[1::2], strict=True))


def _made(what: Any, arguments: Any) -> Any:
    """Raises PickleError."""
    if not isinstance(what, Name) or not isinstance(arguments, tuple):
        raise PickleError("it calls what has no name")
    if what == Name("copy_reg", "_reconstructor") or what == Name("copyreg", "_reconstructor"):
        return Made(arguments[0], ())
    if what == Name("_codecs", "encode") and len(arguments) == 2 and isinstance(arguments[0], str):
        return arguments[0].encode("latin-1")  # how protocols before 3 write bytes
    return Made(what, arguments)


def _plain(value: Any) -> Any:
    """An attribute as itself, an array or a number of numpy's. Raises PickleError."""
    if not isinstance(value, Made):
        return value
    name = value.what.name if isinstance(value.what, Name) and value.what.module.startswith("numpy") else ""
    if name == "_reconstruct" and isinstance(value.state, tuple) and len(value.state) == 5:
        _, shape, dtype, fortran, raw = value.state
        return _array(raw, dtype, shape, "F" if fortran else "C")
    if name == "_frombuffer" and len(value.arguments) == 4:
        raw, dtype, shape, order = value.arguments
        return _array(raw, dtype, shape, order)
    if name == "scalar" and len(value.arguments) == 2:
        return _array(value.arguments[1], value.arguments[0], (1,), "C")[0].item()
    raise PickleError("an attribute is neither number, bytes nor array")


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Raises PickleError."""
    if not isinstance(dtype, Made) or dtype.what != Name("numpy", "dtype") or dtype.arguments[:1][0] not in _DTYPE:
        raise PickleError("an array is of an unknown type")
    if isinstance(dtype.state, tuple) and dtype.state[1:2] == (">",):
        raise PickleError("an array has its bytes in another order")
    if not isinstance(raw, _BYTES) or not isinstance(shape, tuple) or len(shape) > MOST_DIMENSIONS:
        raise PickleError("an array has no bytes or no shape")
    try:
        flat = np.frombuffer(raw, np.dtype("<" + dtype.arguments[0]))
        return flat.reshape(shape, order="F" if order == "F" else "C")
    except (ValueError, TypeError) as error:
        raise PickleError(str(error)[:200]) from error
