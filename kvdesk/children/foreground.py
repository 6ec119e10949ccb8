"""Runs another program in the foreground: it has this terminal, and this process waits for its end.

`children.process` gives each child a group and pipes. A program that reads keys must be in the group that the
terminal listens to, with the terminal as its input and output.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

_FROM_TERMINAL: Final = ("SIGINT", "SIGQUIT", "SIGBREAK")
"""The terminal sends them to the whole group: the program gets them too, and decides."""
_TO_THIS_PROCESS: Final = ("SIGTERM", "SIGHUP")


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code of the program; 128 + n where signal n ended it, as shells have it. Ctrl+C is the program's; what
    ends this process ends the program first. Raises OSError where it cannot be started.
    """
    with _signals() as forward:
        process = subprocess.Popen(command, env=dict(environment))
        forward(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """While a program runs. Handlers of Python and not SIG_IGN, which the program would inherit."""
    processes: list[subprocess.Popen[bytes]] = []

    def leave(*_: Any) -> None:
        """The program has it too."""

    def forward(number: int, _frame: Any) -> None:
        for process in processes:
            process.send_signal(number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
        for names, handler in ((_FROM_TERMINAL, leave), (_TO_THIS_PROCESS, forward)):
            for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
                before[number] = signal.signal(number, handler)
    try:
        yield processes.append
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
