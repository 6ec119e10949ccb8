"""The child's side of every child process: its messages, its limits, and its end when the parent ends.

Imports little: some children answer within milliseconds.
"""

import faulthandler
import importlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from kvdesk.children.framing import framed, read_message
from kvdesk.children.parent_death import ask_for
from kvdesk.codec import decode, encode

_MAX_MESSAGE_BYTES = (1 << 32) - 1


def run(target: str, argv: Sequence[str]) -> int:
    """Run `target` ("module:function") with the parent and the arguments. Returns the exit code."""
    parent = Parent()
    module, _, function = target.partition(":")
    return int(getattr(importlib.import_module(module), function)(parent, argv))


class Parent:
    """The process that started this one. Made once, before anything else.

    This process ends with its parent: a thread sees standard input close, on every system; Linux kills also a child
    whose C code holds the interpreter's lock. Standard output is redirected to standard error, whose end the parent
    shows as last words. A crash leaves no core file.
    """

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        if sys.platform != "win32":
            import resource

            ask_for(signal.SIGKILL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable()
        self._at_end: Callable[[], None] = lambda: None
        threading.Thread(target=self._read, name="kvdesk-parent", daemon=True).start()

    def end_with(self, at_end: Callable[[], None]) -> None:
        """Call it before this process ends since its parent has. Where no C code holds the interpreter's lock for long:
        nothing else ends it then.
        """
        self._at_end = at_end
        ask_for(0)

    def receive(self) -> bytes:
        """The next message. Blocks."""
        return self._inbox.get()

    def send(self, message: bytes) -> None:
        """Send a message; ends this process if the parent has ended."""
        data = memoryview(framed(message))
        try:
            with self._writing:
                while data:
                    data = data[os.write(self._out, data) :]
        except OSError:
            self._at_end()
            os._exit(1)

    def receive_value(self, kind: Any = Any) -> Any:
        """The value of the next message, of type `kind`."""
        return decode(kind, self.receive())

    def send_value(self, value: object) -> None:
        """Send a value as `kvdesk.codec` writes it."""
        self.send(encode(value))

    @property
    def has_message(self) -> bool:
        """Whether `receive` would return at once."""
        return not self._inbox.empty()

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(read_message(_read, _MAX_MESSAGE_BYTES))
        except EOFError:
            pass
        except Exception:  # noqa: BLE001 - the parent shows it
            traceback.print_exc()
        finally:
            try:
                self._at_end()
            finally:
                os._exit(1)


def limit(memory: int, cpu_s: int = 0, written: int = 0) -> None:
    """Limit this process as far as the system does: bytes of address space, seconds of processor time, bytes of a file.
    0: no limit. Where the system allows less already, that stays.
    """
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_CPU: cpu_s, resource.RLIMIT_FSIZE: written}
    if sys.platform != "darwin":  # which takes that limit and does not keep it
        limits[resource.RLIMIT_AS] = memory
    for which, most in limits.items():
        if most:
            allowed = [one for one in resource.getrlimit(which) if one != resource.RLIM_INFINITY]
            least = min([most, *allowed])
            resource.setrlimit(which, (least, least))


def _read(n_bytes: int) -> bytes:
    """From standard input, past Python's buffer: its lock could not be taken again at the end of the process."""
    parts = []
    while n_bytes:
        try:
            part = os.read(0, min(n_bytes, 1 << 20))
        except OSError:
            part = b""
        if not part:
            break
        parts.append(part)
        n_bytes -= len(part)
    return b"".join(parts)
