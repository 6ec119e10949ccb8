"""Processes that compute all the time: what an experiment sets beside itself where the load is the question."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kvdesk.library.child import child_command, read_parent, start_child


@contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """So many of them, dead at the end. Raises OSError."""
    with ExitStack() as stack:
        for _ in range(n):
            child = start_child(child_command("--busy"), subprocess.DEVNULL, subprocess.DEVNULL)
            stack.callback(_end, child)
        yield


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    if child.stdin is not None:
        child.stdin.close()
    child.wait()


def child_main(_argv: Sequence[str] = ()) -> int:
    """Such a process. Ends with the one that started it."""
    read_parent()
    number = 0
    while True:
        number = (number * 1_103_515_245 + 12_345) % (1 << 31)
