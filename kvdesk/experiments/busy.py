"""Processes that compute all the time: what an experiment sets beside itself where the load is the question."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kvdesk.children.entry import Parent
from kvdesk.children.process import Child, child_command

START_S = 0.5  # until a busy process computes


@contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """So many of them, which compute when it is entered and are dead at the end. Raises OSError."""
    with ExitStack() as stack:
        for _ in range(n):
            stack.enter_context(Child(child_command("--busy"), stdout="ignored"))
        time.sleep(START_S if n else 0.0)
        yield


def child_main(_parent: Parent, _argv: Sequence[str]) -> int:
    """Such a process."""
    number = 0
    while True:
        number = (number * 1_103_515_245 + 12_345) % (1 << 31)
