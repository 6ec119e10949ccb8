"""The only module that imports llama_cpp. Owns its log, its version, and the flag that stops a decode.

Other modules of `kvdesk.backends.local` call `lib.llama_*` (llama-cpp-python's low-level ctypes API) and nothing else
of that package: `llama_cpp.Llama` rewrites sequence -1 to 0 and redirects the file descriptors of the whole process.
"""

import ctypes
import functools
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # an abort must not fork a debugger

import llama_cpp
import llama_cpp.llama_cpp as lib

from kvdesk.errors import EngineError
from kvdesk.translation import tr

__all__ = [
    "FOLDER",
    "MIRRORED_BINDING",
    "MIRRORED_COMMIT",
    "CountdownFlag",
    "EngineLog",
    "StopFlag",
    "engine_log",
    "engine_version",
    "free_context",
    "ggml_function",
    "lib",
    "library",
    "llama_class",
]

MIRRORED_BINDING = "0.3.36"
MIRRORED_COMMIT = "0c1e570"
"""The engine whose rules `kvdesk.cache` reproduces: llama-cpp-python and the llama.cpp commit inside it."""

LogLevel = Literal["debug", "info", "warning", "error"]
# By GGML_LOG_LEVEL_* of ggml.h
_LEVELS: dict[int, LogLevel] = {0: "info", 1: "debug", 2: "info", 3: "warning", 4: "error"}
_CONTINUES = 5  # GGML_LOG_LEVEL_CONT
_STOPPED = (b"compute status: 1\n", b"failed with error 1\n", b"failed to decode, ret = 2\n")
"""Endings of log lines for a decode that `StopFlag` stopped (GGML_STATUS_ABORTED). llama.cpp considers them errors."""
_TAKEN_BACK = re.compile(rb"decode: removing memory module entries for seq_id = (\d+), pos = \[(\d+), \+inf\)")
"""Follows a line with the reason (llama-context.cpp:1915)."""
_FIND_SLOT = b"find_slot: "
_CUT_OFF = b"state_get_data: error saving state: unexpectedly reached end"  # as `state.get_beginning` wants it
_LEFT_OUT = _FIND_SLOT, _CUT_OFF, b"create_tensor: loading tensor ", b"llama_graph_n_input_tensors: "
"""Beginnings of lines that nobody hears. The last two come for each tensor, more than a thousand at a start."""


class EngineLog:
    """Everything llama.cpp logs. None of it reaches the terminal unless asked for.

    `capture_start()` .. `capture_stop()` collect the lines that `LLAMA_KV_CACHE_DEBUG` makes `find_slot` print
    (llama-kv-cache.cpp:900); between them the engine is in one `llama_decode` or state restore. llama.cpp logs from the
    thread that calls it, so no lock is needed for the captured lines.
    """

    def __init__(self) -> None:
        self.listener: Callable[[LogLevel, str], None] | None = None
        self.taken_back: dict[int, int] = {}  # since `capture_start`: by sequence, first position of a failed ubatch
        self._recent: deque[str] = deque(maxlen=100)  # warnings and errors
        self._captured: list[bytes] | None = None
        self._everything = False
        self._level: LogLevel = "info"
        self._callback = lib.llama_log_callback(self._on_text)  # kept alive with the log: forever
        lib.llama_log_set(self._callback, ctypes.c_void_p(0))

    def capture_start(self, *, everything: bool = False) -> None:
        """`everything`: also other lines than those of `find_slot`, and the listener gets them too."""
        self._captured = []
        self._everything = everything
        self.taken_back = {}

    def capture_stop(self) -> list[bytes]:
        """Lines since `capture_start`, in the order they were printed; level-3 maps are entries that begin with
        a line break."""
        lines, self._captured = self._captured or [], None
        return lines

    def problems(self) -> str:
        """The last warnings and errors, one a line: the detail of a failed call."""
        return "\n".join(list(self._recent)[-12:])

    def forget(self) -> None:
        """Drop earlier lines, so that `problems` covers only the next call."""
        self._recent.clear()

    def _on_text(self, level: int, text: bytes, _data: object) -> None:
        if self._captured is not None and (self._everything or text.startswith((_FIND_SLOT, b"\n"))):
            self._captured.append(text)
            if not self._everything:
                return
        if text.startswith(_LEFT_OUT):
            return
        taken_back = _TAKEN_BACK.match(text)
        if taken_back:
            self.taken_back[int(taken_back[1])] = int(taken_back[2])
        if text.endswith(_STOPPED) or taken_back:
            self._level = "info"
        elif level != _CONTINUES:
            self._level = _LEVELS.get(level, "info")
        line = text.decode("utf-8", "replace").strip("\n")
        if not line.strip(". "):
            return  # progress dots
        if self._level in ("warning", "error"):
            self._recent.append(line)
        if self.listener is not None:
            self.listener(self._level, line)


@functools.cache
def engine_log() -> EngineLog:
    """The log of this process: llama.cpp has one log callback, so there is one log."""
    log = EngineLog()
    _load_processor_code()
    lib.llama_backend_init()
    return log


