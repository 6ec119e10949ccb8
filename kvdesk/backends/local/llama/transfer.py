"""Memory that states are copied into on their way out of llama.cpp.

Copying a state into new memory takes ten times as long as the copy: the system hands out and clears page after page as
each is touched for the first time (47 MB into new memory 23 ms, into memory used before 2.2 ms). So the memory of
a state that nobody refers to any more is kept for the next one. Must never know what is in a state.

Each block is a mapping of its own, so that the system has it back as soon as it is given up. The C library's heap would
keep it: once a large block was freed there, glibc takes later ones of up to 32 MB from the heap, where whatever lies
above them holds them (400 MB after two minutes of compactions).
"""

from __future__ import annotations

import mmap
import sys
import time
import weakref
from collections import deque

import numpy as np

from kvdesk.errors import EngineError
from kvdesk.translation import tr

MOST_KEPT = 192 << 20
"""Bytes that may be kept: three states of the size up to which maps are audited unasked, as a compaction needs."""
MOST_BLOCKS = 16
"""Blocks that may be kept. With 4 the small states of single sequences drove out those that a compaction needs."""
KEPT_S = 60.0
"""So long after the last state everything that is kept stays; then the system gets it back."""
_LARGEST = 1.25
"""A block serves a state again that is smaller by no more than this factor: saved states may stay long."""
_STEP = 1 << 20
"""New blocks have whole steps, so that a state that has grown a little fits where it lay before."""


class TransferBuffers:
    """Blocks for the states of one context. What is kept stands in the ledger; whoever is idle calls `expire`."""

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []
        self._back: deque[mmap.mmap] = deque()  # from other threads too
        self._loose: dict[int, tuple[weakref.ref[mmap.mmap], int]] = {}  # blocks larger than the state they have, by id
        self._used_at = 0.0
        self._closed = False

    @property
    def n_bytes(self) -> int:
        """Bytes that are kept and not in use. Read-only."""
        self._take_back()
        return sum(map(len, self._kept))

    @property
    def due(self) -> bool:
        """Whether `expire` may have something to give back. Read-only."""
        return bool(self._loose) or self.n_bytes > 0

    def block(self, n_bytes: int) -> memoryview:
        """So many bytes, undefined at first. They are kept for another state when nothing refers to them any more.

        Raises EngineError: the system has no memory for it.
        """
        self._take_back()
        self._used_at = time.monotonic()
        most = max(_LARGEST * n_bytes, n_bytes + _STEP)
        fitting = [i for i, kept in enumerate(self._kept) if n_bytes <= len(kept) <= most]
        if fitting:
            memory = self._kept.pop(min(fitting, key=lambda i: len(self._kept[i])))
        else:
            memory = _mapping(max(1, -(-n_bytes // _STEP)) * _STEP)
        self._loose.pop(id(memory), None)
        if len(memory) > n_bytes + _STEP:
            self._loose[id(memory)] = (weakref.ref(memory), n_bytes)
        view = np.frombuffer(memory, np.uint8, n_bytes)
        weakref.finalize(view, _give_back, weakref.ref(self), memory).atexit = False
        return view.data

    def expire(self) -> bool:
        """Give back to the system what was not used for `KEPT_S`, and what states that stay leave of their blocks.
        Whether something was given back.
        """
        if not self.due or time.monotonic() - self._used_at < KEPT_S:
            return False
        self._kept.clear()
        for block, n_bytes in self._loose.values():
            if (memory := block()) is not None:
                _give_up_behind(memory, n_bytes)
        self._loose.clear()
        return True

    def close(self) -> None:
        """Give everything back to the system; blocks in use follow when nothing refers to them any more."""
        self._closed = True
        self._kept.clear()
        self._back.clear()

    def _take_back(self) -> None:
        """What is free again joins what is kept; the oldest goes where that is too much."""
        while self._back:
            self._kept.append(self._back.popleft())
        while len(self._kept) > MOST_BLOCKS or sum(map(len, self._kept)) > MOST_KEPT:
            del self._kept[0]


def _mapping(n_bytes: int) -> mmap.mmap:
    """Memory of its own, all zeros. Raises EngineError."""
    try:
        if sys.platform == "win32":
            return mmap.mmap(-1, n_bytes)
        return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise EngineError(tr("There is no memory for a state of {mb:,.0f} MB.").format(mb=n_bytes / 1e6)) from error


def _give_up_behind(memory: mmap.mmap, n_bytes: int) -> None:
    """What a smaller state leaves of a block goes back to the system: copies for undo stay long, and count as the bytes
    of their state. Not at once, since the next state may be as large as the one before, and each page costs when it is
    touched again: 6 MB as much as copying 20.
    """
    start = -(-n_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if sys.platform == "linux" and start + _STEP < len(memory):
        memory.madvise(mmap.MADV_DONTNEED, start, len(memory) - start)


def _give_back(buffers: weakref.ref[TransferBuffers], memory: mmap.mmap) -> None:
    """Nothing refers to a state any more. May run on any thread."""
    owner = buffers()
    if owner is not None and not owner._closed:  # noqa: SLF001 - part of the class; a method would keep it alive
        owner._back.append(memory)  # noqa: SLF001 - likewise
