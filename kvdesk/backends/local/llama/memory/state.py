"""Copies state blobs out of and into a `llama_context *`, as plain bytes. Must never know their content.

Callers check first (`kvdesk.backends.local.llama.memory.guards`), because a sequence that does not exist aborts the
process (llama-kv-cache.cpp:2153) and a blob of another context wipes the cache. The flags of llama_state_seq_*_ext are
not available: ON_DEVICE aborts without a matching save, and throws through C if the blob's magic is wrong
(llama-context.cpp:3230).
"""

import ctypes
import mmap
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from kvdesk.backends.local.llama.binding import lib
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import EngineError
from kvdesk.translation import tr


def room(n_bytes: int) -> memoryview:
    """Memory for a state, which the system gets back as soon as nothing refers to it.

    It is mapped separately, because glibc keeps freed blocks of up to 32 MB in its heap (400 MB after two minutes of
    compactions). It uses huge pages, because touching new small ones costs several times the copy: 47 MB take 37 ms
    with huge pages, 20 ms in memory that was used before. Raises EngineError if the system has no memory for it.
    """
    try:
        if sys.platform == "win32":
            return memoryview(mmap.mmap(-1, n_bytes))
        memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise EngineError(tr("There is no memory for a state of {mb:,.0f} MB.").format(mb=n_bytes / 1e6)) from error
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def state_size(ctx: Any) -> int:
    """Bytes that `get_state` would copy: all K and V of used cells. Read-only."""
    return int(lib.llama_state_get_size(ctx))


def get_state(ctx: Any, target: memoryview) -> None:
    """Copy the whole state to `target`, which has its size. Read-only. Raises EngineError."""
    _expect(int(lib.llama_state_get_data(ctx, _pointer(target), len(target))), len(target))


def get_beginning(ctx: Any, n_bytes: int) -> bytearray:
    """The first `n_bytes` of the whole state, padded with zeros if it is shorter. Read-only.

    llama.cpp writes what precedes K and V, finds no room for them and gives up before it copies any, because it copies
    K and V at the end (llama-context.cpp:2692). It returns 0 bytes and logs an error, which `EngineLog` hides.
    """
    target = bytearray(n_bytes)
    lib.llama_state_get_data(ctx, _pointer(target), n_bytes)
    return target


def set_state(ctx: Any, blob: Blob) -> bool:
    """Replace the whole state. False: not accepted, and the cache is empty. Changes the cache."""
    return int(lib.llama_state_set_data(ctx, _pointer(blob), len(blob))) != 0


def seq_state_size(ctx: Any, seq_id: int) -> int:
    """Bytes that `get_seq_state` would copy. Read-only."""
    return int(lib.llama_state_seq_get_size(ctx, seq_id))


def get_seq_state(ctx: Any, seq_id: int, target: memoryview) -> None:
    """Copy the state of one sequence to `target`, which has its size. Read-only. Raises EngineError."""
    _expect(int(lib.llama_state_seq_get_data(ctx, _pointer(target), len(target), seq_id)), len(target))


def set_seq_state(ctx: Any, seq_id: int, blob: Blob) -> bool:
    """Put a saved sequence into `seq_id`. False: no room, and the sequence is empty. Changes the cache."""
    return int(lib.llama_state_seq_set_data(ctx, _pointer(blob), len(blob), seq_id)) != 0


def _pointer(blob: Blob) -> Any:
    """The bytes themselves, not a copy."""
    return np.frombuffer(blob, np.uint8).ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _expect(copied: int, size: int) -> None:
    if copied != size:
        raise EngineError(
            tr("llama.cpp saved {copied:,} of {size:,} bytes of its state.").format(copied=copied, size=size)
        )
