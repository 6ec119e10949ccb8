"""Signals that end a command as Ctrl+C does, so that what it writes last is still written."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = [signal.SIGTERM]
if sys.platform == "win32":
    _ENDS.append(signal.SIGBREAK)


@contextmanager
def as_interrupt() -> Iterator[None]:
    """Inside it, each of them raises KeyboardInterrupt on the main thread."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
