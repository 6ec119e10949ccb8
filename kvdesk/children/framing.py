"""Messages on a pipe: four bytes for the length, then the bytes."""

import struct
from collections.abc import Callable
from typing import Final

_LENGTH: Final = struct.Struct("<I")


class TooLongError(ValueError):
    """A message exceeds its limit. Bytes that are no message mostly do."""


def framed(message: bytes) -> bytes:
    """The message as `read_message` reads it."""
    return _LENGTH.pack(len(message)) + message


def read_message(read: Callable[[int], bytes], most: int) -> bytes:
    """The next message, of `most` bytes at most. `read(n)` returns n bytes, fewer at the end of the stream.

    Raises EOFError and TooLongError.
    """
    (length,) = _LENGTH.unpack(_exactly(read, _LENGTH.size))
    if length > most:
        raise TooLongError(f"a message has {length:,} bytes, more than {most:,}")
    return _exactly(read, length)


def _exactly(read: Callable[[int], bytes], n_bytes: int) -> bytes:
    data = read(n_bytes)
    if len(data) < n_bytes:
        raise EOFError
    return data
