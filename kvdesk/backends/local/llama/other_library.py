"""Loads another libllama in place of llama-cpp-python's own in a child process, and refuses one with another ABI.

llama-cpp-python passes structs by value, so a library with structs of another size or order would read and write beyond
them. Symbols, struct sizes and default values are compared before anything else is called.
"""

import ctypes
import importlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kvdesk.children.entry import Parent
from kvdesk.errors import UserError
from kvdesk.translation import tr
from kvdesk.values import dataclass

VARIABLE: Final = "LLAMA_CPP_LIB_PATH"
"""Environment variable with the folder of libllama, read by llama-cpp-python."""
_SUFFIXES: Final = {"win32": (".dll",), "darwin": (".dylib", ".so")}
_BELOW: Final = ("ggml-base", "ggml-cpu", "ggml")
"""Libraries that libllama links to, in loading order."""
_ROOM: Final = 4096
"""Bytes, far more than any of the structs."""

Defaults = dict[str, dict[str, str]]
"""Values of fields, by the function that returns the struct."""


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded library. `measured`: whether struct sizes can be measured on this processor."""

    commit: str
    system: str
    defaults: Defaults
    measured: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """The first message of such a process: its library, or why it is refused."""

    library: Library | None = None
    refused: str = ""


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: the folder of the library, "" for llama-cpp-python's own, and what runs on it, as "module:function".

    That module is imported only after the library, because whatever knows the engine loads one.
    """
    folder, target = argv
    try:
        if folder:
            use(Path(folder))
        library = examine()
    except UserError as error:
        parent.send_value(Loaded(refused=str(error)))
        return 2
    parent.send_value(Loaded(library))
    module, _, function = target.partition(":")
    return int(getattr(importlib.import_module(module), function)(parent))


def folder_of(library: Path) -> Path:
    """The folder of a libllama given by its file or folder. Raises UserError."""
    file = library if library.is_file() else _find(library, "llama")
    if file is None or _find(file.parent, "llama") is None:
        name = f"libllama{_suffixes()[0]}" if sys.platform != "win32" else "llama.dll"
        sentence = tr("{library} is no library of llama.cpp: name {file} or its folder.")
        raise UserError(sentence.format(library=library, file=name))
    return file.parent.absolute()


def use(folder: Path) -> None:
    """Load the libraries of `folder` in place of llama-cpp-python's own. Raises UserError.

    The libraries that libllama links to come first, by path, because a library of the same name is not loaded twice.
    """
    if "llama_cpp" in sys.modules:
        raise RuntimeError("llama-cpp-python has loaded its own library already")
    for file in filter(None, (_find(folder, name) for name in (*_BELOW, "llama"))):
        try:
            ctypes.CDLL(str(file))
        except OSError as error:
            sentence = tr("{file} cannot be loaded: {why}.").format(file=file.name, why=error)
            raise UserError(sentence) from error
    os.environ[VARIABLE] = str(folder)


def examine() -> Library:
    """The loaded library, after its symbols and struct sizes were found to match llama-cpp-python.

    Raises UserError if they are not.
    """
    try:
        from kvdesk.backends.local.llama import binding
    except AttributeError as error:
        sentence = tr("The library has another ABI than llama-cpp-python's: {why}.").format(why=error)
        raise UserError(sentence) from error
    lib = binding.lib
    measured = platform.machine().lower() in ("x86_64", "amd64")
    if measured:
        for name, struct, arguments in (
            ("llama_model_default_params", lib.llama_model_params, ()),
            ("llama_context_default_params", lib.llama_context_params, ()),
            ("llama_batch_init", lib.llama_batch, (1, 0, 1)),
        ):
            _check_size(name, _written(binding.library("llama"), name, arguments), struct)
    version = binding.engine_version()
    return Library(version.commit, " ".join(version.system.split()), _defaults(lib), measured)


def check_defaults(own: Defaults, other: Defaults) -> None:
    """Raises UserError if a field has another default, because its struct then has another layout or meaning."""
    for function, fields in own.items():
        for name, value in fields.items():
            if (theirs := other.get(function, {}).get(name)) != value:
                sentence = tr(
                    "The library has another ABI than llama-cpp-python's: {function} gives {name} = {found}, and not "
                    "{expected}."
                )
                raise UserError(sentence.format(function=function, name=name, found=theirs, expected=value))


# --- inside -----------------------------------------------------------------------------------------------------------


def _suffixes() -> tuple[str, ...]:
    return _SUFFIXES.get(sys.platform, (".so",))


def _find(folder: Path, name: str) -> Path | None:
    names = [f"{prefix}{name}{suffix}" for suffix in _suffixes() for prefix in ("lib", "")]
    return next((folder / file for file in names if (folder / file).is_file()), None)


def _check_size(name: str, found: int, struct: Any) -> None:
    expected, align = ctypes.sizeof(struct), ctypes.alignment(struct)
    if -(-found // align) * align != expected:
        sentence = tr(
            "The library has another ABI than llama-cpp-python's: {function} returns {found} bytes, and not {expected}."
        )
        raise UserError(sentence.format(function=name, found=found, expected=expected))


def _written(library: Any, name: str, arguments: tuple[int, ...]) -> int:
    """Number of bytes, up to the last, that a function writes of the struct it returns.

    A struct of more than two registers is returned through a pointer before the arguments (System V and Microsoft x64).
    That pointer is passed as an argument here, to memory with two different fillings, so each written byte differs from
    one of them.
    """
    function = getattr(library, name)
    function.restype = None
    function.argtypes = [ctypes.c_void_p, *(ctypes.c_int32 for _ in arguments)]
    end = 0
    for filling in (b"\x00", b"\xff"):
        memory = ctypes.create_string_buffer(filling * _ROOM, _ROOM)
        function(memory, *arguments)
        end = max(end, len(memory.raw.rstrip(filling)))
    return end


def _defaults(lib: Any) -> Defaults:
    functions = (lib.llama_model_default_params, lib.llama_context_default_params)
    return {function.__name__: _fields(function()) for function in functions}


def _fields(params: Any) -> dict[str, str]:
    """Fields as text; pointers only as whether they are null."""
    found = {}
    for name, *_ in params._fields_:
        value = getattr(params, name)
        found[name] = repr(value if isinstance(value, int | float) else bool(value))
    return found
