"""Memory that states are copied into on their way out of llama.cpp.

Copying a state into new memory takes ten times as long as the copy: the system hands out and clears page after page as
each is touched for the first time (47 MB into new memory 23 ms, into memory used before 2.2 ms). So the memory of
a state that nobody refers to any more is kept for the next one. Must never know what is in a state.
"""

from __future__ import annotations

import time
import weakref
from collections import deque

import numpy as np

MOST_KEPT = 192 << 20
"""Bytes that may be kept: three states of the size up to which maps are audited unasked, as a compaction needs."""
KEPT_S = 60.0
"""So long after the last state everything that is kept stays; then the system gets it back."""
_LARGEST = 1.25
"""A block serves a state again that is smaller by no more than this factor: saved states may stay long."""
_STEP = 1 << 20
"""New blocks have whole steps, so that a state that has grown a little fits where it lay before."""


class TransferBuffers:
    """Blocks for the states of one context. What is kept stands in the ledger; whoever is idle calls `expire`."""

    def __init__(self) -> None:
        self._kept: list[bytearray] = []
        self._back: deque[bytearray] = deque()  # from other threads too
        self._used_at = 0.0

    @property
    def n_bytes(self) -> int:
        """Bytes that are kept and not in use. Read-only."""
        self._take_back()
        return sum(map(len, self._kept))

    def block(self, n_bytes: int) -> memoryview:
        """So many bytes, undefined at first. They are kept for another state when nothing refers to them any more."""
        self._take_back()
        self._used_at = time.monotonic()
        most = max(_LARGEST * n_bytes, n_bytes + _STEP)
        fitting = [i for i, kept in enumerate(self._kept) if n_bytes <= len(kept) <= most]
        if fitting:
            memory = self._kept.pop(min(fitting, key=lambda i: len(self._kept[i])))
        else:
            memory = bytearray(-(-n_bytes // _STEP) * _STEP)
        view = np.frombuffer(memory, np.uint8, n_bytes)
        weakref.finalize(view, _give_back, weakref.ref(self), memory).atexit = False
        return view.data

    def expire(self) -> bool:
        """Give back to the system what was not used for `KEPT_S`. Whether something was given back."""
        if not self.n_bytes or time.monotonic() - self._used_at < KEPT_S:
            return False
        self._kept.clear()
        return True

    def _take_back(self) -> None:
        """What is free again joins what is kept; the oldest goes where that is too much."""
        while self._back:
            self._kept.append(self._back.popleft())
        while sum(map(len, self._kept)) > MOST_KEPT:
            del self._kept[0]


def _give_back(buffers: weakref.ref[TransferBuffers], memory: bytearray) -> None:
    """Nothing refers to a state any more. May run on any thread."""
    owner = buffers()
    if owner is not None:
        owner._back.append(memory)  # noqa: SLF001 - part of the class; a method would keep it alive
