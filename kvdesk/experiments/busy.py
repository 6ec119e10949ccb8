"""Processes that compute all the time, for experiments about the load."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kvdesk.children.entry import Parent
from kvdesk.children.process import Child, child_command

START_S = 0.5  # until a busy process computes


@contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """`n` of them, which compute when the block begins and are dead after it. Raises OSError."""
    with ExitStack() as stack:
        for _ in range(n):
            stack.enter_context(Child(child_command("--busy"), stdout="ignored"))
        time.sleep(START_S if n else 0.0)
        yield


def child_main(_parent: Parent, _argv: Sequence[str]) -> int:
    """The main function of such a process."""
    number = 0
    while True:
        number = (number * 1_103_515_245 + 12_345) % (1 << 31)
