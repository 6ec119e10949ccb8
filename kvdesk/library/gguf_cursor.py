"""A position in a file that may be damaged or hostile: every read is checked, nothing is trusted.

Owns the buffer and the limits in bytes and time. Reads ahead in chunks, not by memory map: a file that is cut while it
is mapped kills the process. Knows how GGUF writes numbers and strings (ggml/src/gguf.cpp, `gguf_reader`), not what they
mean.
"""

import struct
import time
from typing import BinaryIO

import numpy as np

from kvdesk.translation import tr

CHUNK = 1 << 20
MAX_SECONDS = 5.0  # of this thread on a processor, for a whole header; an ordinary one takes some 20 ms
FEW = 256  # strings skipped one by one if they cannot be skipped together


class Truncated(Exception):
    """The file ends `missing` bytes (at least) before what was to be read."""

    def __init__(self, missing: int) -> None:
        super().__init__(tr("{missing} bytes missing").format(missing=missing))
        self.missing = missing


class Damaged(Exception):
    """What was read cannot be; the text says what, for the log."""


class Cursor:
    """Reads forward through the first `size` bytes of `file`."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._buffer = b""
        self._start = 0  # of the buffer, in the file
        self._at = 0  # in the buffer
        self._deadline_s = time.thread_time() + MAX_SECONDS

    @property
    def position(self) -> int:
        return self._start + self._at

    def read(self, n: int) -> bytes:
        """The next `n` bytes. Raises Truncated."""
        if self._at + n > len(self._buffer):
            self._fill(n)
        data = self._buffer[self._at : self._at + n]
        self._at += n
        return data

    def skip(self, n: int) -> None:
        """Move on by `n` bytes without reading them. Raises Truncated."""
        self._check(n)
        if self._at + n <= len(self._buffer):
            self._at += n
        else:
            self._start += self._at + n
            self._buffer, self._at = b"", 0

    def number(self, layout: struct.Struct) -> int | float:
        """The next number. Raises Truncated."""
        value: int | float = layout.unpack(self.read(layout.size))[0]
        return value

    def u32(self) -> int:
        return int.from_bytes(self.read(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.read(8), "little")

    def string(self, limit: int) -> str | None:
        """The next string; None, and skipped, when it has more than `limit` bytes. Raises Truncated."""
        length = self.u64()
        if length > limit:
            self.skip(length)
            return None
        return self.read(length).decode("utf-8", "replace")

    def skip_strings(self, count: int) -> None:
        """Move on over `count` strings. Raises Truncated, and Damaged when it takes too long.

        Nearly all strings of a vocabulary are shorter than 256 bytes: their length is one byte and seven zeros. Those
        places are found all at once; where each string ends at the next place, the chain is right. Where it breaks, a
        few strings are skipped one by one.
        """
        self._check(8 * count)
        while count > 0:
            if time.thread_time() > self._deadline_s:
                raise Damaged(tr("reading its header takes too long"))
            count -= self._skip_chain(count)
            for _ in range(min(FEW, count)):
                self.skip(self.u64())
                count -= 1

    def _skip_chain(self, count: int) -> int:
        """Skip up to `count` short strings in the buffer; how many they were."""
        if count < FEW:
            return 0
        if len(self._buffer) - self._at < CHUNK // 2:
            self._fill(1)
        data = np.frombuffer(self._buffer, np.uint8, offset=self._at)
        if len(data) < 16:
            return 0
        zero = data[1:] == 0
        sevens = zero[:-6].copy()
        for shift in range(1, 7):
            sevens &= zero[shift : len(zero) - 6 + shift]
        places = np.flatnonzero(sevens)[: count + 1]
        if len(places) < 2 or places[0] != 0:
            return 0
        ends = places + 8 + data[places]
        broken = np.flatnonzero(ends[:-1] != places[1:])
        n = int(broken[0]) if len(broken) else len(places) - 1
        self._at += int(places[n])
        return n

    def _check(self, n: int) -> None:
        missing = self.position + n - self._size
        if missing > 0:
            raise Truncated(missing)

    def _fill(self, n: int) -> None:
        """Have at least `n` bytes in the buffer, and a chunk where the file has it."""
        self._check(n)
        self._start += self._at
        self._at = 0
        self._file.seek(self._start)
        self._buffer = self._file.read(max(n, min(CHUNK, self._size - self._start)))
        if len(self._buffer) < n:
            raise Truncated(n - len(self._buffer))  # it became shorter while being read