class EngineVersion:
    """What is actually loaded: the binding, the commit compiled into ggml, and whether the mirror matches it."""

    def __init__(self, binding: str, commit: str, system: str) -> None:
        self.binding = binding
        self.commit = commit
        self.system = system
        self.mirrored = binding == MIRRORED_BINDING and commit.startswith(MIRRORED_COMMIT)

    def __str__(self) -> str:
        return f"llama-cpp-python {self.binding} (llama.cpp {self.commit})"


@functools.cache
def engine_version() -> EngineVersion:
    """Version of the loaded engine. `ggml_commit()` (ggml.c) is not wrapped by llama-cpp-python."""
    try:
        find = ggml_function("ggml_commit")
        find.restype = ctypes.c_char_p
        commit = find().decode().removesuffix("-dirty")
    except EngineError:
        commit = "unknown"
    return EngineVersion(llama_cpp.__version__, commit, lib.llama_print_system_info().decode())


class StopFlag:
    """Stops a running `llama_decode` from another thread. Costs nothing while it is not raised.

    llama.cpp asks an abort callback before every graph node (about 600 times a ubatch). A Python callback would need
    the GIL each time; libc's `strlen` over a two-byte buffer is a callback in machine code: 0 goes on, 1 stops. Its
    `size_t` result is read as a C `bool` from the low byte of the same return register (System V and Microsoft x64,
    AAPCS64).
    """

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        self._lock = threading.Lock()
        libc = ctypes.CDLL("ucrtbase") if sys.platform == "win32" else ctypes.CDLL(None)
        self._strlen = ctypes.cast(libc.strlen, lib.ggml_abort_callback)

    def install(self, ctx: Any) -> None:
        """Make `ctx` listen to this flag. The flag must outlive the context."""
        lib.llama_set_abort_callback(ctx, self._strlen, ctypes.cast(self._buffer, ctypes.c_void_p))

    def remove(self, ctx: Any) -> None:
        """Detach `ctx` from the flag; its next calls cannot be stopped."""
        lib.llama_set_abort_callback(ctx, lib.ggml_abort_callback(), ctypes.c_void_p(0))

    def raise_(self) -> None:
        """Stop the decode that runs now, or the next one. May be called from any thread."""
        self._buffer[0] = b"\x01"

    def lower(self) -> None:
        self._buffer[0] = b"\x00"

    @property
    def raised(self) -> bool:
        return self._buffer[0] != b"\x00"


class CountdownFlag(StopFlag):
    """Stops a decode when the callback has been asked `left` times; -1 never. For experiments: it costs the GIL once
    for every graph node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        self._count = lib.ggml_abort_callback(self._ask)

    def install(self, ctx: Any) -> None:
        lib.llama_set_abort_callback(ctx, self._count, ctypes.c_void_p(0))

    def _ask(self, _data: object) -> bool:
        if self.left < 0:
            return False
        self.left -= 1
        return self.left < 0


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def free_context(ctx: Any) -> None:
    """Free a `llama_context *` and return its memory to the system.

    glibc takes buffers of up to 32 MB from its heap after one was freed, and keeps those below something still in use.
    Rebuilding a context of 24 MB randomly left the process larger or smaller by that much.
    """
    lib.llama_free(ctx)
    if _trim is not None:
        _trim(0)


def llama_class() -> Any:
    """llama-cpp-python's `Llama`, used only for comparison in the benchmark."""
    return llama_cpp.Llama


FOLDER = Path(os.environ.get("LLAMA_CPP_LIB_PATH") or Path(llama_cpp.__file__).parent / "lib")
"""Folder of the libraries, found as llama-cpp-python finds libllama."""
_LOAD = "ggml_backend_load_all_from_path"


def _load_processor_code() -> None:
    """In a portable build (GGML_BACKEND_DL), load the library for this processor; a native build has it linked in.

    The call goes through libllama to the ggml it is linked to, because a wheel has copies under other names. On Windows
    there is one ggml, which does that itself.
    """
    if not any(FOLDER.glob("*ggml-cpu-*")):
        return
    linked = next(found for found in map(library, ("llama", "ggml")) if hasattr(found, _LOAD))
    load = getattr(linked, _LOAD)
    load.argtypes, load.restype = [ctypes.c_char_p], None
    load(str(FOLDER).encode())


def library(name: str) -> ctypes.CDLL | None:
    """A library of the engine by name, "llama" or "ggml-base"; its functions have no types yet."""
    for file in (f"lib{name}.so", f"lib{name}.dylib", f"{name}.dll"):
        if (FOLDER / file).exists():
            return ctypes.CDLL(str(FOLDER / file))
    return None


def ggml_function(*names: str) -> Any:
    """A function of ggml, which llama-cpp-python does not wrap: the first of these that the engine has. It has no types
    yet. Raises EngineError.
    """
    libraries = [library(name) for name in ("ggml-cpu", "ggml-base", "ggml", "llama")]
    for name in names:
        for one in libraries:
            if hasattr(one, name):
                return getattr(one, name)
    raise EngineError(tr("This build of llama.cpp has no {name}.").format(name=names[0]))
